"""The hub as a client of one server: opening, asking, giving up."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.hub import odd, sample
from tests.support.waiting import run_async

from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.transports.child_process import ChildCommand
from thoughtgate.upstream import client
from thoughtgate.upstream.client import Receiver, ServerConnection, wanted_changes
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.upstream.stdio_carrier import StdioCarrier
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import NOTIFICATION, Fault, Message
from thoughtgate.wire.revisions import LEGACY


class Listener:
    """Keeps what a server says unasked."""

    def __init__(self) -> None:
        self.asked: list[Message] = []
        self.heard = asyncio.Event()
        self.said: list[Message] = []
        self.lost: list[str] = []
        self.refused: list[Fault] = []
        self.reopened: list[ServerConnection] = []

    def server_sent(self, message: Message) -> None:
        if message.shape == NOTIFICATION:
            self.said.append(message)
            return
        self.asked.append(message)
        self.heard.set()

    def server_lost(self, gone: PeerGone) -> None:
        self.lost.append(str(gone))

    def server_refused(self, fault: Fault, line: bytes) -> None:
        assert line
        self.refused.append(fault)

    def server_reopened(self, connection: ServerConnection) -> None:
        self.reopened.append(connection)


def carrier(entry: dict[str, Any]) -> StdioCarrier:
    command = ChildCommand(entry["command"], tuple(entry["args"]), os.environ)
    return StdioCarrier("one", command, ServerLog(), grace_s=0.2)


def run(
    entry: dict[str, Any],
    work: Callable[[ServerConnection, Listener], Awaitable[Any]],
    **declared: Any,
) -> Any:
    async def main() -> Any:
        listener = Listener()
        upstream = ServerConnection(carrier(entry), listener)
        async with asyncio.timeout(10):
            await upstream.open(declared)
            try:
                return await work(upstream, listener)
            finally:
                await upstream.close()

    return run_async(main())


@pytest.mark.parametrize(
    ("era", "version"), [("both", "2026-07-28"), ("modern", "2026-07-28"), ("legacy", "2025-11-25")]
)
def test_each_server_is_spoken_to_in_its_own_revision(era: str, version: str) -> None:
    async def work(upstream: ServerConnection, _: Listener) -> tuple[str, bool, str]:
        reply = await upstream.ask("tools/call", {"name": "echo", "arguments": {"text": "hi"}})
        text: str = reply.body["result"]["content"][0]["text"]
        return upstream.version, "tools" in upstream.capabilities, text

    assert run(sample("--era", era), work) == (version, True, "hi")


def test_a_server_that_is_silent_on_discover_is_initialized_beside_it() -> None:
    async def work(upstream: ServerConnection, _: Listener) -> tuple[bool, bool]:
        return upstream.modern, upstream.version in LEGACY

    assert run(odd("slowstart"), work) == (False, True)


def test_a_server_that_exits_while_it_is_opened_is_gone() -> None:
    async def work(*_: Any) -> None:
        raise AssertionError

    with pytest.raises(PeerGone, match="code 3"):
        run(odd("exit"), work)


def test_who_waits_is_told_when_the_server_dies() -> None:
    async def work(upstream: ServerConnection, listener: Listener) -> list[str]:
        with pytest.raises(PeerGone, match="exited with code 70"):
            await upstream.ask("tools/call", {"name": "fail", "arguments": {}})
        with pytest.raises(PeerGone):
            await upstream.ask("ping", {})
        return listener.lost

    assert run(sample("--crash-on", "fail"), work) == ["the server exited with code 70"]


def test_giving_up_on_a_request_cancels_it_at_the_server(tmp_path: Any) -> None:
    log = tmp_path / "log"

    async def work(upstream: ServerConnection, _: Listener) -> int:
        asked = asyncio.ensure_future(
            upstream.ask("tools/call", {"name": "slow", "arguments": {"seconds": 60}})
        )
        await asyncio.sleep(0)
        await upstream.ask("tools/list", {})
        asked.cancel()
        await asyncio.wait([asked])
        await upstream.ask("tools/list", {})
        return upstream.open_requests

    assert run(sample("--era", "legacy", "--log", str(log)), work) == 0
    assert "notifications/cancelled" in log.read_text()


def test_noise_is_refused_and_answers_still_come() -> None:
    async def work(upstream: ServerConnection, listener: Listener) -> tuple[bool, list[str]]:
        reply = await upstream.ask("tools/list", {})
        return "result" in reply.body, sorted({fault.kind for fault in listener.refused})

    assert run(sample("--garbage"), work) == (True, ["parse_error"])


def test_questions_and_progress_find_their_listener() -> None:
    async def work(upstream: ServerConnection, listener: Listener) -> tuple[list[Any], str]:
        seen: list[Any] = []
        await upstream.ask(
            "tools/call",
            {"name": "slow", "arguments": {"seconds": 0.1}},
            on_progress=lambda told: seen.append(told["progress"]),
        )
        asked = asyncio.ensure_future(
            upstream.ask("tools/call", {"name": "roots", "arguments": {}})
        )
        await asyncio.wait_for(listener.heard.wait(), 10)
        upstream.refuse(listener.asked[0].id, "method_not_found", "no roots here")
        reply = await asked
        return seen, str(reply.body["result"]["content"][0]["text"])

    seen, text = run(sample("--era", "legacy"), work, roots={})

    assert seen == [1, 2, 3]
    assert "no roots here" in text


def test_only_what_a_server_has_is_listened_for() -> None:
    assert wanted_changes({"tools": {}, "logging": {}}, []) == {"toolsListChanged": True}
    assert wanted_changes({"resources": {}}, ["a://1"]) == {
        "resourcesListChanged": True,
        "resourceSubscriptions": ["a://1"],
    }


class Still:
    """A carrier whose server answers ``server/discover``, and every other request unreadably."""

    pid = 0
    exit_code: int | None = None

    async def open(self, receiver: Receiver) -> None:
        self.receiver = receiver

    def take(self, line: bytes) -> None:
        self.receiver.took(line, read_frame(line))

    def send(self, body: dict[str, Any]) -> None:
        if body.get("method") == "server/discover":
            result = b'{"supportedVersions":["2026-07-28"],"capabilities":{}}'
            self.take(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (body["id"], result))
        elif "id" in body:
            self.take(b'{"jsonrpc":"2.0","id":%d,"result":{"a":1,"a":2}}' % body["id"])

    def abandon(self, ident: Any, cause: str = "") -> bool:
        return ident is not None and not cause

    async def close(self) -> None: ...


class Slow(Still):
    """A carrier whose server answers ``server/discover`` only when the test says so."""

    late = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}'

    def send(self, body: dict[str, Any]) -> None:
        if body.get("method") == "initialize":
            result = b'{"protocolVersion":"2025-11-25","capabilities":{}}'
            self.take(b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (body["id"], result))


def test_an_answer_to_a_request_that_was_given_up_is_no_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "DISCOVER_S", 0.01)

    async def main() -> list[str]:
        listener, slow = Listener(), Slow()
        upstream = ServerConnection(slow, listener)
        await upstream.open({})
        slow.take(slow.late)
        assert listener.refused == []
        slow.take(slow.late)  # It was answered, so a second answer is one to nothing.
        return [one.check for one in listener.refused]

    assert run_async(main()) == ["unknown_response"]


def test_only_so_many_requests_that_were_given_up_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "MAX_GIVEN_UP", 2)

    async def main() -> int:
        listener, slow = Listener(), Slow()
        upstream = ServerConnection(slow, listener)
        await upstream.connect()
        for _ in range(3):
            ident = upstream.new_id()
            upstream.request({"jsonrpc": "2.0", "id": ident, "method": "x"}, Nobody())
            upstream.forget(ident)
        for ident in (1, 2, 3):
            slow.take(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % ident)
        return len(listener.refused)

    assert run_async(main()) == 1


class Nobody:
    """A caller that never hears anything."""

    def answered(self, message: Message) -> None:
        raise AssertionError(message)

    def told(self, message: Message, params: dict[str, Any]) -> None:
        raise AssertionError(message, params)

    def failed(self, error: PeerError | PeerGone) -> None:
        raise AssertionError(error)


def test_an_answer_that_cannot_be_read_ends_its_request() -> None:
    async def main() -> None:
        upstream = ServerConnection(Still(), Listener())
        await upstream.open({})
        with pytest.raises(PeerError, match="could not be read safely"):
            await upstream.ask("tools/list", {})

    run_async(main())


def test_a_new_session_tells_what_the_server_is_now() -> None:
    async def work(upstream: ServerConnection, listener: Listener) -> tuple[Any, ...]:
        prompts: dict[str, Any] = {"prompts": {}}
        said = {"protocolVersion": "2025-06-18", "capabilities": prompts, "instructions": "New."}
        upstream.reopened(said)
        assert listener.reopened == [upstream]
        return upstream.version, upstream.capabilities, upstream.instructions

    found = run(sample("--era", "legacy"), work)
    assert found == ("2025-06-18", {"prompts": {}}, "New.")


class Listening(Still):
    """A carrier whose server ends subscriptions as the test says."""

    def __init__(self, ends: list[Any]) -> None:
        self.ends = ends
        self.listens: list[int] = []

    def send(self, body: dict[str, Any]) -> None:
        if body.get("method") != "subscriptions/listen":
            super().send(body)
            return
        self.listens.append(body["id"])
        end = self.ends.pop(0) if self.ends else None
        if isinstance(end, PeerError):
            self.receiver.failed(body["id"], end)
        elif end is not None:
            self.take(b'{"jsonrpc":"2.0","id":%d,%b}' % (body["id"], end))


@pytest.mark.parametrize(
    ("ends", "listens"),
    [
        ([b'"result":{}', PeerError("upstream_connection_failed", "broken")], 3),
        ([b'"error":{"code":-32601,"message":"no such method"}'], 1),
    ],
)
def test_a_subscription_that_ends_is_made_again_unless_it_was_refused(
    ends: list[Any], listens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LISTEN_AGAIN_S", 0.0)

    async def main() -> None:
        listener, carrier = Listener(), Listening(ends)
        upstream = ServerConnection(carrier, listener)
        await upstream.open({})
        upstream.listen({"toolsListChanged": True})
        async with asyncio.timeout(10):
            while len(listener.said) < listens - 1 or not carrier.listens:  # noqa: ASYNC110  no event
                await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        assert len(carrier.listens) == listens
        assert {one.method for one in listener.said} <= {"notifications/tools/list_changed"}
        assert len(listener.said) == listens - 1
        await upstream.close()

    run_async(main())
