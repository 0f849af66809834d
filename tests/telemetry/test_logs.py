import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.audit_cli import sample_events
from tests.support.records import T0, decided, ended, started

from thoughtgate.core.record_events import (
    Record,
    frame_refused,
    server_exited,
    server_started,
)
from thoughtgate.core.run_summary import run_started
from thoughtgate.policy.call import DEVELOPMENT, PRODUCTION
from thoughtgate.policy.policy import Policy
from thoughtgate.telemetry import logs as module
from thoughtgate.telemetry.logs import DEBUG, ERROR, INFO, JSON, WARN, Log


class Pipe:
    """Something a log can be read back from."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()

    def lines(self) -> list[str]:
        os.set_blocking(self.reader, False)
        try:
            return os.read(self.reader, 1 << 20).decode().splitlines()
        except BlockingIOError:
            return []

    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines()]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.reader)
    os.close(made.writer)


@pytest.mark.requirement("S000-NFR-002")
def test_a_verdict_is_logged_with_the_fields_of_the_requirement(pipe: Pipe) -> None:
    log = Log("shim", form=JSON, level=DEBUG, descriptor=pipe.writer)
    log.record(started("c1"))
    log.record(decided("c1"))
    log.record(ended("c1"))
    verdict, end = pipe.objects()
    assert verdict["timestamp"] == "2025-10-09T08:53:20.000Z"
    assert verdict["level"] == "info"
    assert verdict["component"] == "shim"
    assert verdict["server_id"] == "files"
    assert verdict["direction"] == "agent_to_server"
    assert verdict["tool"] == "read_file"
    assert verdict["correlation_id"] == "c1"
    assert "message_id" not in verdict
    assert verdict["method"] == end["method"] == "tools/call"
    assert verdict["governance_decision"] == "forward"
    assert verdict["profile"] == "production"
    assert end["latency_us"] == 20_000


@pytest.mark.requirement("S000-NFR-002", "S004-NFR-001")
def test_what_the_development_profile_would_have_refused_is_logged_as_such(pipe: Pipe) -> None:
    log = Log("shim", form=JSON, descriptor=pipe.writer)
    log.record(decided("c1", action="BLOCK", enforced=False))
    for check in ("duplicate_key", "unknown_response"):
        log.record(
            frame_refused(
                T0,
                "files",
                "1",
                direction="agent_to_server",
                check=check,
                kind="invalid_request",
                size=9,
                correlation_id="1-f1",
                enforced=False,
            )
        )
    verdict, rejected, dropped = pipe.objects()
    assert verdict["governance_decision"] == "WOULD_BLOCK"
    assert verdict["level"] == "warn"
    assert verdict["policy_reason"] == "because"
    assert verdict["forwarded"] is True
    assert verdict["profile"] == "development"
    assert rejected["governance_decision"] == "WOULD_REJECT"
    assert rejected["correlation_id"] == "1-f1"
    assert dropped["governance_decision"] == "WOULD_DROP"


@pytest.mark.parametrize("profile", [PRODUCTION, DEVELOPMENT])
def test_what_is_let_through_is_logged_with_the_profile_of_the_run(
    pipe: Pipe, profile: str
) -> None:
    log = Log("shim", form=JSON, descriptor=pipe.writer)
    log.record(run_started(T0, Policy(profile=profile)))
    log.record(decided("c1"))
    log.record(
        frame_refused(
            T0, "files", "1", direction="agent_to_server", check="batch", kind="k", size=9
        )
    )
    assert [line["profile"] for line in pipe.objects()] == [profile, profile]


def test_methods_are_remembered_of_so_many_open_calls(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_CALLS", 1)
    log = Log("shim", form=JSON, level=DEBUG, descriptor=pipe.writer)
    for record in (started("c1"), started("c2"), ended("c1"), ended("c2"), ended("c2")):
        log.record(record)
    assert ["method" in line for line in pipe.objects()] == [False, True, False]


def test_levels_are_kept(pipe: Pipe) -> None:
    log = Log("gateway", level=WARN, descriptor=pipe.writer)
    log.say(INFO, "not this")
    log.say(WARN, "this")
    log.say(ERROR, "and this")
    assert [line.split(maxsplit=2)[1:] for line in pipe.lines()] == [
        ["warn", "this"],
        ["error", "and this"],
    ]


def test_people_get_one_line_that_cannot_be_forged(pipe: Pipe) -> None:
    Log("gateway", descriptor=pipe.writer).say(
        INFO, "bad\nname", T0, tool="x\x1b[2J", count=3, note="two words", gone=None, empty=""
    )
    assert pipe.lines() == [
        '2025-10-09T08:53:20.000Z info  bad[U+000A]name tool=x[U+001B][2J count=3 note="two words" empty=""'
    ]


@pytest.mark.parametrize("form", ["human", "json"])
def test_secrets_are_masked(pipe: Pipe, form: str) -> None:
    log = Log("gateway", form=form, descriptor=pipe.writer)
    log.say(INFO, "got Bearer abcdefgh12345", token="hunter2hunter2", url="https://u:pw@x/")
    (line,) = pipe.lines()
    for secret in ("abcdefgh12345", "hunter2", "pw@"):
        assert secret not in line


def test_a_long_value_is_cut(pipe: Pipe) -> None:
    Log("gateway", form=JSON, descriptor=pipe.writer).say(INFO, "x" * 5000)
    assert len(pipe.objects()[0]["message"]) == 2000


def test_every_event_can_be_logged(pipe: Pipe) -> None:
    log = Log("shim", level=DEBUG, form=JSON, descriptor=pipe.writer)
    for record in sample_events():
        log.record(record)
    log.record(Record("server_exited", T0, "", "0", {}))
    assert len(pipe.objects()) == 11


def test_a_server_that_the_gate_stopped_is_no_reason_to_warn(pipe: Pipe) -> None:
    log = Log("serve", level=DEBUG, form=JSON, descriptor=pipe.writer)
    for cause in ("stopped", "exited"):
        log.record(
            Record("server_exited", T0, "git", "0", {"server": {"cause": cause, "reason": cause}})
        )
    assert [one["level"] for one in pipe.objects()] == ["debug", "warn"]


def test_a_server_that_fails_again_as_before_is_no_reason_to_warn(pipe: Pipe) -> None:
    log = Log("serve", level=DEBUG, form=JSON, descriptor=pipe.writer)
    for reason in ("no such file", "no such file", "exited", ""):
        if reason:
            log.record(server_exited(T0, "git", "0", reason, was_up=False))
        else:
            log.record(server_started(T0, "git", "0", 7))
            log.record(server_exited(T0, "git", "0", "exited", exit_code=3))
    assert [one["level"] for one in pipe.objects()] == ["warn", "debug", "warn", "warn"]


def test_a_log_nobody_reads_stops_nothing(pipe: Pipe) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    Log("shim", descriptor=writer).say(ERROR, "into the void")
    os.close(writer)


@pytest.mark.parametrize("room", [0, 1000])
def test_a_log_waits_for_no_reader_and_goes_on_with_whole_lines(pipe: Pipe, room: int) -> None:
    os.set_blocking(pipe.writer, False)
    filled = 0
    while True:
        try:
            filled += os.write(pipe.writer, b"x" * 1000 + b"\n")
        except BlockingIOError:
            break
    os.set_blocking(pipe.writer, True)
    log = Log("shim", form=JSON, descriptor=pipe.writer)
    if room:
        os.read(pipe.reader, 4096)
        log.say(INFO, "cut", None, one="y" * 1900, two="y" * 1900, three="y" * 1900)
    log.say(INFO, "lost")
    while pipe.lines():
        pass
    log.say(INFO, "heard")
    log.say(INFO, "heard again")
    lines = [line for line in pipe.lines() if line]
    assert [json.loads(line)["message"] for line in lines] == ["heard", "heard again"]


def test_the_configs_spelling_of_a_level_is_known(pipe: Pipe) -> None:
    log = Log("shim", level="warning", form=JSON, descriptor=pipe.writer)
    log.say(INFO, "not this")
    log.say(WARN, "this")
    assert [line["message"] for line in pipe.objects()] == ["this"]
