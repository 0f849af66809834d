"""What policies look at, read out of their JSON form."""

import json

import cedarpy
import pytest

from thoughtgate.policy.cedar_needs import ContextNeeds, context_needs


def _needs(*conditions: str) -> ContextNeeds:
    text = "".join(
        f"permit(principal, action, resource) when {{ {condition} }};" for condition in conditions
    )
    return context_needs(json.loads(cedarpy.policies_to_json_str(text)))


@pytest.mark.parametrize(
    ("condition", "members", "arguments"),
    [
        ("true", set(), set()),
        ('resource.name == "context"', set(), set()),
        ('principal == Agent::"context"', set(), set()),
        ("context.time.hour > 8", {"time"}, set()),
        ("context has claims", {"claims"}, set()),
        ('context["tool"] == "x"', {"tool"}, set()),
        ("context.arguments.a.b < 3", {"arguments"}, {"a"}),
        ("context.arguments has a.b", {"arguments"}, {"a"}),
        ('context.arguments["two words"] == 1', {"arguments"}, {"two words"}),
        ("[1].contains(context.arguments.n) && ip(context.arguments.ip).isLoopback()",
         {"arguments"}, {"n", "ip"}),
        ("if context.server == context.method then true else false", {"server", "method"}, set()),
        ('{"x": context.session}.x has id', {"session"}, set()),
    ],
)  # fmt: skip
def test_named_members_are_found(condition: str, members: set[str], arguments: set[str]) -> None:
    assert _needs(condition)[:2] == (frozenset(members), frozenset(arguments))


@pytest.mark.parametrize("condition", ["context == {}", '{"x": context}.x has time'])
def test_a_context_used_as_a_whole_is_needed_whole(condition: str) -> None:
    needs = _needs("context.time.hour > 8", condition)
    assert needs[:2] == (None, None)
    assert needs.wants("anything")
    assert needs.readings_of({"a": 1}) == [{"a": 1}]


@pytest.mark.parametrize(
    "condition", ["context.arguments == {}", '{"x": context.arguments}.x has time']
)
def test_arguments_used_as_a_whole_are_needed_whole(condition: str) -> None:
    needs = _needs("context.arguments.a == 1", condition)
    assert needs[:2] == (frozenset({"arguments"}), None)


def test_only_named_arguments_that_are_there_are_handed_over() -> None:
    needs = _needs("context.arguments.a == 1 && context.arguments has b")
    assert needs.readings_of({"a": 1, "c": 2}) == [{"a": 1}]
    assert not needs.wants("time")


def test_a_key_that_folds_to_a_named_argument_is_handed_over_in_its_place() -> None:
    needs = _needs("context.arguments.a == 1 && context.arguments has b")

    assert needs.readings_of({"A": 1, "C": 2}) == [{"A": 1}, {"A": 1, "a": 1}]


def test_names_inside_arguments_and_compared_records_count() -> None:
    needs = _needs('context.arguments.to == {"country": "DE"} && context.arguments has from.iban')

    for arguments in ({"to": {"Country": "DE"}}, {"from": {"IBAN": "x"}}):
        readings = needs.readings_of(arguments)
        assert readings is not None
        assert len(readings) == 2
