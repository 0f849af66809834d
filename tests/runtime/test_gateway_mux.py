"""One pipe for many: numbers, tokens and subscriptions are exchanged and restored."""

import asyncio
import gc
import json
import os
import sys
import weakref
from typing import Any

import pytest

from thoughtgate.core.events import Event, ServerSent
from thoughtgate.runtime.gateway_mux import Mux
from thoughtgate.transports.child import ChildCommand
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Message

_SERVER = """
import json, sys
for line in sys.stdin:
    got = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "method": "seen", "params": {"got": got}}), flush=True)
    if got.get("method") == "listen":
        meta = {"io.modelcontextprotocol/subscriptionId": got["id"]}
        note = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": meta}}
        print(json.dumps(note), flush=True)
        result = {"_meta": meta}
        print(json.dumps({"jsonrpc": "2.0", "id": got["id"], "result": result}), flush=True)
    elif "id" in got and "method" in got:
        print(json.dumps({"jsonrpc": "2.0", "id": got["id"], "result": {}}), flush=True)
"""


class _Flow:
    def __init__(self, *, is_modern: bool = True) -> None:
        self.is_modern = is_modern
        self.heard: list[Any] = []

    def feed(self, event: Event, sink: object) -> int:
        del sink
        if isinstance(event, ServerSent):
            self.heard.append(json.loads(event.line))
        return 1


class _Line:
    def __init__(self, flow: _Flow, key: Any) -> None:
        self.flow = flow
        self.key = key
        self.is_over = False
        self.kinds: list[str] = []

    def expect_answer(self) -> None:
        self.is_over = True

    def lost(self, kind: str) -> None:
        self.kinds.append(kind)

    def take(self, data: bytes, key: Any) -> None:
        """Not called: the flow is a stand-in."""

    def forward(self, data: bytes, key: Any) -> None:
        """As above."""


def _message(method: str, ident: Any, **params: Any) -> Message:
    body = {"jsonrpc": "2.0", "method": method, "params": params}
    message = read_frame(json.dumps(body if ident is None else {**body, "id": ident}).encode())
    assert isinstance(message, Message)
    return message


def _mux(refused: list[str]) -> Mux:
    command = ChildCommand(sys.executable, ("-c", _SERVER), dict(os.environ))
    return Mux(command, is_shared=True, on_refused=lambda _line, check: refused.append(check))


async def _until(heard: list[Any], count: int) -> None:
    async with asyncio.timeout(10):
        while len(heard) < count:  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.005)


def test_two_callers_with_one_id_get_their_own_answers() -> None:
    async def main() -> None:
        refused: list[str] = []
        mux = _mux(refused)
        await mux.start()
        one, two = _Flow(), _Flow()
        mux.send(_Line(one, 1), _message("a", 1))  # type: ignore[arg-type]  # stand-ins
        mux.send(_Line(two, 1), _message("b", 1))  # type: ignore[arg-type]  # as above
        await _until(one.heard, 1)
        await _until(two.heard, 1)
        assert one.heard == two.heard == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
        await mux.stop()

    asyncio.run(main())


def test_a_subscription_is_known_by_the_callers_own_id() -> None:
    async def main() -> None:
        mux = _mux([])
        await mux.start()
        flow = _Flow()
        mux.send(_Line(flow, "mine"), _message("listen", "mine"))  # type: ignore[arg-type]  # stand-in
        await _until(flow.heard, 2)
        note, answer = flow.heard
        assert note["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "mine"
        assert answer["id"] == "mine"
        assert answer["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "mine"
        await mux.stop()

    asyncio.run(main())


def test_an_agent_that_left_is_not_remembered_for_what_it_watched() -> None:
    async def main() -> None:
        mux = _mux([])
        await mux.start()
        flow = _Flow()
        watch = _message("resources/subscribe", 1, uri="file:///a")
        mux.send(_Line(flow, 1), watch)  # type: ignore[arg-type]  # a stand-in
        await _until(flow.heard, 1)
        mux.leave(flow)  # type: ignore[arg-type]  # as above
        gone = weakref.ref(flow)
        del flow
        gc.collect()
        assert gone() is None
        await mux.stop()

    asyncio.run(main())


def test_whoever_waits_is_told_when_the_server_ends() -> None:
    async def main() -> None:
        command = ChildCommand(sys.executable, ("-c", "input()"), dict(os.environ))
        mux = Mux(command, is_shared=True, on_refused=lambda _line, _check: None)
        await mux.start()
        line = _Line(_Flow(), 1)
        mux.send(line, _message("a", 1))  # type: ignore[arg-type]  # a stand-in
        await _until(line.kinds, 1)
        assert line.kinds == ["upstream_connection_failed"]
        assert not mux.is_up
        await mux.stop()

    asyncio.run(main())


@pytest.mark.parametrize("ident", [[1], {"a": 1}, 1.5, True, None])
def test_a_cancellation_that_names_no_request_goes_nowhere(ident: Any) -> None:
    async def main() -> None:
        mux = _mux([])
        await mux.start()
        flow = _Flow()
        notice = _message("notifications/cancelled", None, requestId=ident)
        mux.send_notice(flow, notice)  # type: ignore[arg-type]  # a stand-in
        mux.send(_Line(flow, 1), _message("a", 1))  # type: ignore[arg-type]  # as above
        await _until(flow.heard, 1)
        assert flow.heard == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
        await mux.stop()

    asyncio.run(main())
