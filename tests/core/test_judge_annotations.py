"""The judge on annotations: what a server says of its tools can only tighten a verdict."""

from typing import Any

import pytest

from thoughtgate.core.judge import MAX_KNOWN_TOOLS, CallRequest, Judge
from thoughtgate.policy.call import DENY, FORWARD
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.wire.methods import Named

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
    assert judge.judge(_question("wipe")).verdict.action == FORWARD
    entries = (
        {"name": "wipe", "annotations": {"destructiveHint": True}},
        {"name": "odd", "annotations": 5},
    )
    judge.screen("srv", "1", "tools/list", entries, 1.0)

    ruling = judge.judge(_question("wipe"))
    assert ruling.verdict.action == DENY
    assert ruling.verdict.rule == "careful"
    assert judge.judge(_question("odd")).verdict.action == FORWARD


def test_a_flood_of_tools_is_not_remembered_without_end() -> None:
    judge = Judge(Policy(), "run")
    entries: tuple[dict[str, Any], ...] = tuple(
        {"name": f"t{n}", "annotations": {}} for n in range(MAX_KNOWN_TOOLS + 5)
    )
    judge.screen("srv", "1", "tools/list", entries, 1.0)

    assert len(judge._annotations["srv"]) == MAX_KNOWN_TOOLS
