"""Evaluation of a call: all spellings of a resource are judged, and the strictest verdict counts."""

import pytest

from thoughtgate.policy.call import DENY, FORWARD, Call
from thoughtgate.policy.evaluation import evaluate
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.layers import PROJECT, with_layers
from thoughtgate.policy.policy import Layer, Policy
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector

DENY_ETC = Policy(
    rules=RuleSet([Rule("etc", DENY, Selector(names=compile_globs(["file:///etc/*"])))]),
    default=FORWARD,
)


@pytest.mark.parametrize("uri", ["file:///etc/passwd", "file:///tmp/../etc/passwd"])
def test_another_spelling_of_a_denied_resource_is_denied(uri: str) -> None:
    call = Call("fs", "resource", uri, {}, method="resources/read")
    assert evaluate(call, DENY_ETC, 0.0).action == DENY
    layered = with_layers(Policy(default=FORWARD), Layer(PROJECT, DENY_ETC))
    assert evaluate(call, layered, 0.0).rule == "project:etc"


def test_other_resources_are_forwarded() -> None:
    call = Call("fs", "resource", "file:///tmp/etc/x", {}, method="resources/read")
    assert evaluate(call, DENY_ETC, 0.0).action == FORWARD
