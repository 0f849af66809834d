"""Starting, losing, restarting and stopping one server, with a connection that never leaves memory."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.waiting import run_async

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core import server_lifecycle
from thoughtgate.core.record_events import Record
from thoughtgate.core.server_lifecycle import FAILED, MAX_FAILURES, RUNNING, STOPPED, WAITING
from thoughtgate.errors import PeerError, PeerGone, ServerExited, upstream_error
from thoughtgate.upstream.client import Receiver, ServerConnection
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.upstream.server_runner import MAX_NOISE, ServerRunner
from thoughtgate.wire.message import Fault, Message, RequestId


class Carrier:
    pid = 7

    def __init__(self) -> None:
        self.exit_code: int | None = None

    async def open(self, receiver: Receiver) -> None: ...

    def send(self, body: dict[str, Any]) -> None: ...

    def abandon(self, ident: RequestId, cause: str = "") -> bool:
        return ident is not None and not cause

    async def close(self) -> None:
        self.exit_code = 0 if self.exit_code is None else self.exit_code


class Runner(ServerRunner):
    def __init__(self, **settings: Any) -> None:
        self.records: list[Record] = []
        super().__init__(ServerSettings("kid", **settings), self.records.append, ServerLog())
        self.down: list[str] = []
        self.opening: Callable[[], None] = lambda: None
        self.go = asyncio.Event()
        self.go.set()

    def _connect(self) -> ServerConnection:
        self.carrier = Carrier()
        return ServerConnection(self.carrier, self)

    async def _open(self, connection: ServerConnection) -> None:
        await connection.connect()
        await self.go.wait()
        self.opening()

    def _went_down(self, gone: PeerGone) -> None:
        self.down.append(str(gone))

    def server_sent(self, message: Message) -> None: ...

    def server_lost(self, gone: PeerGone) -> None: ...

    def server_refused(self, fault: Fault, line: bytes) -> None: ...

    def server_reopened(self, connection: ServerConnection) -> None: ...

    def end(self, code: int) -> None:
        """The process ends by itself."""
        self.carrier.exit_code = code
        self.lost(ServerExited(f"the server exited with code {code}"))

    @property
    def recorded(self) -> list[tuple[str, dict[str, Any]]]:
        return [(one.type, one.body["server"]) for one in self.records]

    async def until(self, state: str) -> None:
        async with asyncio.timeout(10):
            while self.standing.state != state:  # noqa: ASYNC110  no event marks a state
                await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def no_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_lifecycle, "FIRST_BACKOFF_S", 0.0)


def test_a_start_and_a_stop_are_recorded() -> None:
    async def main() -> Runner:
        runner = Runner()
        first = await runner.ready()
        assert await runner.ready() is first
        assert runner.is_up
        await runner.dispose()
        return runner

    runner = run_async(main())

    assert runner.standing.state == STOPPED
    assert runner.recorded == [
        ("server_started", {"pid": 7}),
        (
            "server_exited",
            {"state": "exited", "exit_code": 0, "cause": "stopped", "reason": "stopped"},
        ),
    ]


def test_a_server_that_ends_is_started_again_without_a_call() -> None:
    async def main() -> Runner:
        runner = Runner()
        await runner.ready()
        runner.end(3)
        assert runner.standing.state == WAITING
        await runner.until(RUNNING)
        return runner

    runner = run_async(main())

    reason = "the server exited with code 3"
    assert runner.down == [reason]
    assert runner.recorded[1:] == [
        (
            "server_exited",
            {
                "state": "exited",
                "exit_code": 3,
                "cause": "exited",
                "kind": "upstream_connection_failed",
                "reason": reason,
            },
        ),
        ("server_started", {"pid": 7}),
    ]
    assert runner.log is not None
    assert runner.log.tail(1) == [f"[thoughtgate] {reason}"]


def test_a_server_that_failed_often_is_started_again_by_a_call() -> None:
    def refuse() -> None:
        raise PeerGone("no such file")

    async def main() -> Runner:
        runner = Runner()
        runner.opening = refuse
        with pytest.raises(PeerError, match="no such file"):
            await runner.ready()
        await runner.until(FAILED)
        runner.opening = lambda: None
        await runner.ready()
        return runner

    runner = run_async(main())

    names = {"cause": "start_failed", "kind": "server_start_failed"}
    facts = {"state": "failed_to_start", **names, "reason": "no such file"}
    failed = ("server_exited", facts)
    assert runner.recorded == [failed] * (MAX_FAILURES + 1) + [("server_started", {"pid": 7})]


def test_a_server_that_needs_a_login_is_started_by_the_next_call_only() -> None:
    def refuse() -> None:
        raise upstream_error("login_required", "run: thoughtgate login kid", status=401)

    async def main() -> Runner:
        runner = Runner()
        runner.opening = refuse
        for _ in range(MAX_FAILURES + 2):
            with pytest.raises(PeerError, match="thoughtgate login kid") as failed:
                await runner.ready()
            assert failed.value.kind == "upstream_unauthorized"
            assert runner.standing.state == STOPPED
            assert runner.standing.reason == "run: thoughtgate login kid"
        runner.opening = lambda: None
        await runner.ready()
        return runner

    assert run_async(main()).recorded == [("server_started", {"pid": 7})]


def test_an_attempt_that_fails_as_the_one_before_is_not_logged_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refuse() -> None:
        raise upstream_error("login_required", "run: thoughtgate login kid", status=401)

    async def main() -> None:
        runner = Runner()
        runner.opening = refuse
        for _ in range(3):
            with pytest.raises(PeerError):
                await runner.ready()
        runner.opening = lambda: None
        await runner.ready()

    with caplog.at_level("INFO", "thoughtgate"):
        run_async(main())

    said = [(one.getMessage(), getattr(one, "reason", None)) for one in caplog.records]
    assert said == [
        ("server starting", None),
        ("server stopped", "run: thoughtgate login kid"),
        ("server running", None),
    ]


def test_a_call_does_not_wait_for_a_distant_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_lifecycle, "FIRST_BACKOFF_S", 30.0)

    async def main() -> None:
        runner = Runner()
        await runner.ready()
        runner.end(3)
        with pytest.raises(PeerError, match=r"code 3; the next try is in \d+ s"):
            await runner.ready()
        await runner.dispose()

    run_async(main())


def test_a_server_that_ends_during_its_start_is_lost_once_it_is_complete() -> None:
    async def main() -> Runner:
        runner = Runner()
        runner.opening = lambda: runner.end(9)
        with pytest.raises(PeerError, match="code 9") as failed:
            await runner.ready()
        assert failed.value.kind == "server_start_failed"
        runner.opening = lambda: None
        await runner.ready()
        return runner

    runner = run_async(main())

    assert [kind for kind, _ in runner.recorded] == [
        "server_started",
        "server_exited",
        "server_started",
    ]


def test_a_start_that_takes_too_long_is_given_up() -> None:
    async def main() -> Runner:
        runner = Runner(start_timeout_s=0.01)
        runner.go.clear()
        with pytest.raises(PeerError, match="not ready within"):
            await runner.ready()
        await runner.dispose()
        return runner

    assert run_async(main()).recorded[0][1]["state"] == "failed_to_start"


def test_whoever_waits_for_a_start_is_told_of_a_stop() -> None:
    async def main() -> None:
        runner = Runner()
        runner.go.clear()
        waiting = asyncio.ensure_future(runner.ready())
        await runner.until("starting")
        await runner.stop()
        with pytest.raises(PeerError, match="stopped"):
            await waiting
        with pytest.raises(PeerError, match="by hand"):
            await runner.ready()
        runner.go.set()
        assert (await runner.restart()).is_open

    run_async(main())


@pytest.mark.promise("bounded-memory")
def test_a_server_that_floods_is_lost() -> None:
    async def main() -> Runner:
        runner = Runner()
        await runner.ready()
        assert all(runner.check_noise() for _ in range(MAX_NOISE))
        assert not runner.check_noise()
        await runner.dispose()
        return runner

    state = run_async(main()).recorded[1][1]
    assert state == {
        "state": "lost",
        "cause": "connection_lost",
        "kind": "upstream_connection_failed",
        "reason": "the server floods its output with lines that are no messages",
    }


def test_a_disabled_server_is_not_started() -> None:
    async def main() -> None:
        with pytest.raises(PeerError, match="disabled"):
            await Runner(enabled=False).ready()

    run_async(main())
