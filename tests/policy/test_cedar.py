"""Cedar: the model that policies see, and that doubt denies."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.errors import ConfigError
from thoughtgate.policy import cedar as cedar_module
from thoughtgate.policy.call import Call
from thoughtgate.policy.cedar import CedarDecision, CedarEngine
from thoughtgate.policy.cedar_text import CedarSource

THURSDAY_NOON = 12 * 3600.0 + 34 * 60


def engine(text: str) -> CedarEngine:
    return CedarEngine([CedarSource("p.cedar", text)])


def decide(condition: str, arguments: dict[str, Any] | None = None, **fields: Any) -> CedarDecision:
    call = Call("gh", "tool", "delete", arguments or {})._replace(**fields)
    return engine(f"permit(principal, action, resource) when {{ {condition} }};").decide(
        call, THURSDAY_NOON
    )


@pytest.mark.parametrize(
    ("condition", "arguments"),
    [
        ("context.arguments.amount < 100", {"amount": 5}),
        ("context.arguments.amount < 100", {"amount": 5.0}),
        ('context.arguments.amount.lessThan(decimal("1.6"))', {"amount": 1.5}),
        ('context.arguments.amount == "0.12345"', {"amount": 0.12345}),
        ('context.arguments.amount == "1e-07"', {"amount": 1e-07}),
        ('context.arguments.amount == "9223372036854775808"', {"amount": 2**63}),
        ('context.arguments.amount == "1e+300"', {"amount": 1e300}),
        ('context.arguments.amount == "1000000000000000.5"', {"amount": 1000000000000000.5}),
        ("context.arguments.deep.flag", {"deep": {"flag": True}}),
        ('context.arguments.tags.contains("a")', {"tags": ["a", None, "b"]}),
        ("!(context.arguments has gone)", {"gone": None}),
        ('context.arguments.text like "rm *"', {"text": "rm -rf"}),
    ],
)
def test_arguments_are_seen_as_cedar_values(condition: str, arguments: dict[str, Any]) -> None:
    assert decide(condition, arguments).permitted


@pytest.mark.parametrize(
    "condition",
    [
        'principal == Agent::"local"',
        'action == Action::"call_tool"',
        'resource == Tool::"gh/delete"',
        'resource in Server::"gh"',
        'resource.name like "del*" && resource.server == "gh"',
        'context.server == "gh" && context.tool == "delete" && context.method == "tools/call"',
        "context.time.hour == 12 && context.time.minute == 34 && context.time.day_of_week == 4",
        "context.time.epoch == 45240",
        'context.session.id == "s1" && context.session.calls == 7',
        "context.annotations.destructiveHint",
        'context.claims.team == "ops"',
    ],
)
def test_a_policy_sees_the_whole_call(condition: str) -> None:
    assert decide(
        condition,
        session="s1",
        session_calls=7,
        annotations={"destructiveHint": True},
        claims={"team": "ops"},
    ).permitted


def test_resources_and_prompts_have_their_own_actions_and_types() -> None:
    text = """
    permit(principal, action == Action::"read_resource", resource == Resource::"fs/file:///a");
    permit(principal, action == Action::"get_prompt", resource == Prompt::"fs/greet");
    """
    policies = engine(text)
    assert policies.decide(Call("fs", "resource", "file:///a", {}), 0.0).permitted
    assert policies.decide(Call("fs", "prompt", "greet", {}), 0.0).permitted
    assert not policies.decide(Call("fs", "tool", "greet", {}), 0.0).permitted


def test_no_permit_denies_and_names_no_policy() -> None:
    decision = decide("context.arguments.amount < 100", {"amount": 500})
    assert decision == CedarDecision(permitted=False, policy="", reason="no policy permits it")


def test_a_forbid_beats_a_permit() -> None:
    policies = engine(
        'permit(principal, action, resource); @id("no") forbid(principal, action, resource);'
    )
    decision = policies.decide(Call("s", "tool", "x", {}), 0.0)
    assert (decision.permitted, decision.policy) == (False, "no")


def test_an_evaluation_error_denies_even_beside_a_permit() -> None:
    policies = engine(
        "permit(principal, action, resource);"
        "forbid(principal, action, resource) when { context.arguments.amount > 5 };"
    )
    decision = policies.decide(Call("s", "tool", "x", {}), 0.0)
    assert not decision.permitted
    assert "amount" in decision.reason
    assert policies.decide(Call("s", "tool", "x", {"amount": 1}), 0.0).permitted


def test_a_wrong_type_denies() -> None:
    assert not decide("context.arguments.amount < 100", {"amount": "5"}).permitted


@pytest.mark.parametrize(
    "arguments",
    [
        {"__entity": {"type": "Agent", "id": "root"}},
        {"who": {"__entity": {"type": "Agent", "id": "root"}}},
        {"n": [{"__extn": {"fn": "decimal", "arg": "1.0"}}]},
        {"__expr": "1"},
    ],
)
def test_an_agent_cannot_forge_cedar_values(arguments: dict[str, Any]) -> None:
    whole = "context.arguments == context.arguments"
    assert not decide(whole, arguments).permitted
    named = "context.arguments has who || context.arguments has n"
    assert not decide(named, arguments).permitted


def test_a_number_beyond_all_others_denies() -> None:
    decision = decide("context.arguments has a", {"a": float("inf")})

    assert (decision.permitted, decision.reason) == (
        False,
        "a number of the call is too large for Cedar",
    )
    assert decide("context.arguments has a", {"a": 10**400}).permitted


def test_a_permit_that_asks_beats_one_that_does_not() -> None:
    policies = engine(
        'permit(principal, action, resource); @id("a") @approval("ops") permit(principal, action, resource);'
    )
    decision = policies.decide(Call("s", "tool", "x", {}), 0.0)
    assert decision.permitted
    assert decision.workflow == "ops"
    assert policies.workflows == {"ops"}


@pytest.mark.parametrize("annotation", ["@approval", '@approval("")'])
def test_an_empty_approval_means_the_default_workflow(annotation: str) -> None:
    policies = engine(f"{annotation} permit(principal, action, resource);")
    assert policies.decide(Call("s", "tool", "x", {}), 0.0).workflow == ""


def test_a_slash_in_a_server_id_cannot_pass_for_another_tool() -> None:
    policies = engine('permit(principal, action, resource == Tool::"a/b/c");')
    assert policies.decide(Call("a", "tool", "b/c", {}), 0.0).permitted
    assert not policies.decide(Call("a/b", "tool", "c", {}), 0.0).permitted


def test_entities_are_kept_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cedar_module, "MAX_ENTITIES", 2)
    policies = engine('permit(principal, action, resource in Server::"s");')
    for number in range(6):
        for _ in range(2):
            assert policies.decide(Call("s", "tool", f"t{number}", {}), 0.0).permitted
    assert len(policies._entities) <= 2
    before = len(policies._entities)
    assert policies.decide(Call("s", "tool", "t" * 100_000, {}), 0.0).permitted
    assert len(policies._entities) <= before


def test_policies_of_several_files_keep_their_names() -> None:
    policies = CedarEngine(
        [
            CedarSource("a.cedar", 'permit(principal, action, resource == Tool::"s/a");\n// end'),
            CedarSource("b.cedar", 'permit(principal, action, resource == Tool::"s/b");'),
        ]
    )
    assert policies.count == 2
    assert policies.decide(Call("s", "tool", "b", {}), 0.0).policy == "b.cedar:policy0"


def test_an_engine_tells_what_its_policies_may_look_at() -> None:
    policies = engine("permit(principal, action, resource) when { context.arguments.n < 3 };")
    assert policies.looks_at("arguments")
    assert not policies.looks_at("time")


def test_a_file_that_does_not_parse_is_a_config_error() -> None:
    with pytest.raises(ConfigError) as caught:
        engine("permit(principal,\naction\nresource);")
    assert (caught.value.problems[0].file, caught.value.problems[0].line) == ("p.cedar", 3)


def test_a_program_without_cedar_policies_does_not_load_the_engine() -> None:
    program = "import sys, thoughtgate.policy.policy; sys.exit('cedarpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=30).returncode == 0


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
ALWAYS = engine(
    "permit(principal, action, resource) when { context.arguments == context.arguments };"
)

PRUNED = (
    "permit(principal, action, resource) when "
    "{ context.arguments has a && context.arguments.a == 1 };"
    "permit(principal, action, resource) when "
    "{ context.arguments has b.c && context.arguments.b.c };"
    "forbid(principal, action, resource) when { context.arguments has bad };"
)
ENTIRE = f"{PRUNED} forbid(principal, action, resource) when {{ context == {{}} }};"
"""The same, and one that never matches but uses the context as a whole."""


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(max_size=4), JSON, max_size=3))
def test_any_arguments_can_be_shown_to_cedar(arguments: dict[str, Any]) -> None:
    assert ALWAYS.decide(Call("s", "tool", "x", arguments), 0.0).permitted


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "bad", "other"]),
        JSON | st.just(1) | st.fixed_dictionaries({"c": st.booleans()}),
        max_size=3,
    )
)
def test_what_no_policy_names_changes_no_decision(arguments: dict[str, Any]) -> None:
    call = Call("s", "tool", "x", arguments)
    assert engine(PRUNED).decide(call, 0.0)[:3] == engine(ENTIRE).decide(call, 0.0)[:3]
