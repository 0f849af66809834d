"""Whatever bytes agent and server send, the shim's code answers or drops them; it never raises."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.json_values import json_values
from tests.support.shim_bench import SENT, TOLD, ShimBench

from thoughtgate.core.events import AgentGone, AgentSent, ServerGone, ServerSent, Ticked
from thoughtgate.policy.call import APPROVE, DENY, FORWARD
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.limits import Breaker, Limit, Rate
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.visibility import BLOCK, Exposure, Visibility

POLICY = Policy(
    default=FORWARD,
    rules=RuleSet(
        [
            Rule("a", DENY, conditions=tuple(parse_conditions({"amount": {"gt": 100}}))),
            Rule("b", APPROVE, annotations=tuple(parse_conditions({"destructiveHint": True}))),
            Rule("c", APPROVE, Selector(names=compile_globs(["ask*"]))),
        ]
    ),
    limits=(
        Limit("l", rate=Rate(50, 60.0), duplicate_s=1.0, breaker=Breaker(2, 60.0, 30.0)),
        Limit("m", budget=20, scope="session"),
    ),
    visibility=Visibility({"*": Exposure.of(BLOCK, ["hide*"])}),
)

METHODS = [
    "tools/call", "tools/list", "resources/read", "resources/list", "resources/templates/list",
    "prompts/get", "prompts/list", "completion/complete", "subscriptions/listen", "ping",
    "initialize", "tasks/get", "tasks/list", "tasks/cancel", "tasks/result", "tasks/update",
    "notifications/cancelled", "notifications/progress", "notifications/x", "roots/list", "",
]  # fmt: skip
KEYS = [
    "name", "arguments", "uri", "task", "ref", "_meta", "requestId", "notifications", "taskId",
    "progressToken", "resourceSubscriptions", "cursor", "amount", "inputResponses", "ttl",
    "io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities",
    "extensions", "tools", "resources", "prompts", "annotations", "destructiveHint", "isError",
    "content", "uriTemplate", "nextCursor", "cacheScope", "tasks", "status", "code", "message",
]  # fmt: skip
words = st.sampled_from(["ask-1", "hide-1", "go", "tg_1", "tg-run.1", "", "2026-07-28", "e" * 300])
leaves = st.one_of(st.none(), st.booleans(), st.integers(-2, 3), st.integers(), words)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    ),
    max_leaves=10,
)
ids = st.one_of(st.integers(-1, 3), st.sampled_from(["0", "1", "tg-run.1"]), values)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """A message of MCP's vocabulary, in any shape, sometimes with a wrong member or two."""
    body: dict[str, Any] = {"jsonrpc": "2.0"}
    if draw(st.booleans()):
        body["id"] = draw(ids)
    if draw(st.booleans()):
        body["method"] = draw(st.sampled_from(METHODS))
        body["params"] = draw(values)
    else:
        body[draw(st.sampled_from(["result", "error"]))] = draw(values)
    if draw(st.integers(0, 9)) == 0:
        body[draw(st.sampled_from(["jsonrpc", "id", "method", "params", "x"]))] = draw(
            json_values()
        )
    return json.dumps(body).encode()


lines = st.one_of(messages(), messages(), st.binary(max_size=60))
steps = st.one_of(
    st.tuples(st.just("agent"), lines),
    st.tuples(st.just("server"), lines),
    st.tuples(st.just("decide"), st.booleans()),
    st.tuples(st.just("tick"), st.sampled_from([1.0, 700.0])),
)


@given(st.lists(steps, max_size=40), st.booleans())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_frame_of_either_side_makes_the_shim_raise(
    script: list[tuple[str, Any]], enforce: bool
) -> None:
    bench = ShimBench(POLICY, enforce=enforce, timeout_s=600.0, max_held=3, max_open=20)
    at = 1000.0
    for what, fact in script:
        if what == "agent":
            bench.feed(AgentSent(fact, at))
        elif what == "server":
            bench.feed(ServerSent(fact, at))
        elif what == "decide":
            bench.desk.decide(0, approved=fact)
        else:
            at += fact
            bench.feed(Ticked(at))
        bench.turn(at)
    bench.feed(ServerGone("gone", at))
    bench.feed(AgentGone(at))
    bench.turn(at)
    bench.close()

    assert bench.session.is_idle
    if enforce:
        for frame in (*bench.ledger.of(SENT), *bench.ledger.of(TOLD)):
            json.loads(frame)
            assert b"\n" not in frame
            assert b"\r" not in frame
