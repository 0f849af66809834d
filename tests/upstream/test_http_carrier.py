"""The MCP client over HTTP: alone, in ``proxy --stdio``, and in ``serve``, in both eras."""

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import thoughtgate
from tests.support.frames import call, request
from tests.support.http_carrier import Client, Driver, frame, with_client
from tests.support.http_hub import serving_http
from tests.support.http_upstream import (
    Received,
    Reply,
    event,
    free_port,
    result,
    text_result,
)
from tests.support.hub import sample, serving, write_config
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import run_async, wait_for

from thoughtgate.config.server_auth import ServerAuth
from thoughtgate.config.settings import ServerSettings
from thoughtgate.errors import CAUSES
from thoughtgate.transports.http_client import HttpPool
from thoughtgate.upstream import http_carrier
from thoughtgate.upstream.connect import open_pool
from thoughtgate.upstream.http_carrier import HttpCarrier
from thoughtgate.wire.sse import parse_event

NOTE = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}


def _exchange(script: Any, *frames: bytes) -> Driver:
    async def work(client: Client) -> None:
        for one in frames:
            client.send(one)
        await client.until(lambda: client.told)

    return with_client(script, work).driver


def _session(streams: list[Reply], received: Received) -> Reply | None:
    """Answer the handshake, and GET requests with one reply after the other."""
    if received.method == "GET":
        return streams.pop(0) if len(streams) > 1 else streams[0]
    if received.method == "DELETE":
        return Reply()
    method = received.message["method"]
    if method == "initialize":
        reply = result(received, {"protocolVersion": "2025-11-25"})
        reply.headers["mcp-session-id"] = "s1"
        return reply
    return Reply(202) if "id" not in received.message else None


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open streams again without a wait."""
    monkeypatch.setattr(http_carrier, "RETRY_S", 0.001)


# Answers.


def test_an_answer_comes_back_as_a_frame() -> None:
    driver = _exchange(lambda received: text_result(received, "hi"), frame(1))
    assert driver.heard[0]["id"] == 1


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        (Reply(202), "no_answer"),
        (Reply(404), "status"),
        (Reply(401), "status_401"),
        (Reply(403, b"<html>"), "status_403"),
        (Reply(407), "status_407"),
        (Reply(429), "rate_limited_by_server"),
        (Reply(503), "unavailable"),
        (Reply(500, b"oops"), "status"),
        (Reply(307, headers={"location": "https://other.example/x?code=1"}), "redirected"),
        (Reply(body=b"<html>"), "not_json"),
        (Reply(body=b'{"jsonrpc":"2.0","id":9,"result":{}}'), "wrong_id"),
        (Reply(body=b'{"jsonrpc":"2.0","method":"notifications/x"}'), "no_answer"),
        (
            Reply(body=b'{"jsonrpc":"2.0","id":1,"result":{}}', content_type="text/html"),
            "wrong_type",
        ),
        (Reply(body=b"x", headers={"content-encoding": "br"}), "wrong_encoding"),
        (Reply(raw=b""), "connection_lost"),
        (Reply(raw=b"no http\r\n\r\n"), "not_http"),
        (Reply(parts=[b": nothing\n\n"]), "stream_ended"),
        (Reply(parts=[b"id: 1\ndata:\n\n"]), "stream_ended"),
        (Reply(parts=[b"data: " + b"x" * 11_000_000]), "too_large"),
        (Reply(body=b"x" * 11_000_000), "too_large"),
    ],
)
def test_a_request_without_an_answer_is_lost(reply: Reply, cause: str) -> None:
    driver = _exchange(lambda _: reply, frame(1))
    assert driver.lost == [(1, CAUSES[cause][0])]
    assert driver.causes == [cause]


def test_an_error_that_names_the_request_is_its_answer() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
    driver = _exchange(lambda _: Reply(404, body), frame(1))
    assert driver.heard[0]["error"]["code"] == -32601
    assert driver.lost == []


def test_a_cancelled_request_of_the_newest_revision_closes_its_stream() -> None:
    never = threading.Event()

    async def work(client: Client) -> None:
        client.send(frame(1))
        await client.until(lambda: client.told)
        client.send(frame(None, "notifications/cancelled", requestId=1))
        await client.until(lambda: client.upstream.broken)
        assert len(client.upstream.received) == 1

    with_client(lambda _: Reply(parts=[event(NOTE), event(NOTE)], wait=never), work)


def test_a_cancelled_request_of_an_older_revision_is_named_to_the_server() -> None:
    never = threading.Event()

    def script(received: Received) -> Reply:
        waiting = Reply(parts=[event(NOTE), event(NOTE)], wait=never)
        return _session([Reply(405)], received) or waiting

    async def work(client: Client) -> None:
        await client.initialize()
        client.send(frame(1))
        await client.until(lambda: NOTE in client.driver.heard)
        client.send(frame(None, "notifications/cancelled", requestId=1))
        await client.until(lambda: b"cancelled" in client.upstream.received[-1].body)

    with_client(script, work)


def test_a_frame_that_cannot_be_read_is_not_sent() -> None:
    driver = _exchange(lambda received: text_result(received, "x"), b"nonsense")
    assert driver.lost == [(1, "invalid_request")]


@pytest.mark.parametrize("ident", [[1], {"a": 1}, 1.5, True, None])
def test_a_cancellation_that_names_no_request_ends_no_stream(ident: Any) -> None:
    notice = frame(None, "notifications/cancelled", requestId=ident)
    driver = _exchange(lambda received: text_result(received, "hi"), frame(1), notice)
    assert driver.heard[0]["id"] == 1


# Sessions and streams.


def test_the_handshake_settles_the_headers_of_what_follows() -> None:
    def script(received: Received) -> Reply:
        return _session([Reply(405)], received) or text_result(received, "hi")

    async def work(client: Client) -> None:
        await client.initialize()
        client.send(frame(1))
        await client.until(lambda: len(client.driver.heard) == 2)

    client = with_client(script, work)
    opening, *others = client.upstream.received
    assert "mcp-session-id" not in opening.headers
    assert {one.method for one in others} == {"POST", "GET", "DELETE"}
    assert {one.headers["mcp-session-id"] for one in others} == {"s1"}
    assert {one.headers["mcp-protocol-version"] for one in others} == {"2025-11-25"}


@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.usefixtures("_soon")
def test_an_answer_that_breaks_off_is_resumed(attempts: int) -> None:
    done = {"jsonrpc": "2.0", "id": 1, "result": {}}
    resumed = 0

    def script(received: Received) -> Reply:
        nonlocal resumed
        if received.headers.get("last-event-id") == "e1":
            resumed += 1
            return Reply(parts=[event(done)]) if resumed == attempts else Reply(503)
        broken = Reply(parts=[b"id: e1\ndata:\n\n"])
        return _session([Reply(405)], received) or broken

    async def work(client: Client) -> None:
        await client.initialize()
        client.send(frame(1))
        await client.until(lambda: done in client.driver.heard)

    client = with_client(script, work)
    assert client.driver.lost == []
    assert resumed == attempts


def test_an_event_id_that_is_too_long_is_not_sent_back() -> None:
    long = b"id: %b\ndata:\n\n" % (b"e" * 100_000)

    async def work(client: Client) -> None:
        await client.initialize()
        client.send(frame(1))
        await client.until(lambda: client.driver.lost)

    broken = Reply(parts=[long])
    client = with_client(lambda received: _session([Reply(405)], received) or broken, work)
    assert client.driver.lost == [(1, "upstream_connection_failed")]
    assert not any("last-event-id" in one.headers for one in client.streams)


@pytest.mark.parametrize(("status", "attempts"), [(400, 1), (503, http_carrier.MAX_RESUMES)])
def test_an_answer_that_cannot_be_resumed_is_lost(
    status: int, attempts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_carrier, "RETRY_S", 0.0)

    def script(received: Received) -> Reply:
        if received.headers.get("last-event-id") == "e1":
            return Reply(status)
        broken = Reply(parts=[b"id: e1\ndata:\n\n"])
        return _session([Reply(405)], received) or broken

    async def work(client: Client) -> None:
        await client.initialize()
        client.send(frame(1))
        await client.until(lambda: client.driver.lost)

    client = with_client(script, work)
    assert client.driver.lost == [(1, "upstream_bad_response")]
    assert len(client.streams) == attempts + 1


@pytest.mark.parametrize("head", ["", "id: e1\nretry: 0\n"])
@pytest.mark.usefixtures("_soon")
def test_the_stream_of_the_server_is_opened_again_whenever_it_ends(head: str) -> None:
    ended = [Reply(parts=[event(NOTE, head)]) for _ in range(4)]
    streams = [*ended, Reply(503), Reply(raw=b""), Reply(parts=[]), *ended]

    async def work(client: Client) -> None:
        await client.initialize()
        await client.until(lambda: client.driver.heard.count(NOTE) == 8)

    client = with_client(lambda received: _session(streams, received), work)
    named = [one.headers.get("last-event-id") for one in client.streams[:11]]
    assert named == [None, *["e1" if head else None] * 10]


@pytest.mark.usefixtures("_soon")
def test_an_event_that_is_too_long_is_not_asked_for_again() -> None:
    long = Reply(parts=[event(NOTE, "id: e1\n"), b"data: " + b"x" * 11_000_000])
    streams = [long, Reply(parts=[event(NOTE)])]

    async def work(client: Client) -> None:
        await client.initialize()
        await client.until(lambda: client.driver.heard.count(NOTE) >= 2)

    client = with_client(lambda received: _session(streams, received), work)
    assert "last-event-id" not in client.streams[1].headers


@pytest.mark.parametrize("status", [404, 405])
@pytest.mark.usefixtures("_soon")
def test_a_server_without_a_stream_is_asked_for_it_once(status: int) -> None:
    def script(received: Received) -> Reply:
        return _session([Reply(status)], received) or text_result(received, "hi")

    async def work(client: Client) -> None:
        await client.initialize()
        for ident in range(1, 20):
            client.send(frame(ident))
            await client.until(lambda: client.driver.heard[-1]["id"] == ident)  # noqa: B023  awaited here

    assert len(with_client(script, work).streams) == 1


def test_the_delay_grows_to_half_a_minute_and_begins_anew_with_an_event() -> None:
    async def main() -> list[float]:
        carrier = HttpCarrier(HttpPool(f"http://127.0.0.1:{free_port()}/mcp"))
        stream = http_carrier._Answer(carrier, None, "")
        delays = [stream.next_delay() for _ in range(2000)]
        stream._take_event(parse_event(b"retry: 3000\n\n"))
        return [*delays[:7], delays[-1], stream.next_delay(), stream.next_delay()]

    assert run_async(main()) == [1, 2, 4, 8, 16, 30, 30, 30, 3, 6]


@pytest.mark.usefixtures("_soon")
def test_a_server_may_end_the_stream_of_a_response_as_often_as_it_likes() -> None:
    done = {"jsonrpc": "2.0", "id": 1, "result": {}}
    polls = 0

    def script(received: Received) -> Reply:
        nonlocal polls
        if received.headers.get("last-event-id") == "e1":
            polls += 1
            silent = Reply(parts=[b": still working\n\n"])
            return Reply(parts=[event(done)]) if polls > http_carrier.MAX_RESUMES + 1 else silent
        broken = Reply(parts=[b"id: e1\ndata:\n\n"])
        return _session([Reply(405)], received) or broken

    async def work(client: Client) -> None:
        await client.initialize()
        client.send(frame(1))
        await client.until(lambda: done in client.driver.heard)

    assert with_client(script, work).driver.lost == []


# Behind serve.


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
        assert hub.kind(2, "far.echo") == "upstream_connection_failed"
        assert hub.ask(request(3, "ping"))["result"] == {}


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({"headers": {"X-Team": "a"}}, [(b"x-team", b"a")]),
        ({"auth": ServerAuth(token_env="TOKEN")}, [(b"authorization", b"Bearer t")]),
    ],
)
def test_the_headers_of_a_server_are_its_own(
    server: dict[str, Any], expected: list[tuple[bytes, bytes]]
) -> None:
    settings = ServerSettings("far", url="http://127.0.0.1:9/mcp", **server)
    assert open_pool(settings, {"TOKEN": "t"}).options.headers == expected
