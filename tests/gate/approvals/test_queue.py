"""The desk: what a driver asks it, and a gate killed at every step."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.approvals import (
    CALL,
    NOW,
    a_desk,
    a_no,
    a_store,
    a_yes,
    held,
)
from tests.support.waiting import wait_for

from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import (
    DURABLE,
    PENDING,
    USE_WITHIN_S,
    Approval,
    Decision,
    Refusal,
    Vote,
)
from thoughtgate.core.grant import SESSION, TOOL, Remember
from thoughtgate.errors import StoreError
from thoughtgate.gate.approvals import queue as module
from thoughtgate.gate.approvals.queue import (
    ASKED_ONCE,
    SETTLE_EVERY_S,
    ApprovalQueue,
    decision_of,
    new_approval_id,
    open_approvals,
    open_store,
)
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.redaction import Redactor
from thoughtgate.stores.approvals import ApprovalStore, Limits
from thoughtgate.stores.open_database import open_database

ANN = "terminal:ann"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ApprovalStore]:
    opened = a_store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def people(tmp_path: Path) -> Iterator[ApprovalStore]:
    """The store as another process opens it."""
    opened = a_store(tmp_path)
    yield opened
    opened.close()


class Listener:
    """A channel that writes down what it is told."""

    name = "listener"

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    def show_request(self, approval: Approval) -> None:
        self.heard.append(("asked", approval.id))

    def show_outcome(self, approval: Approval) -> None:
        self.heard.append((approval.status, approval.id))


class Broken:
    """A channel that fails whenever it is told something."""

    name = "broken"

    def show_request(self, approval: Approval) -> None:
        raise OSError(approval.id)

    def show_outcome(self, approval: Approval) -> None:
        raise OSError(approval.id)


def ask(desk: ApprovalQueue, call_id: str = "run.1", at: float = NOW) -> Decision | None:
    return desk.ask(call_id, held(), "default", at)


# Asking, deciding, using.


@pytest.mark.promise("approval-is-exact")
def test_an_approved_call_may_run_once(store: ApprovalStore, people: ApprovalStore) -> None:
    desk = a_desk(store)
    assert ask(desk) is None
    assert desk.pending == 1
    assert desk.poll(NOW + 1) == []
    assert desk.use("run.1") is not None
    people.vote("a1", [a_yes(reason="go on")], NOW + 2)
    ((call_id, decision),) = desk.poll(NOW + 3)
    assert call_id == "run.1"
    votes = (a_yes(reason="go on"),)
    assert decision == Decision(
        approved=True, by=ANN, channel="terminal", reason="go on", votes=votes, approval_id="a1"
    )
    assert desk.pending == 0
    assert desk.use("run.1") is None
    assert desk.use("run.1") is not None
    assert desk.poll(NOW + 4) == []


def test_a_refused_call_never_runs(store: ApprovalStore, people: ApprovalStore) -> None:
    desk = a_desk(store)
    ask(desk)
    people.vote("a1", [a_no(reason="no")], NOW + 2)
    ((_, decision),) = desk.poll(NOW + 3)
    assert decision == Decision(
        approved=False,
        kind="approval_rejected",
        by="terminal:bob",
        channel="terminal",
        reason="no",
        votes=(a_no(reason="no"),),
        approval_id="a1",
    )
    assert desk.use("run.1") is not None


def test_silence_is_a_timeout_on_time(store: ApprovalStore) -> None:
    desk = a_desk(store)
    ask(desk)
    assert desk.poll(NOW + 299.9) == []
    ((_, decision),) = desk.poll(NOW + 300)
    assert (decision.approved, decision.kind) == (False, "approval_timeout")
    assert desk.use("run.1") is not None


def test_silence_approves_where_the_workflow_says_so(store: ApprovalStore) -> None:
    desk = a_desk(
        store, {"default": WorkflowSettings("default", timeout_s=10, on_timeout="approve")}
    )
    ask(desk)
    ((_, decision),) = desk.poll(NOW + 10)
    assert (decision.approved, decision.auto, decision.channel) == (True, True, "system")
    assert desk.use("run.1") is None


def test_an_approval_that_came_long_ago_is_not_spent(
    store: ApprovalStore, people: ApprovalStore
) -> None:
    desk = a_desk(store)
    ask(desk)
    people.vote("a1", [a_yes()], NOW + 1)
    desk.poll(NOW + 2)
    desk.poll(NOW + 3 + USE_WITHIN_S)
    assert desk.use("run.1") is not None


def test_a_remembered_decision_answers_at_once(store: ApprovalStore, people: ApprovalStore) -> None:
    desk = a_desk(store)
    ask(desk)
    people.vote("a1", [a_yes()], NOW + 1, remember=Remember(SESSION, TOOL), grant_id="g1")
    desk.poll(NOW + 2)
    decision = ask(desk, "run.2", NOW + 3)
    assert decision is not None
    assert (decision.approved, decision.auto, decision.by) == (True, True, ANN)
    assert desk.facts("run.2")["grant"] == "g1"
    assert desk.use("run.2") is None
    assert desk.use("run.2") is not None


def test_a_workflow_may_ask_once_per_tool_and_session(
    store: ApprovalStore, people: ApprovalStore
) -> None:
    desk = a_desk(store, {"default": WorkflowSettings("default", ask="once_per_tool")})
    ask(desk)
    (asked,) = store.listed(PENDING)
    assert asked.reason == f"it deletes{ASKED_ONCE}", "who approves sees what else that allows"
    people.vote("a1", [a_yes()], NOW + 1)
    desk.poll(NOW + 2)
    decision = desk.ask("run.2", held(CALL._replace(arguments={"path": "/y"})), "default", NOW + 3)
    assert decision is not None
    assert (decision.approved, decision.auto, decision.by) == (True, True, ANN)
    other = CALL._replace(name="other"), CALL._replace(session="s2")
    for number, call in enumerate(other):
        assert desk.ask(f"run.{number + 3}", held(call), "default", NOW + 4) is None, "asks again"
    (grant,) = store.grants(NOW + 5)
    assert (grant.scope, grant.lifetime, grant.by) == (TOOL, SESSION, ANN)


def test_a_denial_and_a_timeout_are_not_remembered(
    store: ApprovalStore, people: ApprovalStore
) -> None:
    once = WorkflowSettings("default", ask="once_per_tool", on_timeout="approve", timeout_s=60)
    desk = a_desk(store, {"default": once})
    ask(desk)
    people.vote("a1", [a_no()], NOW + 1)
    desk.poll(NOW + 2)
    ask(desk, "run.2", NOW + 3)
    ((_, decision),) = desk.poll(NOW + 100)
    assert decision.approved
    assert store.grants(NOW + 101) == []


def test_a_workflow_decides_how_people_are_asked(store: ApprovalStore) -> None:
    strict = WorkflowSettings(
        "ops", channel="slack", approvers=("U1",), required=2, timeout_s=60, remember=False
    )
    desk = a_desk(store, {"ops": strict})
    assert desk.ask("run.1", held(), "ops", NOW) is None
    (asked,) = store.listed(PENDING)
    assert (asked.workflow, asked.channel, asked.required) == ("ops", "slack", 2)
    assert (asked.approvers, asked.remember) == (("U1",), False)
    assert asked.expires_at == NOW + 60
    assert asked.rule == "rules[0]"
    assert desk.facts("run.1") == {
        "approval_id": "a1",
        "channel": "slack",
        "digest": asked.digest,
        "expires_at": "2027-01-15T08:01:00.000Z",
        "required": 2,
    }
    assert desk.facts("run.9") == {}


def test_a_workflow_that_does_not_exist_refuses(store: ApprovalStore) -> None:
    desk = a_desk(store, {"ops": WorkflowSettings("ops")})
    decision = desk.ask("run.1", held(), "nope", NOW)
    assert decision is not None
    assert (decision.approved, decision.kind) == (False, "service_unavailable")
    assert desk.ask("run.2", held(), "", NOW) is None
    assert store.listed(PENDING)[0].workflow == "default"


def test_a_reload_applies_to_what_is_asked_next(store: ApprovalStore) -> None:
    desk = a_desk(store)
    ask(desk)
    desk.reload({"default": WorkflowSettings("default", timeout_s=7)}, Redactor(), "v2")
    ask(desk, "run.2")
    one, two = store.listed(PENDING)
    assert (one.policy_version, two.policy_version) == ("v1", "v2")
    assert two.expires_at == NOW + 7
    assert one.digest != two.digest


def test_secrets_are_masked_in_what_people_see(store: ApprovalStore) -> None:
    desk = a_desk(store, redactor=Redactor(literals=["hunter22"]))
    call = CALL._replace(arguments={"password": "x", "note": "say hunter22", "n": 1})
    desk.ask("run.1", held(call, reason="uses hunter22"), "default", NOW)
    (asked,) = store.listed(PENDING)
    mask = "[injected secret, 8 characters]"
    shown = {"password": "[secret, 1 character]", "note": f"say {mask}", "n": 1}
    assert json.loads(asked.arguments) == shown
    assert asked.reason == f"uses {mask}"
    assert asked.client == ""
    assert not asked.folded


def test_what_the_client_says_it_is_is_stored_masked_and_on_record(store: ApprovalStore) -> None:
    desk = a_desk(store, redactor=Redactor(literals=["hunter22"]))
    desk.ask("run.1", held()._replace(client="editor 2"), "default", NOW)
    assert desk.facts("run.1")["client"] == "editor 2"
    desk.ask("run.2", held()._replace(client="x hunter22"), "default", NOW)
    shown = {each.call_id: each.client for each in store.listed(PENDING)}
    assert shown["run.1"] == "editor 2"
    assert "hunter22" not in shown["run.2"]
    assert "[injected secret, 8 characters]" in shown["run.2"]
    desk.ask("run.3", held(), "default", NOW)
    assert "client" not in desk.facts("run.3")


# What bad input and bad luck get.


def test_too_many_questions_are_refused_with_their_own_kinds(store: ApprovalStore) -> None:
    desk = a_desk(store, limits=Limits(per_principal=1, total=2))
    assert ask(desk, "run.1") is None
    own = ask(desk, "run.2")
    assert own is not None
    assert own.kind == "rate_limited"
    other = held(CALL._replace(principal="other"))
    assert desk.ask("run.3", other, "default", NOW) is None
    total = desk.ask("run.4", held(CALL._replace(principal="third")), "default", NOW)
    assert total is not None
    assert total.kind == "service_unavailable"
    assert desk.facts("run.4") == {}


@pytest.mark.parametrize(
    "call",
    [
        CALL._replace(arguments={"a": "\ud800"}),
        CALL._replace(arguments={"a": float("nan")}),
        CALL._replace(name="\ud800"),
    ],
)
def test_a_call_that_nothing_can_bind_to_is_refused(store: ApprovalStore, call: object) -> None:
    desk = a_desk(store)
    decision = desk.ask("run.1", held()._replace(call=call), "default", NOW)  # type: ignore[arg-type]  # parametrized
    assert decision is not None
    assert (decision.approved, decision.kind) == (False, "invalid_params")


def test_a_store_that_fails_means_denial(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    desk = a_desk(store)
    ask(desk, "run.1")
    store.vote("a1", [a_yes()], NOW + 1)
    desk.poll(NOW + 1)
    ask(desk, "run.2")
    store.close()
    decision = ask(desk, "run.3")
    assert decision is not None
    assert (decision.approved, decision.kind) == (False, "service_unavailable")
    assert desk.use("run.1") is not None
    assert desk.poll(NOW + 299) == []
    ((call_id, late),) = desk.poll(NOW + 300 + SETTLE_EVERY_S)
    assert (call_id, late.approved, late.kind) == ("run.2", False, "approval_timeout")
    desk.withdraw("run.2", "gone", NOW + 400)
    desk.close(NOW + 400)


def test_a_lost_store_denies_even_where_silence_approves(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    desk = a_desk(
        store, {"default": WorkflowSettings("default", timeout_s=10, on_timeout="approve")}
    )
    ask(desk)
    store.close()
    ((_, decision),) = desk.poll(NOW + 10 + SETTLE_EVERY_S)
    assert not decision.approved


def test_a_row_changed_to_another_call_is_not_honoured(
    store: ApprovalStore, tmp_path: Path
) -> None:
    desk = a_desk(store)
    ask(desk)
    intruder = open_database(tmp_path)
    with intruder.write() as connection:
        connection.execute(
            "UPDATE approvals SET digest = 'other', status = 'approved', rev = rev + 100"
        )
    intruder.close()
    ((_, decision),) = desk.poll(NOW + 1)
    assert (decision.approved, decision.kind) == (False, "service_unavailable")
    assert desk.use("run.1") is not None


def test_ids_that_are_taken_are_passed_over(store: ApprovalStore) -> None:
    assert ask(a_desk(store), "run.1") is None
    assert ask(a_desk(store), "run.2") is None
    assert {each.id for each in store.listed()} == {"a1", "a2"}


def test_a_source_of_ids_that_repeats_itself_refuses(store: ApprovalStore) -> None:
    desk = ApprovalQueue(store, {}, "o", Redactor(), lambda: "same", policy_version="v1")
    assert ask(desk, "run.1") is None
    decision = ask(desk, "run.2")
    assert decision is not None
    assert decision.kind == "service_unavailable"


# Withdrawing.


def test_a_withdrawn_question_cannot_be_answered_any_more(
    store: ApprovalStore, people: ApprovalStore
) -> None:
    listener = Listener()
    desk = a_desk(store, channels=(listener,))
    ask(desk)
    desk.withdraw("run.1", "the caller cancelled", NOW + 1)
    late = people.vote("a1", [a_yes()], NOW + 2)
    assert isinstance(late, Refusal)
    assert "the caller cancelled" in late.text
    assert desk.poll(NOW + 3) == []
    assert desk.use("run.1") is not None
    assert listener.heard == [("asked", "a1"), ("withdrawn", "a1")]


def test_withdrawing_after_the_approval_voids_it(
    store: ApprovalStore, people: ApprovalStore
) -> None:
    desk = a_desk(store)
    ask(desk)
    people.vote("a1", [a_yes()], NOW + 1)
    desk.poll(NOW + 2)
    desk.withdraw("run.1", "the caller is gone", NOW + 3)
    assert desk.use("run.1") is not None
    found = people.get("a1")
    assert isinstance(found, Approval)
    assert found.status == "void"
    desk.withdraw("run.1", "again", NOW + 4)


def test_a_desk_that_closes_withdraws_everything_but_tasks(store: ApprovalStore) -> None:
    desk = a_desk(store)
    ask(desk, "run.1")
    desk.ask("run.2", held(), "default", NOW, owner=DURABLE + "tg_1")
    desk.close(NOW + 1)
    assert {each.id: each.status for each in store.listed()} == {"a1": "withdrawn", "a2": "pending"}
    assert desk.pending == 0


def test_a_question_that_somebody_else_withdraws_is_news(
    store: ApprovalStore, people: ApprovalStore
) -> None:
    desk = a_desk(store)
    ask(desk)
    people.withdraw("a1", "not needed", NOW + 1)
    ((_, decision),) = desk.poll(NOW + 2)
    assert (decision.kind, decision.reason) == ("approval_withdrawn", "not needed")


def test_channels_hear_of_questions_and_their_ends_even_beside_a_broken_one(
    store: ApprovalStore, people: ApprovalStore
) -> None:
    listener = Listener()
    desk = a_desk(store, channels=(Broken(), listener))
    ask(desk)
    people.vote("a1", [a_yes()], NOW + 1)
    assert len(desk.poll(NOW + 2)) == 1
    assert listener.heard == [("asked", "a1"), ("approved", "a1")]


def test_other_gates_changes_are_not_ours(store: ApprovalStore, tmp_path: Path) -> None:
    other_store = a_store(tmp_path)
    desk, other = a_desk(store), a_desk(other_store)
    ask(desk, "run.1")
    ask(other, "other.1")
    store.vote("a2", [a_yes()], NOW + 1)
    assert desk.poll(NOW + 2) == []
    assert [call_id for call_id, _ in other.poll(NOW + 2)] == ["other.1"]
    other_store.close()


def test_a_vote_that_does_not_yet_decide_is_not_a_decision(
    store: ApprovalStore, people: ApprovalStore
) -> None:
    desk = a_desk(store, {"default": WorkflowSettings("default", required=2)})
    ask(desk)
    people.vote("a1", [a_yes(ANN)], NOW + 1)
    assert desk.poll(NOW + 2) == []
    people.vote("a1", [a_yes("terminal:bob")], NOW + 3)
    assert len(desk.poll(NOW + 4)) == 1


def two_people(store: ApprovalStore) -> ApprovalQueue:
    return a_desk(store, {"default": WorkflowSettings("default", required=2, timeout_s=60)})


def test_too_few_votes_in_time_are_named(store: ApprovalStore, people: ApprovalStore) -> None:
    desk = two_people(store)
    ask(desk)
    people.vote("a1", [a_yes(ANN)], NOW + 1)
    ((_, decision),) = desk.poll(NOW + 60)
    assert (decision.kind, decision.by) == ("approval_timeout", "")
    assert decision.reason == "1 of 2 approved in time"
    assert decision.votes == (a_yes(ANN),)
    assert decision.approval_id == "a1"


def test_votes_that_were_seen_are_named_when_the_store_is_lost(
    store: ApprovalStore, people: ApprovalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = two_people(store)
    ask(desk)
    people.vote("a1", [a_yes(ANN)], NOW + 1)
    assert desk.poll(NOW + 2) == []

    def lost(*_: object, **__: object) -> None:
        raise StoreError("gone")

    for name in ("has_due", "changed", "withdraw"):
        monkeypatch.setattr(store, name, lost)
    ((_, decision),) = desk.poll(NOW + 60 + SETTLE_EVERY_S)
    assert (decision.kind, decision.votes) == ("approval_timeout", (a_yes(ANN),))
    assert decision.reason == "1 of 2 approved in time"


def test_a_question_that_is_taken_back_says_who_had_voted(
    store: ApprovalStore, people: ApprovalStore
) -> None:
    desk = two_people(store)
    ask(desk)
    people.vote("a1", [a_yes(ANN)], NOW + 1)
    assert desk.withdraw("run.1", "gone", NOW + 2) == (a_yes(ANN),)
    assert desk.withdraw("run.1", "gone", NOW + 3) == ()


# A shim that outlives the service, a task that outlives both.


def test_a_waiting_shims_question_survives_a_restart_of_its_service(
    store: ApprovalStore, people: ApprovalStore
) -> None:
    a_desk(store).ask("run.1", held(), "default", NOW, owner="shim-1")
    restarted = a_desk(people)
    assert restarted.ask("run.1", held(), "default", NOW + 1, owner="shim-1") is None
    assert len(store.listed()) == 1
    store.vote("a1", [a_yes()], NOW + 2)
    assert len(restarted.poll(NOW + 3)) == 1
    assert restarted.use("run.1") is None


@pytest.mark.parametrize("answer", [a_yes(), a_no()])
def test_a_task_finds_what_was_decided_while_no_gate_was_there(
    store: ApprovalStore, people: ApprovalStore, answer: Vote
) -> None:
    first = a_desk(store)
    first.ask("run.1", held(), "default", NOW, owner=DURABLE + "tg_1")
    first.close(NOW + 1)
    people.vote("a1", [answer], NOW + 2)
    later = a_desk(people)
    decision = later.ask("later.1", held(), "default", NOW + 3, owner=DURABLE + "tg_1")
    assert decision is not None
    assert decision.approved is answer.approve
    assert (later.use("later.1") is None) is answer.approve
    again = a_desk(store).ask("last.1", held(), "default", NOW + 4, owner=DURABLE + "tg_1")
    assert again is not None
    assert not again.approved


# Pieces.


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("expired", "approval_timeout"),
        ("withdrawn", "approval_withdrawn"),
        ("void", "approval_withdrawn"),
    ],
)
def test_each_end_has_its_own_kind(store: ApprovalStore, status: str, kind: str) -> None:
    ask(a_desk(store))
    closed = store.listed()[0]._replace(status=status, closed_reason="because")
    said = Decision(approved=False, kind=kind, reason="because", approval_id="a1")
    assert decision_of(closed) == said


def test_a_decision_without_a_vote_is_still_a_decision(store: ApprovalStore) -> None:
    ask(a_desk(store))
    asked = store.listed()[0]
    assert decision_of(asked._replace(status="approved")).approved
    assert decision_of(asked._replace(status="denied")).kind == "approval_rejected"


def test_short_ids_are_easy_to_read() -> None:
    ids = {new_approval_id() for _ in range(200)}
    assert len(ids) == 200
    for each in ids:
        assert len(each) == 6
        assert not set(each) & set("01ilo")


def test_a_desk_opens_on_the_state_directory(tmp_path: Path) -> None:
    desk = open_approvals(open_database(tmp_path / "state"), {}, Policy(version="v9"))
    assert ask(desk) is None
    store = open_store(str(tmp_path / "state"))
    (asked,) = store.listed()
    assert asked.policy_version == "v9"
    assert str(os.getpid()) in asked.owner.split("|")
    desk.close(NOW + 1)
    assert store.listed()[0].status == "withdrawn"
    refused = ask(desk, "run.2")
    assert refused is not None
    assert not refused.approved
    store.close()


def test_old_approvals_are_purged_while_the_desk_is_in_use(
    store: ApprovalStore, people: ApprovalStore
) -> None:
    desk = a_desk(store)
    ask(desk, "run.1")
    desk.withdraw("run.1", "x", NOW)
    later = NOW + 8 * 86_400
    ask(desk, "run.2", later)
    wait_for(lambda: desk.poll(later + 1) == [])
    assert [each.id for each in people.listed()] == ["a2"]
    assert module.POLL_EVERY_S < 1
