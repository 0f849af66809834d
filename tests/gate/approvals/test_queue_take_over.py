"""Gates that share a store: a held call that another gate took over, and clocks that differ."""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.support.approvals import a_desk, a_yes, held
from tests.support.postgres import PostgresServer
from tests.support.waiting import wait_for

from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import DURABLE, PENDING, RETRY_S, USED, WITHDRAWN, Approval, Decision
from thoughtgate.gate.approvals.queue import TAKEN_OVER, ApprovalQueue
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.engines.postgres import PostgresDatabase, connection_info
from thoughtgate.stores.gates import LIFE_S, GateStore

TIMEOUT_S = 120.0
WORKFLOWS = {"default": WorkflowSettings("default", timeout_s=TIMEOUT_S)}


class Gate:
    """A gate with a clock of its own, on a shared store."""

    def __init__(self, url: str, name: str, ahead_s: float = 0.0) -> None:
        self.ahead_s = ahead_s
        self.owner = f"gate|{name}"
        self.database = PostgresDatabase(*connection_info(url), clock=self.now)
        self.database.migrate()
        self.store = ApprovalStore(self.database)
        self.desk: ApprovalQueue = a_desk(self.store, WORKFLOWS, owner=self.owner)
        self.live()

    def now(self) -> float:
        return time.time() + self.ahead_s

    def live(self) -> None:
        """Renew the gate's row."""
        GateStore(self.database).renew(self.owner, self.now(), {}, self.now())

    def die(self) -> None:
        """Let the row end, as if the gate had been killed or stopped for long."""
        GateStore(self.database).renew(self.owner, self.now(), {}, self.now() - LIFE_S - 1)

    def ask(self, call_id: str, *, owner: str = "") -> Decision | None:
        return self.desk.ask(call_id, held(), "default", self.now(), owner=owner)

    def poll(self) -> list[tuple[str, Decision]]:
        return self.desk.poll(self.now())


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def gates(opened: ExitStack, postgres: PostgresServer, *ahead_s: float) -> tuple[Gate, ...]:
    url = postgres.url()
    made = tuple(Gate(url, f"g{number}", ahead) for number, ahead in enumerate(ahead_s))
    for gate in made:
        opened.callback(gate.database.close)
    return made


def approve(gate: Gate, ident: str) -> Approval:
    voted = gate.store.vote(ident, [a_yes(at=gate.now())], gate.now())
    assert isinstance(voted, Approval), voted
    return voted


def test_a_gate_whose_call_was_taken_over_tells_its_caller_and_spends_nothing(
    opened: ExitStack, postgres: PostgresServer
) -> None:
    first, second, person = gates(opened, postgres, 0, 0, 0)
    assert first.ask("one.1") is None
    first.die()
    assert second.ask("two.1") is None
    assert [each.id for each in person.store.listed(PENDING)] == ["a1"]
    approve(person, "a1")

    ((call_id, decision),) = first.poll()
    assert (call_id, decision.approved) == ("one.1", False)
    assert (decision.kind, decision.reason) == ("approval_withdrawn", TAKEN_OVER)
    assert first.desk.use("one.1") is not None
    ((_, decision),) = second.poll()
    assert decision.approved
    assert second.desk.use("two.1") is None
    assert second.desk.use("two.1") is not None


def test_a_gate_that_saw_the_approval_before_it_was_stopped_spends_nothing(
    opened: ExitStack, postgres: PostgresServer
) -> None:
    first, second = gates(opened, postgres, 0, 0)
    first.ask("one.1")
    approve(second, "a1")
    ((_, seen),) = first.poll()
    assert seen.approved
    first.die()
    taken = second.ask("two.1")
    assert taken is not None
    assert taken.approved
    refused = first.desk.use("one.1")
    assert refused is not None
    assert (refused.kind, refused.reason) == ("approval_withdrawn", TAKEN_OVER)
    assert second.desk.use("two.1") is None


def test_a_gate_that_wakes_up_does_not_withdraw_what_was_taken_over(
    opened: ExitStack, postgres: PostgresServer
) -> None:
    first, second = gates(opened, postgres, 0, 0)
    first.ask("one.1")
    first.die()
    second.ask("two.1")
    first.desk.withdraw("one.1", "the caller is gone", first.now())
    first.desk.close(first.now())
    (asked,) = second.store.listed()
    assert (asked.status, asked.owner) == (PENDING, second.owner)


def test_a_tasks_question_that_another_gate_carries_on_is_spent_there_only(
    opened: ExitStack, postgres: PostgresServer
) -> None:
    first, second = gates(opened, postgres, 0, 0)
    first.ask("one.1", owner=f"{DURABLE}tg_1")
    approve(second, "a1")
    ((_, seen),) = first.poll()
    taken = second.ask("two.1", owner=f"{DURABLE}tg_1")
    assert seen.approved
    assert taken is not None
    assert first.desk.use("one.1") is not None
    assert second.desk.use("two.1") is None


def test_a_shims_question_belongs_to_its_service_in_a_shared_store(
    opened: ExitStack, postgres: PostgresServer
) -> None:
    (service,) = gates(opened, postgres, 0)
    service.ask("one.1", owner="gate|shim")
    assert service.store.listed()[0].owner == service.owner


@pytest.mark.parametrize("ahead_s", [-60.0, 60.0])
def test_a_minute_between_clocks_changes_no_deadline(
    opened: ExitStack, postgres: PostgresServer, ahead_s: float
) -> None:
    wrong, right = gates(opened, postgres, ahead_s, 0)
    wrong.ask("one.1")
    (shown,) = right.store.listed(PENDING)
    assert shown.expires_at - right.now() == pytest.approx(TIMEOUT_S, abs=5)
    (own,) = wrong.store.listed(PENDING)
    assert own.expires_at - wrong.now() == pytest.approx(TIMEOUT_S, abs=5)

    # Neither gate expires the other's request early, and the approval is not too old to be used.
    right.store.settle_due(right.now())
    wrong.store.settle_due(wrong.now())
    voted = approve(right, "a1")
    assert voted.votes[0].at == pytest.approx(right.now(), abs=5)
    ((_, decision),) = wrong.poll()
    assert decision.approved
    assert decision.votes[0].at == pytest.approx(wrong.now(), abs=5)
    assert wrong.desk.use("one.1") is None
    assert right.store.listed()[0].status == USED


def test_what_could_not_be_withdrawn_is_withdrawn_when_the_store_is_back(
    opened: ExitStack,
) -> None:
    server = PostgresServer()
    opened.callback(server.remove)
    server.start()
    (gate,) = gates(opened, server, 0)
    gate.ask("one.1")
    server.stop()
    gate.desk.withdraw("one.1", "the caller is gone", gate.now())
    refused = gate.ask("one.2")
    assert refused is not None
    assert (refused.kind, refused.retry_after_s) == ("service_unavailable", RETRY_S)
    server.start()
    again = Gate(server.url("t1"), "other")
    opened.callback(again.database.close)

    wait_for(lambda: not gate.database.is_away, what="the store that is back")
    gate.ask("one.3")
    statuses = {each.call_id: each.status for each in again.store.listed()}
    assert statuses == {"one.1": WITHDRAWN, "one.3": PENDING}
