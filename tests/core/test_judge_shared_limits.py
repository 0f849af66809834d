"""The judge with limits that other processes count too."""

from collections.abc import Sequence

import pytest

from thoughtgate.core.approval import Decision
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest
from thoughtgate.policy.call import (
    APPROVE,
    DENY,
    DEVELOPMENT,
    FORWARD,
    PRODUCTION,
    Call,
    Verdict,
)
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.limits import Limit, LimitState
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.wire.methods import Named


def _judge(tool: str, action: str, profile: str = PRODUCTION) -> Judge:
    rule = Rule(f"rule-{tool}", action, Selector(names=compile_globs([tool])))
    limits = (Limit("l", budget=9),)
    policy = Policy(default=FORWARD, rules=RuleSet([rule]), limits=limits, profile=profile)
    return Judge(policy, "run", count=OtherProcesses)


def _question(name: str) -> CallRequest:
    named = (Named("tool", name, {}),)
    return CallRequest("srv", "1", "agent", "tools/call", named, 50, "mcp_stdio", 1.0)


class OtherProcesses(LimitState):
    """Counts of which other processes use up everything after some calls."""

    is_shared = True
    left = 1

    def take(self, calls: Sequence[Call], now: float) -> Verdict | None:
        del now
        self.left -= len(calls)
        return None if self.left >= 0 else self.check(calls[0], 0.0)

    def check(self, call: Call, now: float) -> Verdict | None:
        del call, now
        return None if self.left > 0 else Verdict(DENY, "limits", "budget", "all spent", "l")


@pytest.mark.parametrize("profile", [PRODUCTION, DEVELOPMENT])
def test_shared_counts_are_checked_when_a_call_is_counted(profile: str) -> None:
    judge = _judge("drop", DENY, profile)
    first, second = judge.judge(_question("x")), judge.judge(_question("x"))

    assert first.verdict.action == FORWARD
    assert (second.verdict.kind, second.verdict.enforced) == ("budget", profile == PRODUCTION)
    assert second.verdict.action == (DENY if profile == PRODUCTION else FORWARD)
    decision = second.records[1].body["decision"]
    assert (decision["action"], decision["rule_id"]) == ("THROTTLE", "l")
    # What a rule denies is denied by the rule, in whichever profile.
    assert judge.judge(_question("drop")).verdict.rule == "rule-drop"
    judge.close()


def test_shared_counts_are_checked_before_and_after_people_are_asked() -> None:
    judge = _judge("ask", APPROVE)
    held = [judge.judge(_question("ask")) for _ in range(2)]
    assert [one.verdict.action for one in held] == [APPROVE, APPROVE]
    yes = Decision(approved=True)
    settled = [judge.settle(one.call_id, yes, 5.0).verdict for one in held]

    assert [one.kind for one in settled] == ["", "budget"]
    assert judge.judge(_question("ask")).verdict.kind == "budget"
    predicted = judge.predict(Call("srv", "tool", "x", {}), 6.0)
    assert predicted.kind == "budget"
