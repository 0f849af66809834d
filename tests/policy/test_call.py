"""The values that all gates speak in."""

from thoughtgate.policy.call import Call, Condition, Verdict


def test_a_call_needs_only_its_identity_and_arguments() -> None:
    call = Call("s", "tool", "x", {})
    assert (call.method, call.principal, call.annotations, call.claims) == (
        "tools/call",
        "local",
        None,
        None,
    )


def test_a_verdict_is_enforced_unless_it_says_otherwise() -> None:
    assert Verdict("deny", "rules").enforced


def test_a_condition_is_a_plain_value() -> None:
    assert Condition(("a",), "eq", 1) == (("a",), "eq", 1)
