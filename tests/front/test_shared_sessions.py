"""Sessions at several gates: ended everywhere, and answers carried to the gate that asked."""

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import run_async, wait_for

from thoughtgate.core.events import AgentSent
from thoughtgate.errors import StoreError
from thoughtgate.front.session_handshake import Handshake
from thoughtgate.front.sessions import HttpSession
from thoughtgate.front.shared_sessions import MAX_SENT, open_shared_sessions
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Message


class _Peer:
    """As much of a peer as carrying needs."""

    def __init__(self) -> None:
        self.asked: set[Any] = set()
        self.open: set[Any] = set()
        self.fed: list[bytes] = []
        self.outbox = self

    def is_asked(self, ident: Any) -> bool:
        return ident in self.asked

    def is_open(self, ident: Any) -> bool:
        return ident in self.open

    def feed(self, event: AgentSent, sink: Any) -> int:
        assert sink is None
        self.fed.append(event.line)
        return 0

    def schedule(self) -> None:
        """Nothing waits here."""


class _Gate:
    """One gate with one session, as its endpoint would have it."""

    def __init__(self, directory: Path, *, is_alone: bool = False) -> None:
        self.peer = _Peer()
        self.entry = HttpSession("s.h.m", "s", "ann", self.peer, Handshake(int(time.time())))  # type: ignore[arg-type]  # a stand-in
        self.is_in_use = True
        self.ended: list[HttpSession] = []
        self.shared = open_shared_sessions(StoreLocation(directory), is_alone=is_alone)
        self.shared.add(self)

    @property
    def sessions_by_name(self) -> dict[str, HttpSession]:
        return {self.entry.name: self.entry}

    def session_ended(self, entry: HttpSession) -> None:
        self.ended.append(entry)

    def answer(self, ident: Any) -> Coroutine[Any, Any, int]:
        status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        message = _message({"id": ident, "result": {}})
        assert self.shared.answered(self.entry, message, status.set_result)

        async def wait() -> int:
            return await status

        return wait()


def _message(body: dict[str, Any]) -> Message:
    message = read_frame(json.dumps({"jsonrpc": "2.0", **body}).encode())
    assert isinstance(message, Message)
    return message


def _with_gates(directory: Path, work: Callable[[_Gate, _Gate], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        gates = _Gate(directory), _Gate(directory)
        try:
            await work(*gates)
        finally:
            for gate in gates:
                gate.shared.close()

    run_async(main())


def test_an_answer_reaches_the_gate_that_asked(tmp_path: Path) -> None:
    async def work(one: _Gate, other: _Gate) -> None:
        one.peer.asked.add("q-1")
        one.shared.watch()
        assert await other.answer("q-1") == 202
        assert [json.loads(data)["id"] for data in one.peer.fed] == ["q-1"]
        assert other.peer.fed == []

    _with_gates(tmp_path, work)


def test_an_answer_that_belongs_here_is_not_carried(tmp_path: Path) -> None:
    async def work(one: _Gate, _: _Gate) -> None:
        one.peer.asked.add(1)
        message = _message({"id": 1, "result": {}})
        assert not one.shared.answered(one.entry, message, lambda _: None)

    _with_gates(tmp_path, work)


def test_an_answer_that_nobody_takes_is_refused_and_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thoughtgate.front.shared_sessions.TAKEN_WITHIN_S", 0.2)

    async def work(one: _Gate, other: _Gate) -> None:
        one.shared.watch()
        assert await other.answer("q-1") == 400
        one.peer.asked.add("q-1")
        one.shared.tick()
        assert one.peer.fed == [], "its sender was told that it was refused"

    _with_gates(tmp_path, work)


def test_the_answers_that_wait_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thoughtgate.front.shared_sessions.TAKEN_WITHIN_S", 0.2)

    async def work(one: _Gate, _: _Gate) -> None:
        waiting = [one.answer(number) for number in range(MAX_SENT)]
        await asyncio.sleep(0)
        assert not one.shared.answered(one.entry, _message({"id": 0, "result": {}}), print)
        assert set(await asyncio.gather(*waiting)) == {400}

    _with_gates(tmp_path, work)


def test_a_cancellation_reaches_the_gate_with_the_request(tmp_path: Path) -> None:
    async def work(one: _Gate, other: _Gate) -> None:
        one.peer.open.add(7)
        told = _message({"method": "notifications/cancelled", "params": {"requestId": 7}})
        other.shared.cancelled(other.entry, told)
        one.shared.tick()
        assert [json.loads(data)["params"] for data in one.peer.fed] == [{"requestId": 7}]
        one.shared.cancelled(one.entry, told)
        other.shared.tick()
        assert other.peer.fed == [], "it was not for others"

    _with_gates(tmp_path, work)


def test_a_session_that_ended_elsewhere_ends_here(tmp_path: Path) -> None:
    async def work(one: _Gate, other: _Gate) -> None:
        assert not one.shared.is_ended(other.entry.name)
        other.shared.end(other.entry)
        one.shared.tick()
        assert one.ended == [one.entry]
        assert one.shared.is_ended(other.entry.name)
        one.shared.tick()
        assert one.ended == [one.entry]

    _with_gates(tmp_path, work)


def test_the_end_of_a_session_is_told_when_the_store_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise StoreError("the database is away")

    async def work(one: _Gate, other: _Gate) -> None:
        with monkeypatch.context() as patch:
            patch.setattr("thoughtgate.stores.sessions.SessionStore.end", away)
            other.shared.end(other.entry)
            assert other.shared.is_ended(other.entry.name)
        other.shared.tick()
        one.shared.tick()
        assert one.ended == [one.entry]

    _with_gates(tmp_path, work)


def test_without_the_store_an_answer_for_others_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise StoreError("the database is away")

    async def work(one: _Gate, other: _Gate) -> None:
        monkeypatch.setattr("thoughtgate.stores.sessions.SessionStore.send", away)
        assert await other.answer(1) == 503
        told = _message({"method": "notifications/cancelled", "params": {"requestId": 7}})
        one.shared.cancelled(one.entry, told)

    _with_gates(tmp_path, work)


def test_looking_goes_on_while_something_is_open_and_through_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[bool] = []

    def away(*_: Any) -> None:
        failed.append(True)
        raise StoreError("the database is away")

    async def work(one: _Gate, other: _Gate) -> None:
        one.shared.watch()
        with monkeypatch.context() as patch:
            patch.setattr("thoughtgate.stores.sessions.SessionStore.ended_since", away)
            one.shared.tick()
            await asyncio.to_thread(wait_for, lambda: len(failed) > 1)
            assert one.shared.is_watching
        one.peer.asked.add(1)
        assert await other.answer(1) == 202
        one.is_in_use = False
        await asyncio.to_thread(wait_for, lambda: not one.shared.is_watching, 10)

    _with_gates(tmp_path, work)


def test_a_gate_that_is_alone_carries_nothing_but_remembers_ended_sessions(tmp_path: Path) -> None:
    async def work() -> None:
        alone = _Gate(tmp_path, is_alone=True)
        assert alone.shared.is_watching, "there is nothing to look for"
        assert not alone.shared.answered(alone.entry, _message({"id": 1, "result": {}}), print)
        told = _message({"method": "notifications/cancelled", "params": {"requestId": 7}})
        alone.shared.cancelled(alone.entry, told)
        alone.shared.end(alone.entry)
        alone.shared.remove(alone)
        alone.shared.remove(alone)
        alone.shared.close()
        later = _Gate(tmp_path, is_alone=True)
        assert later.shared.is_ended(alone.entry.name)
        later.shared.tick()
        assert later.ended == [], "it was over before"
        later.shared.close()

    run_async(work())


def test_a_message_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    async def work(one: _Gate, _: _Gate) -> None:
        store = one.shared._store
        store.send(one.entry.name, b"not json", time.time())
        store.send(one.entry.name, b'{"jsonrpc":"2.0","method":"x"}', time.time())
        one.shared.tick()
        assert one.peer.fed == []

    _with_gates(tmp_path, work)
