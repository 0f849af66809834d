"""Readings of arguments for Cedar: what takes the place of an attribute, and how many there are."""

from typing import Any

import pytest

from thoughtgate.policy.call import Call
from thoughtgate.policy.cedar import CedarEngine
from thoughtgate.policy.cedar_readings import MAX_READINGS, AttributeNames
from thoughtgate.policy.cedar_text import CedarSource

NAMES = AttributeNames({"amount", "to", "country"})


@pytest.mark.parametrize(
    ("arguments", "readings"),
    [
        ({}, [{}]),
        ({"amount": 1, "Other": 2}, [{"amount": 1, "Other": 2}]),
        ({"to": {"country": "DE"}}, [{"to": {"country": "DE"}}]),
        ({"Amount": 1}, [{"Amount": 1}, {"Amount": 1, "amount": 1}]),
        (
            {"amount": 1, "AMOUNT": 2},
            [
                {"amount": 1, "AMOUNT": 2},
                {"amount": 1, "AMOUNT": 2},
                {"amount": 2, "AMOUNT": 2},
            ],
        ),
        (
            {"to": [{"Country": "DE"}]},
            [{"to": [{"Country": "DE"}]}, {"to": [{"Country": "DE", "country": "DE"}]}],
        ),
    ],
)
def test_each_key_takes_the_place_of_the_attribute(
    arguments: dict[str, Any], readings: list[dict[str, Any]]
) -> None:
    assert NAMES.readings(arguments) == readings


def test_names_that_differ_only_by_case_are_all_replaced() -> None:
    names = AttributeNames({"id", "ID"})

    readings = names.readings({"Id": 1})

    assert readings == [{"Id": 1}, {"Id": 1, "id": 1, "ID": 1}]


def test_too_many_readings_are_not_listed() -> None:
    assert NAMES.readings({"to": [{"Country": 1}] * 4}) is not None
    assert NAMES.readings({"to": [{"Country": 1}] * 5}) is None
    assert NAMES.readings({"to": [{"Country": 1}] * 1_000_000}) is None
    assert MAX_READINGS == 16


def test_objects_that_go_would_merge_are_not_told_apart() -> None:
    assert NAMES.readings({"to": {"country": "DE"}, "To": {"amount": 5}}) is None


@pytest.mark.promise("readings-keys")
@pytest.mark.parametrize(
    "arguments",
    [
        {"Amount": 5000},
        {"amount": 5, "Amount": 5000},
        {"Amount": 5000, "amount": 5},
        {"AMOUNT": 5, "aMOUNT": 5000, "amount": 1},
        {"amount": 5, "to": {"Country": "XX"}},
        {"amount": 5, "T\u006f": {"country": "DE"}, "TO": {"country": "XX"}},
        {"amount": 5, "To": {"country": "XX"}},
        dict.fromkeys(["amount", "Amount", "aMount", "amOunt", "amoUnt", "amouNt"], 5)
        | dict.fromkeys(["AMount", "aMOunt", "amOUnt", "amoUNt", "amouNT", "AMOunt"], 5)
        | dict.fromkeys(["AMOUnt", "AMOUNt", "AMOUNT", "aMOUNT"], 5),
    ],
)
def test_a_policy_cannot_be_bypassed_by_the_case_of_a_key(arguments: dict[str, Any]) -> None:
    engine = CedarEngine(
        [
            CedarSource(
                "p.cedar",
                "permit(principal, action, resource);"
                "forbid(principal, action, resource) when "
                "{ context.arguments has amount && context.arguments.amount > 1000 };"
                "forbid(principal, action, resource) when "
                '{ context.arguments has to.country && context.arguments.to.country == "XX" };',
            )
        ]
    )

    assert engine.decide(Call("bank", "tool", "pay", {"amount": 5}), 0.0).permitted
    assert not engine.decide(Call("bank", "tool", "pay", arguments), 0.0).permitted


def test_a_permit_that_asks_a_person_counts_more_than_one_that_does_not() -> None:
    engine = CedarEngine(
        [
            CedarSource(
                "p.cedar",
                "permit(principal, action, resource) unless { context.arguments has force };"
                '@approval("ops") permit(principal, action, resource) '
                "when { context.arguments has force };",
            )
        ]
    )

    assert engine.decide(Call("s", "tool", "t", {}), 0.0).workflow is None
    assert engine.decide(Call("s", "tool", "t", {"Force": True}), 0.0).workflow == "ops"


@pytest.mark.promise("one-reading")
@pytest.mark.parametrize("path", ["id", "in.id", "ids"])
def test_a_number_that_javascript_rounds_is_judged_as_both_numbers(path: str) -> None:
    forbidden = {
        "id": "context.arguments.id == 9007199254740992",
        "in.id": 'context.arguments["in"].id == 9007199254740992',
        "ids": "context.arguments.ids.contains(9007199254740992)",
    }[path]
    engine = CedarEngine(
        [
            CedarSource(
                "a.cedar",
                "permit(principal, action, resource);\n"
                f"forbid(principal, action, resource) when {{ {forbidden} }};",
            )
        ]
    )

    def is_permitted(number: int) -> bool:
        arguments: dict[str, dict[str, Any]] = {
            "id": {"id": number},
            "in.id": {"in": {"id": number}},
            "ids": {"ids": [number]},
        }
        call = Call("s", "tool", "t", arguments[path])
        return engine.decide(call, 0.0).permitted

    assert not is_permitted(9007199254740992)
    assert not is_permitted(9007199254740993)
    assert is_permitted(9007199254740994)
    assert is_permitted(10**400)
