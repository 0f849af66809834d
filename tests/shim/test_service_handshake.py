"""How a shim finds its service and says hello."""

import json
import os
from pathlib import Path

import pytest
from tests.support.raw_service import RawService, reply
from tests.support.waiting import reap

from thoughtgate.errors import PeerGone, UsageError
from thoughtgate.gate.run_file import RunFile, write_run_file
from thoughtgate.shim.service_handshake import (
    exchange,
    find_run,
    open_session,
    read_object,
    server_variables,
)

TOKEN = {"THOUGHTGATE_GOVERNANCE_TOKEN": "t0ken"}


def test_a_service_by_its_address_takes_the_token_from_the_environment() -> None:
    run = find_run("", "http://127.0.0.1:4242/", TOKEN)

    assert (run.host, run.port, run.token, run.profile) == (
        "127.0.0.1",
        4242,
        "t0ken",
        "production",
    )


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://10.0.0.1:80",
        "https://127.0.0.1:1",
        "http://127.0.0.1",
        "http://evil.example:80",
        "x",
    ],
)
def test_another_machine_is_never_asked(endpoint: str) -> None:
    with pytest.raises(UsageError, match=r"127\.0\.0\.1"):
        find_run("", endpoint, TOKEN)


def test_an_address_without_a_token_is_refused() -> None:
    with pytest.raises(UsageError, match="THOUGHTGATE_GOVERNANCE_TOKEN"):
        find_run("", "http://127.0.0.1:4242", {})


def test_a_service_by_its_run_is_read_from_the_file(tmp_path: Path) -> None:
    run = RunFile("127.0.0.1", 4242, "t", "development", 1)
    write_run_file(str(tmp_path / "runs" / "k.json"), run)

    assert find_run("k", "", {"THOUGHTGATE_STATE_DIR": str(tmp_path)}) == run


@pytest.mark.requirement("S000-F-016a")
def test_hello_comes_after_health_and_names_the_process() -> None:
    def answer(head: bytes, _: bytes) -> bytes:
        return reply(b"{}" if head.startswith(b"GET /healthz") else b'{"session_id":"s"}')

    with RawService(answer) as service:
        assert open_session(service.run(), "files", ("npx", "files")) == {"session_id": "s"}

    (health, _), (hello, body) = service.requests
    assert health.startswith(b"GET /healthz ")
    assert hello.startswith(b"POST /governance/heartbeat ")
    named = {"server_id": "files", "command": ["npx", "files"]}
    assert json.loads(body) == {**named, "hello": True, "pid": os.getpid()}


def test_a_service_that_refuses_the_token_is_no_service() -> None:
    with RawService(lambda _head, _body: reply(b"{}", 401)) as service, pytest.raises(PeerGone):
        open_session(service.run(), "files")


def test_a_dead_service_is_not_waited_for() -> None:
    pid = os.posix_spawnp("true", ["true"], {})
    reap(pid)

    with pytest.raises(PeerGone, match="thoughtgate unwrap"):
        open_session(RunFile("127.0.0.1", 1, "t", "production", pid), "files")


def test_no_answer_is_status_nought() -> None:
    assert exchange(RunFile("127.0.0.1", 1, "t", "production", 0), "GET", "/", b"") == (0, b"")


@pytest.mark.parametrize(
    ("status", "body"), [(0, b"{}"), (500, b"{}"), (200, b"["), (200, b"[]"), (200, b"\xff")]
)
def test_only_an_object_in_a_successful_answer_counts(status: int, body: bytes) -> None:
    assert read_object(status, body) is None


def test_a_server_gets_the_variables_of_its_own_entry() -> None:
    entries = {"k": {"env": {"HOME": "/h"}}, "other": {"env": {"HOME": "/x"}}}
    run = RunFile("127.0.0.1", 1, "t", "production", 0, entries)

    assert server_variables(run, "k") == {"HOME": "/h"}
    assert server_variables(run, "") == {}


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({"k": {"problem": "HOME refers to X, which is not set"}}, "refers to X"),
        ({"k": {}}, "not started"),
        ({}, "does not know this entry"),
    ],
)
def test_a_server_whose_variables_are_unknown_is_not_started(
    entries: dict[str, dict[str, str]], reason: str
) -> None:
    run = RunFile("127.0.0.1", 1, "t", "production", 0, entries)

    with pytest.raises(UsageError, match=reason):
        server_variables(run, "k")
