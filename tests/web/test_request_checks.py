"""Attacks on the console with plain HTTP: wrong Host, Origin, cookie; and what answers carry."""

import os

import pytest
from tests.support.consoles import Client, LocalConsole
from tests.support.waiting import wait_for
from tests.web.conftest import Gate

from thoughtgate.gate.approvals.started_by_agent import STARTED
from thoughtgate.gate.running_gates import announce, describe_governed
from thoughtgate.process.ancestry import read_process
from thoughtgate.web.request_checks import HEADERS


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil:80", "[::1]:80"]
)
def test_a_rebound_name_is_refused(console: LocalConsole, client: Client, host: str) -> None:
    answer = client.get("/", {"Host": host})

    assert answer.status == 421
    assert "delete_file" not in answer.text
    assert ("wrong host", "/") in console.refusals


def test_a_request_without_a_host_is_refused(client: Client) -> None:
    assert client.get("/", {"Host": ""}).status in {400, 421}


def test_localhost_is_the_console_too(console: LocalConsole, client: Client) -> None:
    assert client.get("/", {"Host": f"localhost:{console.console.port}"}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_page_is_refused_and_recorded(
    console: LocalConsole, client: Client, gate: Gate, headers: dict[str, str]
) -> None:
    ident = gate.hold()
    path = f"/approvals/{ident}"
    token = client.get("/").token(path)
    answer = client.post(path, {"token": token, "decision": "approve"}, headers)

    assert answer.status == 403
    assert gate.decided() == {}
    assert ("wrong origin", path) in console.refusals


@pytest.mark.parametrize(
    "path", ["/", "/inbox", "/live", "/traffic", "/calls", "/grants", "/approvals/a1"]
)
def test_nobody_sees_anything_without_a_session(
    console: LocalConsole, gate: Gate, path: str
) -> None:
    gate.hold()
    answer = console.stranger().get(path)

    assert answer.status == 401
    assert "delete_file" not in answer.text
    assert "thoughtgate console --open" in answer.text


def test_a_wrong_cookie_is_refused_and_recorded(console: LocalConsole) -> None:
    stranger = console.stranger()
    stranger.cookie = f"thoughtgate_{console.console.port}=made-up"

    assert stranger.get("/").status == 401
    assert ("not signed in", "/") in console.refusals


def test_a_decision_without_a_session_is_refused_and_recorded(
    console: LocalConsole, client: Client, gate: Gate
) -> None:
    ident = gate.hold()
    path = f"/approvals/{ident}"
    token = client.get("/").token(path)
    answer = console.stranger().post(path, {"token": token, "decision": "approve"})

    assert answer.status == 401
    assert gate.decided() == {}
    assert ("not signed in", path) in console.refusals


def test_a_cookie_that_another_program_set_does_not_lock_us_out(client: Client) -> None:
    name = client.cookie.partition("=")[0]
    client.cookie = f"{name}=tossed; other=@@@; {client.cookie}"

    assert client.get("/").status == 200


@pytest.mark.parametrize("path", ["/", "/static/console.css", "/login/x", "/nowhere"])
def test_every_answer_carries_the_headers_that_keep_others_out(client: Client, path: str) -> None:
    headers = client.get(path).headers

    for name, value in HEADERS.items():
        assert headers[name] == value
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_a_refusal_carries_them_too(client: Client) -> None:
    headers = client.get("/", {"Host": "evil.example"}).headers

    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"


def test_other_sites_may_not_read_anything(client: Client) -> None:
    headers = client.get("/", {"Origin": "http://evil.example"}).headers

    assert "access-control-allow-origin" not in headers


def test_a_flood_of_refusals_is_not_told_of_without_end(console: LocalConsole) -> None:
    stranger = console.stranger()
    for _ in range(70):
        stranger.get("/", {"Host": "evil.example"})

    wait_for(lambda: len(console.refusals) >= 60)
    assert len(console.refusals) == 60


@pytest.mark.promise("agent-cannot-approve")
def test_an_agent_that_is_governed_later_decides_nothing_in_its_console(
    console: LocalConsole, client: Client, gate: Gate
) -> None:
    ident = gate.hold()
    path = f"/approvals/{ident}"
    token = client.get("/").token(path)
    governed = describe_governed(read_process(os.getpid()))
    presence = announce(str(console.state), "shim", **governed)
    assert presence is not None
    try:
        answer = client.post(path, {"token": token, "decision": "approve"})
        signed = client.send("POST", "/webhook/decision", b"{}", {"Content-Type": "text/json"})
    finally:
        presence.withdraw()

    assert (answer.status, signed.status) == (403, 403)
    assert gate.decided() == {}
    assert (STARTED, path) in console.refusals
