"""The one table of calls that wait for a person."""

from typing import Any

from tests.support.drivers import Listener, Workbench
from tests.support.frames import call, line
from tests.support.shim_bench import Ledger, SlowDesk

from thoughtgate.core.envelope import Run
from thoughtgate.core.events import AgentSent
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import Ruling
from thoughtgate.core.task import Task
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.task_runner import NoKeeper
from thoughtgate.policy.call import APPROVE
from thoughtgate.policy.policy import Policy


class _Keeper(NoKeeper):
    """Keeps tasks beyond the process, as far as anybody is told."""

    is_durable = True

    def find(self, task_id: str) -> Task | None:
        """Know nothing more of it."""
        del task_id
        return None


class _Bench:
    """Sessions whose calls are all held."""

    def __init__(self, *, durable: bool = False) -> None:
        self.desk = SlowDesk()
        self.ledger = Ledger()
        keeper = _Keeper() if durable else NoKeeper()
        judge = Judge(Policy(default=APPROVE), "run")
        self.governor = Governor(judge, self.ledger, Run("run"), approvals=self.desk, tasks=keeper)
        self.authority = LocalAuthority(self.governor)
        # Otherwise the gate would list the tools before it makes a task.
        judge.tools.learn("srv", ({"name": "x"},))
        self.held = self.authority.held
        self.workbench = Workbench(self.authority)

    def agent(self) -> "_Agent":
        """Open one more session."""
        return _Agent(self.workbench)

    def ended(self) -> dict[str, tuple[str, str]]:
        """Return the calls that ended on the record, with their status and kind of error."""
        self.authority.flush()
        bodies = [one.body for one in self.ledger.of("recorded") if one.type == "tool_call_end"]
        return {one["call"]["call_id"]: (one["status"], one["error"]["kind"]) for one in bodies}


class _Agent(Listener):
    def __init__(self, workbench: Workbench) -> None:
        super().__init__()
        self.workbench = workbench
        self.driver = workbench.driver()
        self.driver.agent = self

    def calls(self, ident: int, **params: Any) -> None:
        """Call a tool."""
        body = call(ident, "x")
        body["params"].update(params)
        self.driver.feed(AgentSent(line(body), 1.0), self)

    @property
    def told(self) -> list[tuple[Any, str]]:
        """The answers it got, by id and kind of refusal."""
        return [(frame.key, frame.error) for frame in self.taken]

    @property
    def sent_on(self) -> list[Any]:
        """The ids of its requests that went to the server."""
        self.workbench.outbox.flush()
        return [frame.key for frame in self.forwarded]


def test_a_decision_goes_to_the_session_whose_call_was_held() -> None:
    bench = _Bench()
    ann, bob = bench.agent(), bench.agent()
    ann.calls(1)
    bob.calls(1)
    assert len(bench.held) == 2
    bench.workbench.outbox.flush()
    bench.workbench.scheduled.clear()
    bench.desk.decide(1, approved=True)
    bench.held.poll(2.0)

    assert bench.workbench.scheduled != []
    assert (ann.sent_on, bob.sent_on) == ([], [1])
    bench.desk.decide(0, approved=False)
    bench.held.poll(3.0)
    assert ann.told == [(1, "approval_rejected")]
    assert (ann.sent_on, len(bench.held)) == ([], 0)


def test_whoever_waits_for_held_calls_is_told_of_each() -> None:
    bench = _Bench()
    counts: list[int] = []
    bench.held.on_held = lambda: counts.append(len(bench.held))
    agent = bench.agent()
    agent.calls(1)
    agent.calls(2)

    assert counts == [1, 2]


def test_without_held_calls_nobody_looks_for_decisions() -> None:
    bench = _Bench()
    looks: list[float] = []

    def settled(at: float) -> list[Ruling]:
        looks.append(at)
        return []

    bench.governor.settled = settled  # type: ignore[method-assign]  # only counts
    bench.held.poll(1.0)
    assert looks == []
    bench.agent().calls(1)
    bench.held.poll(2.0)
    assert looks == [2.0]


def test_a_call_that_was_dropped_is_not_made_when_it_is_approved() -> None:
    bench = _Bench()
    agent = bench.agent()
    agent.calls(1)
    agent.calls(2)
    first, second = bench.desk.asked
    assert bench.held.is_of(first, agent.driver)
    assert not bench.held.is_of(second, bench.agent().driver)
    assert bench.held.drop(first)
    assert not bench.held.drop("never held")
    assert not bench.held.is_of(first, agent.driver)
    assert (first in bench.held, second in bench.held) == (False, True)
    bench.desk.decide(0, approved=True)
    bench.held.poll(2.0)

    assert (agent.sent_on, len(bench.held), bench.held.prevented) == ([], 1, 1)


def test_a_call_that_was_dropped_and_refused_was_not_prevented() -> None:
    bench = _Bench()
    bench.agent().calls(1)
    bench.held.drop(bench.desk.asked[0])
    bench.agent().calls(2)
    bench.desk.decide(0, approved=False)
    bench.held.poll(2.0)

    assert bench.held.prevented == 0


def test_a_gate_that_stops_withdraws_every_held_call() -> None:
    bench = _Bench()
    ann, bob = bench.agent(), bench.agent()
    ann.calls(1)
    bob.calls(2)
    bench.held.withdraw_all("the gate is stopping")

    assert ann.told == [(1, "approval_withdrawn")]
    assert bob.told == [(2, "approval_withdrawn")]
    assert len(bench.held) == 0
    assert {kind for _, kind in bench.ended().values()} == {"approval_withdrawn"}
    bench.desk.decide(0, approved=True)
    bench.held.poll(2.0)
    assert (ann.sent_on, bob.sent_on) == ([], [])


def test_a_session_that_ends_withdraws_its_own_calls_but_not_its_tasks() -> None:
    bench = _Bench()
    ann, bob = bench.agent(), bench.agent()
    ann.calls(1)
    ann.calls(2, task={})
    bob.calls(3)
    bench.held.withdraw_all("the session ended", ann.driver)

    assert [key for key, kind in ann.told if kind == "approval_withdrawn"] == [1]
    assert bob.told == []
    assert len(bench.held) == 2
    bench.desk.decide(1, approved=True)
    bench.held.poll(2.0)
    assert ann.sent_on == ["tg-run.2"]


def test_a_gate_that_stops_leaves_durable_tasks_to_the_next() -> None:
    bench = _Bench(durable=True)
    agent = bench.agent()
    agent.calls(1, task={})
    agent.calls(2)
    bench.held.withdraw_all("the gate is stopping")

    assert [key for key, kind in agent.told if kind == "approval_withdrawn"] == [2]
    assert len(bench.held) == 0
    assert bench.ended() == {
        "run.1": ("CANCELLED", "service_unavailable"),
        "run.2": ("ERROR", "approval_withdrawn"),
    }
