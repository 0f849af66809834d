"""The engine of a gate on an asyncio event loop."""

import asyncio

import pytest
from tests.support.drivers import Listener, Workbench
from tests.support.frames import call, line
from tests.support.shim_bench import Ledger, NobodyThere, SlowDesk
from tests.support.waiting import run_async

from thoughtgate.core.approval import Decision
from thoughtgate.core.envelope import Run
from thoughtgate.core.events import AgentSent
from thoughtgate.core.judge import Judge
from thoughtgate.gate import event_loop
from thoughtgate.gate.clock import now
from thoughtgate.gate.event_loop import HeldCallTimer, open_outbox
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.policy.call import APPROVE
from thoughtgate.policy.policy import Policy


class _Desk(SlowDesk):
    """Counts how often decisions are looked for."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.looked = asyncio.Event()

    def poll(self, at: float) -> list[tuple[str, Decision]]:
        """Look once more."""
        self.looks += 1
        self.looked.set()
        return super().poll(at)


class _Bench:
    """One session with a timer on the running loop."""

    def __init__(self) -> None:
        self.desk = _Desk()
        governor = Governor(
            Judge(Policy(default=APPROVE), "run"), Ledger(), Run("run"), approvals=self.desk
        )
        self.authority = LocalAuthority(governor)
        self.timer = HeldCallTimer(self.authority)
        self.agent = Listener()
        self.workbench = Workbench(self.authority)
        self.driver = self.workbench.driver()
        self.driver.agent = self.agent

    def call(self, ident: int) -> None:
        self.driver.feed(AgentSent(line(call(ident, "x")), now()), self.agent)

    async def look(self) -> None:
        """Wait for the next look for decisions."""
        self.desk.looked.clear()
        await asyncio.wait_for(self.desk.looked.wait(), 10)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "POLL_EVERY_S", 0.001)


def _has_timer(timer: HeldCallTimer) -> bool:
    return timer._timer is not None


def test_decisions_are_looked_for_only_while_calls_are_held() -> None:
    async def main() -> None:
        bench = _Bench()
        assert not _has_timer(bench.timer)
        bench.call(1)
        bench.call(2)
        await bench.look()
        await bench.look()
        bench.desk.decide(0, approved=True)
        await bench.look()
        bench.workbench.outbox.flush()
        assert [frame.key for frame in bench.agent.forwarded] == [1]
        assert _has_timer(bench.timer)
        bench.desk.decide(1, approved=False)
        await bench.look()
        assert [frame.key for frame in bench.agent.taken] == [2]
        assert not _has_timer(bench.timer)
        looks = bench.desk.looks
        bench.call(3)
        await bench.look()
        assert bench.desk.looks > looks
        bench.timer.close()

    run_async(main())


def test_a_closed_timer_looks_no_more() -> None:
    async def main() -> None:
        bench = _Bench()
        bench.call(1)
        bench.timer.close()
        assert bench.timer._timer is not None
        assert bench.timer._timer.cancelled()
        bench.call(2)
        assert len(bench.authority.held) == 2
        assert bench.timer._timer.cancelled()

    run_async(main())


def test_the_outbox_of_a_loop_is_flushed_once_per_turn_after_the_record() -> None:
    async def main() -> None:
        ledger = Ledger()
        governor = Governor(
            Judge(Policy(default=APPROVE), "run"), ledger, Run("run"), approvals=NobodyThere()
        )
        authority = LocalAuthority(governor)
        flushes: list[int] = []
        told: list[str] = []
        flush = authority.flush

        def count() -> bool:
            flushes.append(len(told))
            return flush()

        authority.flush = count  # type: ignore[method-assign]  # counts on the way
        outbox = open_outbox(authority)
        done = asyncio.Event()
        outbox.later(told.append, "one")
        outbox.later(told.append, "two")
        outbox.later(done.set)
        assert told == []
        await asyncio.wait_for(done.wait(), 10)
        assert (told, flushes) == (["one", "two"], [0])

    run_async(main())


def test_one_answer_that_fails_takes_no_other_with_it() -> None:
    told: list[int] = []
    failures: list[str] = []

    def fail() -> None:
        raise ValueError("one agent's trouble")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(str(context["exception"])))
        governor = Governor(Judge(Policy(), "run"), Ledger(), Run("run"), approvals=NobodyThere())
        outbox = open_outbox(LocalAuthority(governor))
        outbox.later(told.append, 1)
        outbox.later(fail)
        outbox.later(told.append, 2)
        done = asyncio.Event()
        outbox.later(done.set)
        await done.wait()

    run_async(main())
    assert told == [1, 2]
    assert failures == ["one agent's trouble"]
