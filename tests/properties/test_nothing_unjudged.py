"""Whatever agent, server, judge, people and disk do, in whatever order:

nothing reaches the server that was not judged or need not be, nor anything that is not on
the record; nothing that was refused reaches it; and every request is answered exactly once
unless its caller left.
"""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from tests.support.frames import error, notification, request, result
from tests.support.frames import line as frame
from tests.support.shim_bench import RECORDED, SENT, TOLD, ShimBench

from thoughtgate.core.events import AgentGone, AgentSent, ServerGone, ServerSent, Ticked
from thoughtgate.core.record_events import Record
from thoughtgate.policy.call import APPROVE, DENY, FORWARD
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.limits import Limit
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.visibility import BLOCK, Exposure, Visibility

EVIL = "evil"
"""Stands in every frame that must never arrive."""

IDS = [0, 1, "0", ""]
WORDS = ["go", "no", "ask", "hide", "few"]


def _rule(word: str, action: str) -> Rule:
    return Rule(word, action, Selector(names=compile_globs([f"{word}-*"])))


POLICY = Policy(
    default=DENY,
    rules=RuleSet([_rule("go", FORWARD), _rule("ask", APPROVE), _rule("few", FORWARD)]),
    limits=(Limit("l", Selector(names=compile_globs(["few-*"])), budget=2),),
    visibility=Visibility({"*": Exposure.of(BLOCK, ["hide-*"])}),
)

HOSTILE = [
    '{"jsonrpc":"2.0","id":%s,"method":"ping"}\r{"jsonrpc":"2.0","id":9,"method":"evil"}',
    '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"go-1","name":"evil"}}',
    '{"jsonrpc":"2.0","id":%s,"method":"ping","Method":"evil"}',
    '{"jsonrpc":"2.0","id":%s,"method":"ping","params":{"Name":"evil"}}',
    '[{"jsonrpc":"2.0","id":%s,"method":"evil"}]',
    '{"id":%s,"method":"evil"}',
    '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":["evil"]}}',
    '{"jsonrpc":"2.0","id":%s,"method":"Tools/Call","params":{"name":"evil"}}',
    '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"evil","arguments":[]}}',
    '{"jsonrpc":"2.0","id":%s,"method":"evil","params":{"a":NaN}}',
    '{"jsonrpc":"2.0","id":%s,"method":"evil","result":1}',
    '{"jsonrpc":"2.0","id":%s,"method":"evil","params":[]}',
    '{"jsonrpc":"2.0","id":%s,"method":"evil"',
    '{"jsonrpc":"2.0","method":"tools/call","params":{"name":"evil"}}',
    '{"jsonrpc":"2.0","id":"never asked %s","result":"evil"}',
    '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"no-evil"}}',
    '{"jsonrpc":"2.0","id":%s,"method":"resources/read","params":{"uri":"evil"}}',
    (
        '{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen",'
        '"params":{"notifications":{"resourceSubscriptions":["evil"]}}}'
    ),
    '{"jsonrpc":"2.0","id":%s,"method":"completion/complete","params":{"ref":{"name":"evil"}}}',
]
ANSWERS = [
    '{"jsonrpc":"2.0","id":%s,"result":NaN}',
    '{"jsonrpc":"2.0","id":%s,"result":{"a":1,"a":2}}',
    '{"jsonrpc":"2.0","id":%s,"result":"cut',
    '{"id":%s,"result":{}}',
    '{"jsonrpc":"2.0","id":%s}',
    '{"level":"info","id":%s}',
    '{"jsonrpc":"2.0","id":%s,"method":"roots/list","params":[]}',
    "garbage %s",
]

ids = st.sampled_from(IDS)
steps = st.one_of(
    st.tuples(st.just("call"), ids, st.sampled_from(WORDS)),
    st.tuples(st.just("call"), ids, st.sampled_from(["go", "ask"])),
    st.tuples(st.just("plain"), ids),
    st.tuples(st.just("list"), ids),
    st.tuples(st.just("notify")),
    st.tuples(st.just("cancel"), ids),
    st.tuples(st.just("hostile"), ids, st.sampled_from(HOSTILE)),
    st.tuples(st.just("hostile"), ids, st.sampled_from(HOSTILE)),
    st.tuples(st.just("answer"), ids, st.booleans()),
    st.tuples(st.just("answer"), ids, st.booleans()),
    st.tuples(st.just("bad answer"), ids, st.sampled_from(ANSWERS)),
    st.tuples(st.just("server asks"), ids),
    st.tuples(st.just("agent answers"), ids),
    st.tuples(st.just("decide"), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("decide"), st.integers(0, 3), st.just(True)),
    st.tuples(st.just("disk"), st.booleans()),
    st.tuples(st.just("late"), st.booleans()),
    st.tuples(st.just("release"), st.integers(1, 3)),
    st.tuples(st.just("turn")),
    st.tuples(st.just("reuse"), ids, ids),
    st.tuples(st.just("inherit"), ids),
    st.tuples(st.just("hold unwritten"), ids),
    st.tuples(st.just("tick"), st.sampled_from([1.0, 30.0, 100.0])),
)


class Play:
    """Carries out steps and keeps count of what the agent asked and was told."""

    def __init__(self) -> None:
        self.bench = ShimBench(POLICY, timeout_s=60.0, max_held=2, max_open=8)
        self.at = 1000.0
        self.serial = 0
        self.asked: Counter[str] = Counter()
        self.left: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.early: set[str] = set()

    def agent(self, line: bytes) -> None:
        """Let the agent send a frame."""
        self.bench.feed(AgentSent(line, self.at))

    def server(self, line: bytes) -> None:
        """Let the server send a frame."""
        self.bench.feed(ServerSent(line, self.at))

    def ask(self, body: dict[str, Any]) -> None:
        """Let the agent send a well-formed request."""
        self.asked[json.dumps(body["id"])] += 1
        self.agent(frame(body))

    def step(self, what: str, *facts: Any) -> None:
        """Carry one step out."""
        self.serial += 1
        getattr(self, "do_" + what.replace(" ", "_"))(*facts)

    def do_call(self, ident: Any, word: str) -> None:
        self.ask(request(ident, "tools/call", {"name": f"{word}-{self.serial}"}))

    def do_plain(self, ident: Any) -> None:
        self.ask(request(ident, f"plain/{self.serial}"))

    def do_list(self, ident: Any) -> None:
        self.ask(request(ident, "tools/list"))

    def do_notify(self) -> None:
        self.agent(frame(notification(f"notifications/n{self.serial}")))

    def do_cancel(self, ident: Any) -> None:
        self.left[json.dumps(ident)] = self.asked[json.dumps(ident)]
        self.agent(frame(notification("notifications/cancelled", {"requestId": ident})))

    def do_hostile(self, ident: Any, text: str) -> None:
        line = (text % json.dumps(ident)) if "%s" in text else text
        self.agent(line.encode())

    def do_answer(self, ident: Any, good: bool) -> None:
        """Answer the oldest open request of this id, as a server does that ignores cancellations.

        Only the answer to a list has hidden entries in it. An answer that comes before its
        request was sent may still be taken for the answer to it: from then on the server does
        not know which request of this id is open, and lists nothing by it.
        """
        sent = [body for body in map(json.loads, self.bench.ledger.of(SENT)) if "id" in body]
        mine = [body for body in sent if body.get("method") and _is_same(body["id"], ident)]
        done = self.answered[json.dumps(ident)]
        is_open = len(mine) > done
        self.answered[json.dumps(ident)] += is_open
        self.early |= set() if is_open else {json.dumps(ident)}
        is_known = is_open and json.dumps(ident) not in self.early
        listed = is_known and mine[done]["method"] == "tools/list"
        tools = {"tools": [{"name": "hide-x"}, {"name": "go-x"}]}
        self.server(frame(result(ident, tools if listed else {}) if good else error(ident, -1)))

    def do_bad_answer(self, ident: Any, text: str) -> None:
        self.server((text % json.dumps(ident)).encode())

    def do_server_asks(self, ident: Any) -> None:
        self.server(frame(request(ident, "roots/list")))

    def do_agent_answers(self, ident: Any) -> None:
        self.agent(frame(result(ident, {"answer": self.serial})))

    def do_decide(self, number: int, approved: bool) -> None:
        self.bench.desk.decide(number, approved=approved)

    def do_disk(self, full: bool) -> None:
        self.bench.turn(self.at)
        self.bench.ledger.broken = full

    def do_late(self, late: bool) -> None:
        self.bench.authority.late = late

    def do_release(self, count: int) -> None:
        self.bench.release(count)

    def do_turn(self) -> None:
        self.bench.turn(self.at)

    def do_reuse(self, ident: Any, other: Any) -> None:
        """Ask for a list, leave it, and ask something else by the same id before it comes."""
        self.do_list(ident)
        self.do_turn()
        self.do_cancel(ident)
        self.do_plain(other)
        self.do_turn()
        self.do_answer(ident, good=True)

    def do_inherit(self, ident: Any) -> None:
        """Leave a call before its verdict, and make another by the same id."""
        self.bench.authority.late = True
        self.do_call(ident, "go")
        self.do_cancel(ident)
        self.serial += 1
        self.do_call(ident, "no")
        self.bench.release(1)
        self.bench.authority.late = False

    def do_hold_unwritten(self, ident: Any) -> None:
        """Hold a call while the disk is full, and approve it when there is room again."""
        self.do_disk(full=True)
        self.do_call(ident, "ask")
        self.do_disk(full=False)
        self.bench.desk.decide(-1, approved=True)
        self.do_turn()

    def do_tick(self, seconds: float) -> None:
        self.at += seconds
        self.bench.feed(Ticked(self.at))

    def finish(self) -> None:
        """The disk has room again, verdicts arrive, then everybody leaves."""
        self.bench.turn(self.at)
        self.bench.ledger.broken = False
        self.bench.release(1000)
        self.bench.turn(self.at)
        self.bench.feed(ServerGone("gone", self.at))
        self.bench.turn(self.at)
        self.bench.feed(AgentGone(self.at))
        self.bench.turn(self.at)
        self.bench.close()


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _may_have_been_sent(body: dict[str, Any], before: list[Record]) -> bool:
    """Tell whether the record, as it stood before, lets a frame go to the server."""
    method = body.get("method", "")
    if method == "tools/call":
        name = body["params"]["name"]
        own = [one for one in before if one.body.get("call", {}).get("tool_name") == name]
        said = [one.body["decision"]["action"] for one in own if one.type == "tool_call_decision"]
        ran = [one.body["approval"]["executes"] for one in own if one.type == "approval_decided"]
        started = [one for one in own if one.type == "tool_call_start"]
        return len(started) == 1 and (said == ["ALLOW"] or (said == ["HOLD"] and True in ran))
    if method == "notifications/cancelled" and "reason" in body["params"]:
        return True  # the gate's own: the request it names timed out
    seen = [
        one.body["message"]
        for one in before
        if one.type == "message" and one.body["message"]["direction"] == "agent_to_server"
    ]
    if method:
        return any(one["method"] == method for one in seen)
    if "error" in body:
        return "kind" in body["error"]["data"]  # the gate's own, to a request it refused
    asked = {
        one.body["call"]["call_id"]
        for one in before
        if one.type == "tool_call_start" and "direction" in one.body["call"]
    }
    ended = [one.body["call"]["call_id"] for one in before if one.type == "tool_call_end"]
    # An answer to a judged request of the server ends a call, others are messages.
    return any(one["shape"] == "response" for one in seen) or not asked.isdisjoint(ended)


def _check(play: Play) -> None:
    before: list[Record] = []
    calls: Counter[str] = Counter()
    for kind, value in play.bench.ledger.entries:
        if kind == RECORDED:
            before.append(value)
        elif kind == SENT:
            assert EVIL.encode() not in value
            body = json.loads(value)
            assert _may_have_been_sent(body, before), value
            if body.get("method") == "tools/call":
                calls[body["params"]["name"]] += 1
    assert all(count == 1 for count in calls.values()), calls
    told = Counter(
        json.dumps(body["id"])
        for body in map(json.loads, play.bench.ledger.of(TOLD))
        if "method" not in body
    )
    for ident, count in play.asked.items():
        assert told[ident] >= count - play.left[ident], (ident, told, play.asked)
    assert b"hide-x" not in b"".join(play.bench.ledger.of(TOLD))
    assert play.bench.session.is_idle
    assert play.bench.session.held_calls == 0


@pytest.mark.requirement("S000-F-012", "S000-F-014", "S000-F-015")
@given(st.lists(steps, min_size=5, max_size=50))
@example([("list", ""), ("answer", "", False), ("turn",), ("plain", ""), ("answer", "", True)])
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_unjudged_or_unrecorded_reaches_the_server(script: list[tuple[Any, ...]]) -> None:
    play = Play()
    for step in script:
        play.step(*step)
    play.finish()
    event(f"frames sent: {min(9, len(play.bench.ledger.of(SENT)))}")

    _check(play)


@given(st.lists(steps.filter(lambda step: step[0] != "hostile"), max_size=40))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_request_gets_exactly_one_answer_unless_its_caller_left(
    script: list[tuple[Any, ...]],
) -> None:
    play = Play()
    for step in script:
        play.step(*step)
    play.finish()

    told = Counter(
        json.dumps(body["id"])
        for body in map(json.loads, play.bench.ledger.of(TOLD))
        if "method" not in body
    )
    for ident, count in play.asked.items():
        assert count - play.left[ident] <= told[ident] <= count, (ident, told, play.asked)
    assert told.keys() <= play.asked.keys()
