"""The judge on annotations: what a server says of its tools can only tighten a verdict."""

import pytest

from thoughtgate.core.approval import Decision
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest
from thoughtgate.core.record_events import SERVER_TO_AGENT, message_seen
from thoughtgate.core.tool_listing import DONE, FAILED, LIST_FIRST
from thoughtgate.policy.call import APPROVE, DENY, FORWARD
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.wire.message import NOTIFICATION
from thoughtgate.wire.methods import TOOLS_CHANGED, Named

_CAREFUL = Policy(
    default=FORWARD,
    rules=RuleSet(
        [Rule("careful", DENY, Selector(), annotations=parse_conditions({"destructiveHint": True}))]
    ),
)


def _question(name: str) -> CallRequest:
    named = (Named("tool", name, {}),)
    return CallRequest("srv", "1", "agent", "tools/call", named, 50, "mcp_stdio", 1.0)


@pytest.mark.requirement("POL-007")
def test_what_the_server_says_of_a_tool_can_tighten_the_verdict() -> None:
    judge = Judge(_CAREFUL, "run")
    entries = (
        {"name": "wipe", "annotations": {"destructiveHint": True}},
        {"name": "odd", "annotations": 5},
    )
    judge.screen("srv", "1", "tools/list", entries, 1.0)

    ruling = judge.judge(_question("wipe"))
    assert ruling.verdict.action == DENY
    assert ruling.verdict.rule == "careful"
    assert judge.judge(_question("odd")).verdict.action == FORWARD


@pytest.mark.promise("annotations")
def test_a_tool_that_no_list_has_shown_is_listed_first() -> None:
    judge = Judge(_CAREFUL, "run")
    assert judge.judge(_question("wipe")) == (LIST_FIRST, "", ())
    judge.screen("srv", "1", "tools/list", ({"name": "other"},), 1.0)
    assert judge.judge(_question("wipe")).verdict == LIST_FIRST
    assert judge.judge(_question("other")).verdict.action == FORWARD


@pytest.mark.promise("annotations")
@pytest.mark.parametrize("listed", [DONE, FAILED])
def test_unknown_annotations_are_never_to_the_callers_advantage(listed: str) -> None:
    judge = Judge(_CAREFUL, "run")
    assert judge.judge(_question("wipe")._replace(listed=listed)).verdict.rule == "careful"
    later = judge.judge(_question("wipe")).verdict
    assert later == LIST_FIRST if listed == FAILED else later.rule == "careful"


def test_a_changed_list_is_fetched_again() -> None:
    judge = Judge(_CAREFUL, "run")
    judge.screen("srv", "1", "tools/list", ({"name": "t"},), 1.0)
    judge.judge(_question("t")._replace(listed=DONE))
    judge.note(message_seen(1.0, "srv", "1", SERVER_TO_AGENT, NOTIFICATION, TOOLS_CHANGED, 9))
    assert judge.judge(_question("t")).verdict == LIST_FIRST


def test_nothing_is_listed_for_a_policy_without_annotations() -> None:
    judge = Judge(Policy(default=FORWARD), "run")
    assert judge.judge(_question("t")).verdict.action == FORWARD
    judge.replace_policy(_CAREFUL)
    assert judge.judge(_question("t")).verdict == LIST_FIRST


@pytest.mark.promise("approval-is-exact")
@pytest.mark.parametrize(
    ("later", "kind"),
    [
        ({"description": "reads a file"}, ""),
        ({"description": "sends a file away"}, "policy_drift"),
        ({"description": "reads a file", "annotations": {"destructiveHint": True}}, "policy_drift"),
    ],
)
def test_an_approval_does_not_cover_a_definition_that_changed_while_the_call_waited(
    later: dict[str, object], kind: str
) -> None:
    judge = Judge(Policy(default=APPROVE), "run")
    judge.screen("srv", "1", "tools/list", ({"name": "t", "description": "reads a file"},), 1.0)
    held = judge.judge(_question("t"))
    judge.screen("srv", "1", "tools/list", ({"name": "t", **later},), 2.0)

    assert judge.settle(held.call_id, Decision(approved=True), 3.0).verdict.kind == kind


_READS = {"name": "t", "description": "reads a file"}
_SENDS = {"name": "t", "description": "sends a file away"}
_ODD = {**_SENDS, "inputSchema": {"maximum": float("inf")}}
"""A definition without a canonical form."""


@pytest.mark.promise("approval-is-exact")
@pytest.mark.parametrize(
    ("before", "later"),
    [
        ((_READS,), (_SENDS, None)),
        ((_READS, None), (_SENDS,)),
        ((_READS, None), (_SENDS, None)),
        ((_READS,), (_ODD,)),
    ],
)
def test_a_server_cannot_hide_a_changed_definition_behind_a_notification(
    before: tuple[dict[str, object] | None, ...], later: tuple[dict[str, object] | None, ...]
) -> None:
    judge = Judge(Policy(default=APPROVE), "run")

    def hear(told: tuple[dict[str, object] | None, ...]) -> None:
        for entry in told:
            if entry is not None:
                judge.screen("srv", "1", "tools/list", (entry,), 1.0)
            else:
                told_of = (SERVER_TO_AGENT, "notification", "notifications/tools/list_changed")
                judge.note(message_seen(1.0, "srv", "1", *told_of, 9))

    hear(before)
    held = judge.judge(_question("t"))
    hear(later)

    settled = judge.settle(held.call_id, Decision(approved=True), 3.0)
    assert settled.verdict.kind == "policy_drift"


@pytest.mark.promise("annotations")
def test_a_held_call_is_judged_by_the_annotations_that_the_server_lists_now() -> None:
    rules = [
        Rule("careful", DENY, Selector(), annotations=parse_conditions({"destructiveHint": True})),
        Rule("ask", APPROVE, Selector()),
    ]
    judge = Judge(Policy(default=DENY, rules=RuleSet(rules)), "run")
    # Without a canonical form, a definition has no digest that could be compared.
    odd = {"name": "t", "inputSchema": {"maximum": float("inf")}}
    judge.screen(
        "srv", "1", "tools/list", ({**odd, "annotations": {"destructiveHint": False}},), 1.0
    )
    held = judge.judge(_question("t"))
    judge.screen(
        "srv", "1", "tools/list", ({**odd, "annotations": {"destructiveHint": True}},), 2.0
    )

    settled = judge.settle(held.call_id, Decision(approved=True), 3.0).verdict

    assert (settled.action, settled.rule) == (DENY, "careful")
