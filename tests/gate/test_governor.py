"""The governor: judge, record and people in one hand, and what happens when one of them fails."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.approvals import a_desk, a_store, a_yes
from tests.support.shim_bench import Ledger, NobodyThere, SlowDesk

from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import Decision, refusal
from thoughtgate.core.envelope import Run
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest, OpenCall
from thoughtgate.core.record_events import (
    APPROVAL_DECIDED,
    ERROR,
    MAX_NAME,
    OK,
    SERVER_TO_AGENT,
    Record,
    call_ended,
    frame_refused,
    message_seen,
)
from thoughtgate.core.repeated_events import MAX_EACH, WINDOW_S
from thoughtgate.core.tool_listing import DONE, LIST_FIRST
from thoughtgate.errors import RecordError, StoreError
from thoughtgate.gate.approvals.interface import Approvals
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.running_gates import GateAnnouncer
from thoughtgate.policy.call import APPROVE, DENY, DEVELOPMENT, FORWARD
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.visibility import BLOCK, Exposure, Visibility
from thoughtgate.telemetry.metrics import Metrics
from thoughtgate.wire.message import NOTIFICATION
from thoughtgate.wire.methods import TOOLS_CHANGED, Named

ASK = Rule("ask", APPROVE, Selector(names=compile_globs(["ask"])))
POLICY = Policy(
    default=FORWARD,
    rules=RuleSet([ASK]),
    visibility=Visibility({"*": Exposure.of(BLOCK, ["hidden"])}),
)


def _governor(desk: Approvals | None = None, policy: Policy = POLICY, **more: Any) -> Governor:
    approvals = desk or NobodyThere()
    return Governor(Judge(policy, "run"), Ledger(), Run("run"), approvals=approvals, **more)


def _ledger(governor: Governor) -> Ledger:
    assert isinstance(governor._writer, Ledger)
    return governor._writer


def _kinds(governor: Governor) -> list[str]:
    return [record.type for _, record in _ledger(governor).entries]


def _question(name: str = "echo") -> CallRequest:
    named = (Named("tool", name, {}),)
    return CallRequest("srv", "1", "agent", "tools/call", named, 10, "mcp_stdio", 1.0)


def _ended(call_id: str) -> Record:
    return call_ended(2.0, "srv", "1", call_id=call_id, tool="t", status=OK, latency_ms=1, size=1)


def test_a_run_begins_and_ends_on_the_record_with_its_sums() -> None:
    governor = _governor()
    governor.start(1.0, server="srv", command="shim")
    ruling = governor.rule(_question())
    governor.note(_ended(ruling.call_id))
    governor.finish("SUCCEEDED", 3.0, reason="done")
    records = [record for _, record in _ledger(governor).entries]

    assert _kinds(governor) == [
        "run_start", "tool_call_start", "tool_call_decision", "tool_call_end", "run_end",
    ]  # fmt: skip
    assert {records[0].server, records[-1].server} == {"srv"}
    assert records[-1].body["run"]["summary"]["calls_total"] == 1
    assert records[-1].body["run"]["reason"] == "done"
    assert governor.policy is POLICY


class Herald(GateAnnouncer):
    """Notes what a governor announces, among what it writes."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__("")
        self._entries = ledger.entries

    def begin(self, kind: str, server: str) -> None:
        """The run begins."""
        self._entries.append(("begin", f"{kind} {server}"))

    def end(self) -> None:
        """The run is over."""
        self._entries.append(("end", ""))


def test_a_run_is_announced_before_it_writes_and_until_it_has_written() -> None:
    ledger = Ledger()
    governor = Governor(
        Judge(POLICY, "run"), ledger, Run("run"), approvals=NobodyThere(), announcer=Herald(ledger)
    )
    governor.start(1.0, server="srv", command="shim")
    governor.finish("SUCCEEDED", 3.0)

    kinds = [kind for kind, _ in ledger.entries]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    assert len(kinds) == 4


def test_a_run_that_cannot_begin_is_not_announced_any_more() -> None:
    ledger = Ledger()
    ledger.broken = True
    governor = Governor(
        Judge(POLICY, "run"), ledger, Run("run"), approvals=NobodyThere(), announcer=Herald(ledger)
    )
    with pytest.raises(RecordError):
        governor.start(1.0, server="srv", command="shim")

    assert [kind for kind, _ in ledger.entries] == ["begin", "end"]


def test_nothing_is_written_before_the_flush_and_an_empty_flush_writes_nothing() -> None:
    governor = _governor()
    governor.flush()
    governor.rule(_question())
    assert _kinds(governor) == []
    governor.flush()
    assert _kinds(governor) == ["tool_call_start", "tool_call_decision"]


def test_a_judge_that_fails_denies_and_that_is_on_the_record() -> None:
    class Broken(Judge):
        def judge(self, question: CallRequest) -> Any:
            raise ZeroDivisionError(question)

    governor = Governor(Broken(POLICY, "run"), Ledger(), Run("run"), approvals=NobodyThere())
    ruling = governor.rule(_question())
    governor.flush()

    assert (ruling.verdict.action, ruling.verdict.kind) == (DENY, "internal_error")
    ((_, record),) = _ledger(governor).entries
    assert record.body["frame"]["check"] == "judge_failed"


def test_what_goes_on_the_record_can_be_observed_once_it_is_written() -> None:
    seen: list[Record] = []
    governor = _governor(observe=seen.append)
    governor.rule(_question())
    assert seen == []
    governor.flush()

    assert [record.type for record in seen] == ["tool_call_start", "tool_call_decision"]


def test_what_draws_traces_sees_a_call_before_it_is_on_the_record() -> None:
    seen: list[Record] = []
    governor = _governor()
    governor.draw = seen.append
    governor.trace = lambda call_id: f"{call_id}, {len(seen)} seen"
    ruling = governor.rule(_question())

    assert ruling.verdict.trace == f"{ruling.call_id}, 2 seen"


def _flush_in_vain(governor: Governor) -> None:
    _ledger(governor).broken = True
    with pytest.raises(RecordError):
        governor.flush()
    _ledger(governor).broken = False


def _blocked(call_id: str) -> Record:
    ended = _ended(call_id)
    error = {"class": "policy_block", "kind": "service_unavailable"}
    return ended._replace(body={**ended.body, "status": ERROR, "error": error})


def test_what_is_lost_is_neither_counted_nor_observed_but_an_end_that_is_written_is() -> None:
    seen: list[Record] = []
    governor = _governor(observe=seen.append)
    lost, told = governor.rule(_question()), governor.rule(_question())
    _flush_in_vain(governor)
    governor.note(_blocked(lost.call_id))
    _flush_in_vain(governor)
    assert (seen, governor.tally.counts["calls_total"]) == ([], 0)
    governor.note(_blocked(told.call_id))
    governor.flush()

    assert [record.type for record in seen] == ["tool_call_end"]
    counts = governor.tally.counts
    assert (counts["calls_total"], counts["calls_allowed"], counts["calls_blocked"]) == (1, 0, 1)
    assert governor._unrecorded == set()


def test_a_call_that_began_and_ended_in_what_was_lost_leaves_nothing_behind() -> None:
    seen: list[Record] = []
    governor = _governor(observe=seen.append)
    governor.note(_ended(governor.rule(_question()).call_id))
    _flush_in_vain(governor)

    assert (seen, governor._unrecorded) == ([], set())


def test_what_was_seen_to_begin_is_seen_to_end_though_its_end_is_lost() -> None:
    seen: list[Record] = []
    desk = SlowDesk()
    governor = _governor(desk, observe=seen.append)
    call_id = _hold(governor)
    governor.flush()
    seen.clear()
    desk.decide(0, approved=True)
    (ruling,) = governor.settled(2.0)
    governor.screen("srv", "1", "tools/list", (), 2.0)
    _flush_in_vain(governor)
    governor.note(_blocked(call_id))
    _flush_in_vain(governor)

    assert ruling.records[0].body["approval"]["executes"] is True
    assert [record.type for record in seen] == [APPROVAL_DECIDED, "tool_call_end"]
    assert seen[0].body["approval"]["executes"] is False


def test_what_goes_on_unrecorded_is_counted_and_observed() -> None:
    seen: list[Record] = []
    governor = _governor(on_failure="continue", observe=seen.append)
    _ledger(governor).broken = True
    governor.note(_ended(governor.rule(_question()).call_id))
    governor.flush()

    assert len(seen) == 3
    assert governor.tally.counts["calls_allowed"] == 1


def test_a_task_that_waits_when_the_gate_stops_was_sent_nowhere() -> None:
    governor = _governor(SlowDesk())
    governor.suspend(_hold(governor), 2.0)
    governor.flush()

    assert _ledger(governor).entries[-1][1].body["error"]["class"] == "policy_block"


def test_an_unwritable_record_refuses_unless_the_operator_chose_otherwise() -> None:
    observing = Policy(profile=DEVELOPMENT, default=FORWARD)
    for governor, raises in (
        (_governor(), True),
        (_governor(on_failure="continue"), False),
        (_governor(policy=observing), False),
    ):
        governor.rule(_question())
        _ledger(governor).broken = True
        if raises:
            with pytest.raises(RecordError):
                governor.flush()
        else:
            governor.flush()
        assert governor.refuses_unrecorded() is raises
        governor.rule(_question())
        governor.flush_quietly()
        assert _kinds(governor) == []


# People.


def _hold(governor: Governor) -> str:
    ruling = governor.rule(_question("ask"))
    assert ruling.verdict.action == APPROVE
    assert governor.ask(ruling.call_id, "default", 1.0) is None
    return ruling.call_id


def test_without_a_desk_whatever_needs_a_person_is_refused() -> None:
    governor = _governor()
    ruling = governor.rule(_question("ask"))
    settled = governor.ask(ruling.call_id, "default", 1.0)

    assert settled is not None
    assert settled.verdict.kind == "approval_timeout"
    assert governor.settled(2.0) == []
    assert governor.approvals.use("x") is not None
    governor.withdraw(ruling.call_id, "gone", 3.0)
    governor.finish("SUCCEEDED", 4.0)


@pytest.mark.parametrize("approved", [True, False])
def test_a_decision_settles_the_call_once(*, approved: bool) -> None:
    desk = SlowDesk()
    governor = _governor(desk)
    call_id = _hold(governor)
    desk.decide(0, approved=approved)
    (ruling,) = governor.settled(2.0)
    desk.decide(0, approved=True)
    (again,) = governor.settled(3.0)
    governor.flush()

    assert ruling.call_id == call_id
    assert (ruling.verdict.action == FORWARD) is approved
    if approved:
        assert again.verdict.kind == "approval_withdrawn"
    assert _kinds(governor)[2:4] == ["approval_requested", "approval_decided"]


def test_a_withdrawn_question_is_on_the_record() -> None:
    governor = _governor(SlowDesk())
    call_id = _hold(governor)
    governor.withdraw(call_id, "the caller is gone", 2.0)
    governor.flush()
    record = _ledger(governor).entries[-1][1]

    assert record.body["approval"]["outcome"] == "withdrawn"
    assert record.body["approval"]["executes"] is False


def test_who_had_voted_is_on_record_when_nothing_comes_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = a_store(tmp_path)
    desk = a_desk(store, {"default": WorkflowSettings("default", required=2)})
    monkeypatch.setattr(desk, "use", lambda _: refusal("approval_withdrawn", "used"))
    governor = _governor(desk)
    call_id = _hold(governor)
    store.vote("a1", [a_yes(at=1.5)], 1.5)
    governor.withdraw(call_id, "the caller is gone", 2.0)
    called_off = governor.rule(_question("ask"))
    governor.ask(called_off.call_id, "default", 3.0)
    store.vote("a2", [a_yes(at=4.0), a_yes("terminal:bob", at=4.0)], 4.0)
    governor.settled(5.0)
    governor.flush()
    withdrawn, used = [
        record.body["approval"]
        for _, record in _ledger(governor).entries
        if record.type == APPROVAL_DECIDED
    ]

    assert (withdrawn["approval_id"], withdrawn["outcome"]) == ("a1", "withdrawn")
    assert [one["by"] for one in withdrawn["votes"]] == ["terminal:ann"]
    assert (used["approval_id"], used["executes"]) == ("a2", False)
    assert [one["by"] for one in used["votes"]] == ["terminal:ann", "terminal:bob"]


def test_nobody_is_asked_about_a_call_that_is_not_open() -> None:
    desk = SlowDesk()

    assert _governor(desk).ask("run.99", "default", 1.0) is None
    assert desk.asked == []


def test_an_approval_that_cannot_be_stored_is_a_refusal() -> None:
    class Full(SlowDesk):
        def ask(
            self, call_id: str, open_call: OpenCall, workflow: str, at: float, *, owner: str = ""
        ) -> Decision | None:
            raise StoreError(f"no room for {call_id}, {open_call}, {workflow}, {at}, {owner}")

        def close(self, at: float) -> None:
            raise StoreError(f"no room at {at}")

    governor = _governor(Full())
    ruling = governor.rule(_question("ask"))
    settled = governor.ask(ruling.call_id, "default", 1.0)
    governor.finish("FAILED", 2.0)

    assert settled is not None
    assert settled.verdict.kind == "service_unavailable"
    assert _kinds(governor)[-1] == "run_end"


@pytest.mark.parametrize("ends", [False, True])
def test_a_held_call_that_is_not_on_the_record_is_not_run_whoever_approves(*, ends: bool) -> None:
    desk = SlowDesk()
    governor = _governor(desk)
    call_id = _hold(governor)
    _ledger(governor).broken = True
    with pytest.raises(RecordError):
        governor.flush()
    _ledger(governor).broken = False
    if ends:
        governor.note(_ended(call_id))
        governor.flush()
        assert governor._unrecorded == set()
    desk.decide(0, approved=True)
    (ruling,) = governor.settled(2.0)

    assert ruling.verdict.action == DENY


def test_lists_are_screened_and_recorded() -> None:
    governor = _governor()
    hidden = governor.screen("srv", "1", "tools/list", ({"name": "hidden"}, {"name": "x"}), 1.0)
    governor.flush()

    assert hidden == {"hidden"}
    assert _kinds(governor) == ["tools_list"]


def test_a_quiet_flush_that_loses_a_call_is_heard_by_whoever_would_send_it_on() -> None:
    governor = _governor()
    governor.rule(_question())
    _ledger(governor).broken = True
    governor.flush_quietly()
    governor.note(message_seen(1.0, "srv", "1", "agent_to_server", "request", "ping", 5))
    governor.flush_quietly()
    _ledger(governor).broken = False
    governor.flush_quietly()
    governor.rule(_question())
    with pytest.raises(RecordError):
        governor.flush()
    governor.rule(_question())
    governor.flush()


def test_a_flood_of_strangers_is_told_in_one_event_and_every_one_is_counted() -> None:
    metrics = Metrics()
    governor = _governor(observe=metrics.observe)

    def reject(at: float) -> None:
        facts = {"agent": {"method": "bearer", "reason": "token wrong"}}
        governor.note(Record("agent_auth_rejected", at, "", "0", facts))
        governor.flush()

    for number in range(MAX_EACH * 5):
        reject(10.0 + number * 0.001)
    assert _kinds(governor).count("agent_auth_rejected") == MAX_EACH
    governor.rule(_question())
    governor.note(_ended("none")._replace(at=10.0 + WINDOW_S))
    governor.flush()
    told = _ledger(governor).entries[-1][1]
    assert told.body["agent"]["repeated"] == MAX_EACH * 4
    reject(200.0)
    for _ in range(MAX_EACH):
        reject(201.0)
    governor.finish("SUCCEEDED", 202.0)

    assert _ledger(governor).entries[-2][1].body["agent"]["repeated"] == 1
    counted = 'thoughtgate_agent_connections_total{method="bearer",outcome="rejected"} '
    line = next(one for one in metrics.render().decode().splitlines() if one.startswith(counted))
    assert float(line.rpartition(" ")[2]) == MAX_EACH * 6 + 1


@pytest.mark.promise("traffic-cannot-erase-calls")
def test_a_flood_of_notifications_is_folded_and_calls_are_not() -> None:
    governor = _governor()
    for number in range(1000):
        governor.note(
            message_seen(
                10.0 + number * 0.01, "files", "1", "server_to_agent", "notification", "m", 9
            )
        )
        if number % 10 == 0:
            governor.rule(_question())
        governor.flush()
    kinds = _kinds(governor)
    assert kinds.count("message") == MAX_EACH
    assert kinds.count("tool_call_decision") == 100
    governor.finish("SUCCEEDED", 30.0)
    *_, folded, ended = (record for _, record in _ledger(governor).entries)
    assert folded.body["message"]["repeated"] == 900
    assert ended.body["run"]["summary"]["messages"] == 1000


def test_a_flood_of_lists_is_folded_too() -> None:
    governor = _governor()
    for _ in range(MAX_EACH + 5):
        governor.screen("files", "1", "tools/list", ({"name": "hidden"},), 10.0)
    governor.flush()
    assert _kinds(governor).count("tools_list") == MAX_EACH
    governor.finish("SUCCEEDED", 30.0)
    assert _ledger(governor).entries[-2][1].body["list"]["repeated"] == 5


@pytest.mark.promise("annotations")
@pytest.mark.parametrize("earlier", [0, MAX_EACH + 5])
def test_a_list_that_its_server_changed_is_fetched_again_however_many_messages_came_before(
    earlier: int,
) -> None:
    careful = parse_conditions({"destructiveHint": True})
    rules = RuleSet([Rule("careful", DENY, Selector(), annotations=careful)])
    governor = _governor(policy=Policy(default=FORWARD, rules=rules))
    changed = message_seen(10.0, "srv", "1", SERVER_TO_AGENT, NOTIFICATION, TOOLS_CHANGED, 9)
    for _ in range(earlier):
        governor.note(changed)
    governor.screen("srv", "1", "tools/list", ({"name": "echo"},), 10.0)
    assert governor.rule(_question()._replace(listed=DONE)).verdict.action == FORWARD
    assert governor.rule(_question()).verdict.action == FORWARD
    governor.note(changed)
    assert governor.rule(_question()).verdict == LIST_FIRST


@pytest.mark.promise("names-are-masked")
@pytest.mark.parametrize("before", ["", "m" * 500])
def test_a_secret_in_the_name_of_a_method_is_masked(before: str) -> None:
    token = "ghp_" + "aB3" * 12
    method = f"{before} {token}"
    governor = _governor()
    governor.note(message_seen(10.0, "srv", "1", SERVER_TO_AGENT, NOTIFICATION, method, 9))
    governor.note(
        frame_refused(
            10.0, "srv", "1", direction=SERVER_TO_AGENT, check="c", kind="k", size=9, method=method
        )
    )
    governor.flush()
    told = [record.body for _, record in _ledger(governor).entries]
    for name in (told[0]["message"]["method"], told[1]["frame"]["method"]):
        assert token[:8] not in name
        assert len(name) <= MAX_NAME
