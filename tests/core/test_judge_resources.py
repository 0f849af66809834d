"""The judge on resources: one resource has many spellings, and the strictest verdict counts."""

import pytest

from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest
from thoughtgate.policy.call import APPROVE, DENY, FORWARD
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.wire.methods import Named

_PASSWORDS = "file:///etc/passwd"


def _verdict(action: str, uri: str) -> str:
    rule = Rule("rule", action, Selector(names=compile_globs([_PASSWORDS])))
    judge = Judge(Policy(default=FORWARD, rules=RuleSet([rule])), "run")
    named = (Named("resource", uri, {}),)
    question = CallRequest("srv", "1", "agent", "resources/read", named, 50, "mcp_stdio", 1.0)
    return judge.judge(question).verdict.action


@pytest.mark.parametrize("uri", [_PASSWORDS, "file:///etc/%70asswd", "file:///tmp/../etc/passwd"])
@pytest.mark.parametrize("action", [DENY, APPROVE])
def test_no_spelling_of_a_resource_gets_round_its_rule(action: str, uri: str) -> None:
    assert _verdict(action, uri) == action


def test_another_resource_is_not_affected() -> None:
    assert _verdict(DENY, "file:///etc/hosts") == FORWARD
