"""An HTTP server for an agent on stdio: answers that are late, broken or refused."""

import asyncio
import json
import threading
from typing import Any

import pytest
from tests.support.http_upstream import HttpUpstream, Received, Reply, event, text_result
from tests.support.session_play import to_server
from tests.support.waiting import run_async

from thoughtgate.core.events import Event, NotSent, ServerSent
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.transports.http_client import HttpPool
from thoughtgate.upstream.http_link import HttpLink


class _Driver:
    """As much of a session driver as a link feeds."""

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


def _exchange(script: Any, *lines: tuple[bytes, Any]) -> _Driver:
    async def main() -> _Driver:
        driver = _Driver()
        with HttpUpstream(script) as upstream:
            pool = HttpPool(upstream.url)
            link = HttpLink(pool, driver, None, ToolHeaders())  # type: ignore[arg-type]  # stand-ins
            for data, key in lines:
                link.send(to_server(data, key))
            async with asyncio.timeout(10):
                while not (driver.heard or driver.lost):  # noqa: ASYNC110  no event exists
                    await asyncio.sleep(0.005)
            await link.close()
        return driver

    return run_async(main())


def test_an_answer_comes_back_as_a_frame() -> None:
    driver = _exchange(lambda received: text_result(received, "hi"), (_line(1), 1))
    assert driver.heard[0]["id"] == 1


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
    driver = _exchange(lambda _: reply, (_line(1), 1))
    assert driver.lost == [(1, "upstream_connection_failed")]


def test_an_error_that_names_the_request_is_its_answer() -> None:
    body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'
    driver = _exchange(lambda _: Reply(404, body), (_line(1), 1))
    assert driver.heard[0]["error"]["code"] == -32601


def test_a_cancelled_request_of_the_newest_revision_closes_its_stream() -> None:
    never = threading.Event()
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}

    def script(received: Received) -> Reply:
        return Reply(parts=[event(note), event(note)], wait=never)

    async def main() -> None:
        driver = _Driver()
        with HttpUpstream(script) as upstream:
            link = HttpLink(HttpPool(upstream.url), driver, None, ToolHeaders())  # type: ignore[arg-type]  # stand-ins
            link.send(to_server(_line(1), 1))
            await _until(driver.heard)
            link.send(to_server(_line(None, "notifications/cancelled", requestId=1)))
            async with asyncio.timeout(10):
                while not upstream.broken:  # noqa: ASYNC110  no event exists
                    await asyncio.sleep(0.005)
            assert len(upstream.received) == 1
            await link.close()

    run_async(main())


def test_a_frame_that_cannot_be_read_is_not_sent() -> None:
    driver = _exchange(lambda received: text_result(received, "x"), (b"nonsense", 1))
    assert driver.lost == [(1, "invalid_request")]


@pytest.mark.parametrize("ident", [[1], {"a": 1}, 1.5, True, None])
def test_a_cancellation_that_names_no_request_ends_no_stream(ident: Any) -> None:
    notice = _line(None, "notifications/cancelled", requestId=ident)
    driver = _exchange(lambda received: text_result(received, "hi"), (_line(1), 1), (notice, None))
    assert driver.heard[0]["id"] == 1
