"""The hub before servers that are reached over HTTP, in both eras."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import thoughtgate
from tests.support.frames import call, request
from tests.support.http_hub import serving_http
from tests.support.hub import sample, serving, write_config
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for

from thoughtgate.upstream.http_carrier import auth_headers


def test_a_hub_before_a_hub_over_http(tmp_path: Path) -> None:
    """The inner hub speaks both eras over HTTP, so the outer one finds a modern server."""
    inner, outer = tmp_path / "inner", tmp_path / "outer"
    inner.mkdir()
    outer.mkdir()
    with (
        serving_http(inner, {"one": sample()}) as far,
        serving(outer, {"far": {"url": far.url}}) as hub,
    ):
        hub.open({"elicitation": {}})
        names = hub.names(1)
        told = hub.text(2, "far.one.echo", {"text": "a long way"})
        body = call(3, "far.one.slow", {"seconds": 0.2})
        body["params"]["_meta"] = {"progressToken": "t"}
        hub.send(body)
        progress = [hub.receive()["method"] for _ in range(3)]
        slept = hub.receive_answer(3)
        hub.send(call(4, "far.one.elicit", {"question": "?"}))
        asked = hub.receive()
        hub.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})
        elicited = hub.receive_answer(4)

        assert hub.server("far", 5)["revision"] == "2026-07-28"
    assert "far.one.echo" in names
    assert told == "a long way"
    assert progress == ["notifications/progress"] * 3
    assert "slept" in slept["result"]["content"][0]["text"]
    assert "decline" in elicited["result"]["content"][0]["text"]


def test_a_legacy_server_over_http_has_a_session(tmp_path: Path) -> None:
    config = write_config(
        tmp_path / "far.yaml", {"one": sample("--era", "legacy", isolation="session")}
    )
    command = thoughtgate("proxy", "-c", str(config), "--listen", "127.0.0.1:0")
    with StdioPeer(command, env={"THOUGHTGATE_STATE_DIR": str(tmp_path / "far")}) as proxy:
        found = wait_for(lambda: re.search(r"http://127\.0\.0\.1:\d+/mcp", proxy.stderr))
        assert found is not None
        with serving(tmp_path, {"far": {"url": found[0]}}) as hub:
            hub.open({"roots": {}})
            told = hub.text(1, "far.echo", {"text": "hi"})
            hub.send(call(2, "far.roots"))
            asked = hub.receive()
            hub.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}})
            roots = hub.receive_answer(2)

            assert hub.server("far", 3)["revision"] == "2025-11-25"
    assert told == "hi"
    assert "roots" in roots["result"]["content"][0]["text"]


def test_a_server_that_is_not_there_is_an_error_of_its_own(tmp_path: Path) -> None:
    servers: dict[str, Any] = {
        "far": {"url": "http://127.0.0.1:9/mcp"},
        "one": sample("--tools", "echo"),
    }
    with serving(tmp_path, servers) as hub:
        hub.open()

        assert hub.names(1) == ["one.echo"]
        assert hub.kind(2, "far.echo") == "server_start_failed"
        assert hub.ask(request(3, "ping"))["result"] == {}


@pytest.mark.parametrize(
    ("headers", "token", "expected"),
    [
        ({"X-Team": "a"}, "", [(b"x-team", b"a")]),
        ({}, "t", [(b"authorization", b"Bearer t")]),
    ],
)
def test_the_headers_of_a_server_are_its_own(
    headers: dict[str, str], token: str, expected: list[tuple[bytes, bytes]]
) -> None:
    assert auth_headers(headers, token) == expected
