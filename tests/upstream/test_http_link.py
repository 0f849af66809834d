"""An HTTP server for an agent on stdio: answers that are late, broken or refused."""

import asyncio
import json
import threading
from typing import Any

import pytest
from tests.support.http_upstream import HttpUpstream, Received, Reply, event, text_result
from tests.support.waiting import run_async

from thoughtgate.core.events import Event, NotSent, ServerSent
from thoughtgate.gate.session_driver import ToolHeaders
from thoughtgate.transports.http_client import HttpPool
from thoughtgate.upstream.http_link import HttpLink


class _Flow:
    """As much of a flow as a link feeds."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.lost: list[tuple[Any, str]] = []

    def feed(self, happened: Event, sink: object) -> int:
        del sink
        if isinstance(happened, ServerSent):
            self.heard.append(json.loads(happened.line))
        elif isinstance(happened, NotSent):
            self.lost.append((happened.key, happened.kind))
        return 1


async def _until(found: list[Any]) -> None:
    async with asyncio.timeout(10):
        while not found:  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.005)


def _line(ident: Any, method: str = "tools/call", **params: Any) -> bytes:
    body = {"jsonrpc": "2.0", "method": method, "params": {"name": "x", **params}}
    return json.dumps(body if ident is None else {**body, "id": ident}).encode()


def _exchange(script: Any, *lines: tuple[bytes, Any]) -> _Flow:
    async def main() -> _Flow:
        flow = _Flow()
        with HttpUpstream(script) as upstream:
            pool = HttpPool(upstream.url)
            link = HttpLink(pool, flow, None, ToolHeaders())  # type: ignore[arg-type]  # stand-ins
            for data, key in lines:
                link.send(data, key)
            async with asyncio.timeout(10):
                while not (flow.heard or flow.lost):  # noqa: ASYNC110  no event exists
                    await asyncio.sleep(0.005)
            await link.close()
        return flow

    return run_async(main())


def test_an_answer_comes_back_as_a_frame() -> None:
    flow = _exchange(lambda received: text_result(received, "hi"), (_line(1), 1))
    assert flow.heard[0]["id"] == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply(202),
        Reply(404),
        Reply(500, b"oops"),
        Reply(body=b'{"jsonrpc":"2.0","id":9,"result":{}}'),
        Reply(raw=b""),
        Reply(parts=[b": nothing\n\n"]),
        Reply(parts=[b"data: " + b"x" * 11_000_000]),
        Reply(body=b"x" * 11_000_000),
    ],
)
def test_a_request_without_an_answer_is_lost(reply: Reply) -> None:
    flow = _exchange(lambda _: reply, (_line(1), 1))
    assert flow.lost == [(1, "upstream_connection_failed")]


def test_an_error_that_names_the_request_is_its_answer() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
    flow = _exchange(lambda _: Reply(404, body), (_line(1), 1))
    assert flow.heard[0]["error"]["code"] == -32601


def test_a_cancelled_request_of_the_newest_revision_closes_its_stream() -> None:
    never = threading.Event()
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}

    def script(received: Received) -> Reply:
        return Reply(parts=[event(note), event(note)], wait=never)

    async def main() -> None:
        flow = _Flow()
        with HttpUpstream(script) as upstream:
            link = HttpLink(HttpPool(upstream.url), flow, None, ToolHeaders())  # type: ignore[arg-type]  # stand-ins
            link.send(_line(1), 1)
            await _until(flow.heard)
            link.send(_line(None, "notifications/cancelled", requestId=1), None)
            async with asyncio.timeout(10):
                while not upstream.broken:  # noqa: ASYNC110  no event exists
                    await asyncio.sleep(0.005)
            assert len(upstream.received) == 1
            await link.close()

    run_async(main())


def test_a_frame_that_cannot_be_read_is_not_sent() -> None:
    flow = _exchange(lambda received: text_result(received, "x"), (b"nonsense", 1))
    assert flow.lost == [(1, "invalid_request")]


@pytest.mark.parametrize("ident", [[1], {"a": 1}, 1.5, True, None])
def test_a_cancellation_that_names_no_request_ends_no_stream(ident: Any) -> None:
    notice = _line(None, "notifications/cancelled", requestId=ident)
    flow = _exchange(lambda received: text_result(received, "hi"), (_line(1), 1), (notice, None))
    assert flow.heard[0]["id"] == 1
