"""Replay counts as the gate did: what a judge said, the same policy says of its record."""

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.records import T0

from thoughtgate.analysis.replay import RecordedCall, ReplayOutcome, recorded_call, replay
from thoughtgate.core.approval import Decision
from thoughtgate.core.envelope import Envelope, Run
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest
from thoughtgate.core.record_events import CANCELLED, ERROR, NOWHERE, OK, Record, call_ended
from thoughtgate.core.tool_listing import DONE
from thoughtgate.policy.call import APPROVE, DENY, DEVELOPMENT, FORWARD, POLICY, PRODUCTION
from thoughtgate.policy.cedar import CedarEngine
from thoughtgate.policy.cedar_text import CedarSource
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.limits import SCOPES, Breaker, Limit, Rate
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.visibility import Exposure, Visibility
from thoughtgate.record.call_rows import RecordRows
from thoughtgate.wire.methods import LISTEN, Named

BLOCKED = {"class": "policy_block", "kind": "governance_denied", "message": "no"}
FEED = "data://feed"


class Open(NamedTuple):
    """A call of the gate that has not ended."""

    call_id: str
    server: str
    name: str
    held: bool


class Gate:
    """A judge at work, and the events that it leaves on record."""

    def __init__(self, policy: Policy, run: str = "run-1", *, tick: float = 0.125) -> None:
        self.judge = Judge(policy, run)
        self.envelope = Envelope(Run(run, shim_id="shim"))
        self.events: list[dict[str, Any]] = []
        self.open: list[Open] = []
        self.at = T0
        self.tick = tick

    def wait(self, ticks: float) -> None:
        self.at += ticks * self.tick

    def call(
        self,
        *names: str,
        kind: str = "tool",
        server: str = "srv",
        session: str = "1",
        method: str = "tools/call",
        must_hold: bool = False,
        **arguments: Any,
    ) -> str:
        named = tuple(Named(kind, name, arguments) for name in names)
        question = CallRequest(
            server,
            session,
            "agent",
            method,
            named,
            50,
            "mcp_stdio",
            self.at,
            must_hold=must_hold,
            listed=DONE,
        )
        ruling = self.judge.judge(question)
        self.write(*ruling.records)
        opened = Open(ruling.call_id, server, names[0], ruling.verdict.action == APPROVE)
        if ruling.verdict.action == DENY:
            self.finish(opened, ERROR, error=BLOCKED)
        else:
            self.open.append(opened)
        return ruling.verdict.action

    def answer(self, index: int, *, approved: bool) -> None:
        held = [one for one in self.open if one.held]
        if not held:
            return
        one = held[index % len(held)]
        self.open.remove(one)
        decision = Decision(approved, "" if approved else "approval_rejected", by="kim")
        ruling = self.judge.settle(one.call_id, decision, self.at)
        self.write(*ruling.records)
        if ruling.verdict.action == DENY:
            self.finish(one, ERROR, error=BLOCKED)
        else:
            self.open.append(one._replace(held=False))

    def end(self, index: int, status: str, *, is_error: bool = False) -> None:
        if self.open:
            one = self.open.pop(index % len(self.open))
            self.finish(one, CANCELLED if one.held else status, is_error=is_error and not one.held)

    def finish(self, one: Open, status: str, **facts: Any) -> None:
        ended = call_ended(
            self.at,
            one.server,
            "1",
            call_id=one.call_id,
            tool=one.name,
            status=status,
            latency_ms=1,
            size=1,
            **facts,
        )
        self.write(self.judge.note(ended))

    def write(self, *records: Record) -> None:
        self.events += [json.loads(self.envelope.wrap(record) + b"}") for record in records]


def on_record(*gates: Gate, without: frozenset[str] = frozenset()) -> list[RecordedCall]:
    rows = RecordRows()
    for gate in gates:
        for event in gate.events:
            rows.add(event)
    calls = sorted(rows.calls.values(), key=lambda row: row["started_at"])
    found = [recorded_call(row) for row in calls if row["call_id"] not in without]
    return [one for one in found if one is not None]


def again(
    policy: Policy, *gates: Gate, without: frozenset[str] = frozenset()
) -> list[ReplayOutcome]:
    return replay(on_record(*gates, without=without), policy)


def flipped(outcomes: list[ReplayOutcome]) -> list[ReplayOutcome]:
    return [one for one in outcomes if one.flips]


def limited(*limits: Limit, default: str = FORWARD, profile: str = PRODUCTION) -> Policy:
    return Policy(default=default, limits=limits, profile=profile)


names = st.sampled_from(["read", "write", "pay"])
limits = st.builds(
    Limit,
    id=st.sampled_from(["one", "two", "three"]),
    selector=st.sampled_from([Selector(), Selector(names=compile_globs(["pay"]))]),
    rate=st.none() | st.builds(Rate, st.integers(1, 4), st.sampled_from([1.0, 8.0])),
    budget=st.none() | st.integers(1, 6),
    duplicate_s=st.sampled_from([0.0, 0.0, 1.0]),
    breaker=st.none() | st.builds(Breaker, st.integers(1, 3), st.just(4.0), st.just(2.0)),
    scope=st.sampled_from(["", *SCOPES]),
)
rules = st.builds(
    lambda name, action, when: Rule(
        f"rule-{name}-{action}",
        action,
        Selector(names=compile_globs([name])),
        parse_conditions(when),
    ),
    names,
    st.sampled_from([FORWARD, DENY, APPROVE]),
    st.sampled_from([{}, {"amount": {"gt": 1}}, {"password": {"eq": "0"}}]),
)
policies = st.builds(
    lambda default, profile, found, limits: Policy(
        default=default,
        profile=profile,
        rules=RuleSet(found),
        limits=tuple({limit.id: limit for limit in limits}.values()),
    ),
    st.sampled_from([FORWARD, FORWARD, APPROVE, DENY]),
    st.sampled_from([PRODUCTION, PRODUCTION, DEVELOPMENT]),
    st.lists(rules, max_size=3),
    st.lists(limits, max_size=3),
)
steps = st.one_of(
    st.tuples(
        st.just("call"),
        names,
        st.fixed_dictionaries(
            {"amount": st.integers(0, 2)},
            optional={
                "password": st.sampled_from(["0", "1"]),
                "session": st.sampled_from(["1", "2"]),
                "must_hold": st.booleans(),
            },
        ),
    ),
    st.tuples(st.just("answer"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("end"), st.integers(0, 3), st.sampled_from([OK, ERROR, "is_error"])),
    st.tuples(st.just("wait"), st.integers(0, 12)),
)


@settings(max_examples=300, deadline=None)
@given(policies, st.lists(st.tuples(st.booleans(), steps), max_size=40))
def test_the_policy_that_judged_changes_nothing(policy: Policy, played: list[Any]) -> None:
    gates = Gate(policy), Gate(policy, "run-2")
    for first, (step, *facts) in played:
        gate = gates[0] if first else gates[1]
        if step == "call":
            gate.call(facts[0], **facts[1])
        elif step == "answer":
            gate.answer(facts[0], approved=facts[1])
        elif step == "end":
            status, is_error = (OK, True) if facts[1] == "is_error" else (facts[1], False)
            gate.end(facts[0], status, is_error=is_error)
        else:
            gate.wait(facts[0])
    outcomes = again(policy, *gates)
    assert [one for one in flipped(outcomes) if not one.uncertain] == []
    assert all("password" in one.uncertain for one in outcomes if one.uncertain)


def test_each_run_has_limits_of_its_own() -> None:
    policy = limited(Limit("few", budget=2))
    gates = Gate(policy), Gate(policy, "run-2")
    for gate in gates:
        for _ in range(3):
            gate.call("read")
    outcomes = again(policy, *gates)
    assert flipped(outcomes) == []
    assert [one.decision for one in outcomes].count("THROTTLE") == 2


def test_a_held_call_counts_when_a_person_lets_it_go_on() -> None:
    policy = limited(Limit("few", budget=1), default=APPROVE)
    gate = Gate(policy)
    gate.call("read")
    gate.call("read")
    gate.answer(0, approved=False)
    gate.wait(8)
    gate.answer(0, approved=True)
    gate.call("read")
    outcomes = again(policy, gate)
    assert [one.decision for one in outcomes] == ["HOLD", "HOLD", "THROTTLE"]
    assert flipped(outcomes) == []


def test_what_went_on_counts_though_a_person_would_be_asked_now() -> None:
    gate = Gate(limited())
    gate.call("read")
    gate.call("read")
    outcomes = again(limited(Limit("few", budget=1), default=APPROVE), gate)
    assert [one.decision for one in outcomes] == ["HOLD", "THROTTLE"]


def test_a_breaker_hears_of_failures_when_the_calls_end() -> None:
    policy = limited(Limit("broken", breaker=Breaker(1, 60, 60)))
    gate = Gate(policy)
    gate.call("read")
    gate.call("read")
    gate.end(0, OK, is_error=True)
    gate.call("read")
    outcomes = again(policy, gate)
    assert [one.decision for one in outcomes] == ["ALLOW", "ALLOW", "THROTTLE"]
    assert flipped(outcomes) == []


@pytest.mark.parametrize(
    ("period_s", "first", "second", "said"),
    [(1.0, 0.0009, 1.0005, "THROTTLE"), (0.3335, 0.0001, 0.3337, "ALLOW")],
)
def test_times_finer_than_the_record_has_them_flip_nothing(
    period_s: float, first: float, second: float, said: str
) -> None:
    policy = limited(Limit("slow", rate=Rate(1, period_s)))
    gate = Gate(policy, tick=1.0)
    for ticks in (first, second - first):
        gate.wait(ticks)
        gate.call("read")
    outcomes = again(policy, gate)
    assert [one.recorded.decision for one in outcomes] == ["ALLOW", said]
    assert flipped(outcomes) == []


def test_what_no_server_offers_has_no_outcome() -> None:
    hidden = Visibility({NOWHERE: Exposure(enabled=False)})
    gate = Gate(Policy(default=FORWARD, visibility=hidden))
    gate.call("nothing", server=NOWHERE)
    gate.call("read")
    (outcome,) = again(limited(Limit("few", budget=1)), gate)
    assert outcome.recorded.call.name == "read"
    assert (outcome.decision, outcome.uncertain) == ("ALLOW", "")


def test_a_resource_is_judged_under_each_of_its_spellings() -> None:
    secret = Rule("secret", DENY, Selector(names=compile_globs(["file:///etc/*"])))
    policy = Policy(default=FORWARD, rules=RuleSet([secret]))
    gate = Gate(policy)
    assert gate.call("file:///tmp/../etc/shadow", kind="resource") == DENY
    assert flipped(again(policy, gate)) == []


def test_lost_calls_make_the_limits_uncertain() -> None:
    policy = limited(Limit("few", budget=1))
    gate = Gate(policy)
    gate.call("read")
    gate.call("read")
    (outcome,) = again(policy, gate, without=frozenset({"run-1.1"}))
    assert (outcome.decision, outcome.recorded.decision) == ("ALLOW", "THROTTLE")
    assert "not on record" in outcome.uncertain


def test_a_request_that_names_several_things_makes_the_limits_uncertain() -> None:
    policy = limited(Limit("few", budget=2))
    gate = Gate(policy)
    gate.call(FEED, f"{FEED}/2", kind="resource", method=LISTEN)
    gate.call("read")
    outcomes = again(policy, gate)
    assert [one.recorded.decision for one in outcomes] == ["ALLOW", "THROTTLE"]
    assert all("several" in one.uncertain for one in outcomes)


def test_cedar_counts_the_calls_of_a_session() -> None:
    text = "permit(principal, action, resource) when { context.session.calls < 2 };"
    policy = Policy(default=POLICY, cedar=CedarEngine([CedarSource("a.cedar", text)]))
    gate = Gate(policy)
    for session in ("1", "1", "2", "1", "2"):
        gate.call("read", session=session)
    outcomes = again(policy, gate)
    assert [one.decision for one in outcomes] == ["ALLOW", "ALLOW", "ALLOW", "BLOCK", "ALLOW"]
    assert flipped(outcomes) == []


@pytest.mark.parametrize("member", ["annotations", "claims"])
def test_what_cedar_asks_and_nobody_recorded_is_uncertain(member: str) -> None:
    text = f"permit(principal, action, resource) when {{ context.{member} has x }};"
    policy = Policy(default=POLICY, cedar=CedarEngine([CedarSource("a.cedar", text)]))
    gate = Gate(policy)
    gate.call("read")
    (outcome,) = again(policy, gate)
    assert member in outcome.uncertain


def test_a_name_that_is_cut_is_uncertain() -> None:
    gate = Gate(limited())
    gate.call("x" * 600)
    (outcome,) = again(limited(), gate)
    assert "cut" in outcome.uncertain
