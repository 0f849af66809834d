"""Deciding several requests at once: only what was listed is decided."""

import re

from tests.support.consoles import Client, LocalConsole
from tests.web.conftest import Gate

PATH = "/approvals/together"
RULE = "rule=rules%5B0%5D"


def confirm(client: Client, *idents: str) -> str:
    chosen = "&".join(f"id={ident}" for ident in idents)
    return client.get(f"{PATH}?{RULE}&{chosen}").token(PATH)


def test_the_requests_of_a_rule_are_listed_and_none_is_chosen(client: Client, gate: Gate) -> None:
    first, second = gate.hold("one"), gate.hold("two", workflow="bob")
    text = client.get(f"{PATH}?{RULE}").text

    assert f'value="{first}">' in text
    assert f'value="{second}" disabled>' in text
    assert "checked" not in text
    assert 'value="approve"' not in text
    assert "No request that this rule holds" in client.get(f"{PATH}?rule=other").text


def test_the_confirmation_shows_every_argument_of_what_is_decided(
    client: Client, gate: Gate
) -> None:
    first = gate.hold("one", {"path": "/srv/one"}, extra={"cwd": "/etc"})
    second, third = gate.hold("two", {"path": "/srv/two"}), gate.hold("three")
    text = client.get(f"{PATH}?{RULE}&id={first}&id={second}").text

    assert "/srv/one" in text
    assert "/srv/two" in text
    assert "/etc" in text
    assert f'name="ids" value="{first} {second}"' in text
    # As a word: the form's token may contain the same characters by chance.
    assert not re.search(rf"\b{third}\b", text.partition("<form class")[2])


def test_only_what_is_listed_is_decided(client: Client, gate: Gate) -> None:
    first, second = gate.hold("one"), gate.hold("two")
    token = confirm(client, first, second)
    gate.hold("three")
    answer = client.post(
        PATH, {"token": token, "ids": f"{first} {second}", "decision": "approve", "reason": "ok"}
    )

    assert answer.text.count(">approved<") == 2
    assert gate.decided() == {"run.1": True, "run.2": True}


def test_a_changed_list_decides_nothing(console: LocalConsole, client: Client, gate: Gate) -> None:
    first, second, third = gate.hold("one"), gate.hold("two"), gate.hold("three")
    token = confirm(client, first, second)
    for ids in (f"{first} {second} {third}", f"{first} {third}", first, "", f"{first} a99"):
        answer = client.post(PATH, {"token": token, "ids": ids, "decision": "approve"})
        assert answer.status == 403

    assert gate.decided() == {}
    assert console.refusals


def test_a_form_without_a_decision_or_sent_twice_decides_nothing(
    client: Client, gate: Gate
) -> None:
    first, second = gate.hold("one"), gate.hold("two")
    fields = {"token": confirm(client, first, second), "ids": f"{first} {second}"}
    assert client.post(PATH, fields).status == 400
    assert client.post(PATH, {**fields, "decision": "approve"}).status == 403

    assert gate.decided() == {}


def test_what_was_decided_elsewhere_is_reported_and_the_rest_is_decided(
    client: Client, gate: Gate
) -> None:
    first, second = gate.hold("one"), gate.hold("two")
    token = confirm(client, first, second)
    path = f"/approvals/{first}"
    client.post(path, {"token": client.get(path).token(path), "decision": "deny"})
    answer = client.post(PATH, {"token": token, "ids": f"{first} {second}", "decision": "approve"})

    assert "not decided" in answer.text
    assert gate.decided() == {"run.1": False, "run.2": True}


def test_long_arguments_are_decided_alone(client: Client, gate: Gate) -> None:
    gate.hold("one", {"text": "x" * 100_000})
    gate.hold("two")

    assert "too long to be shown here" in client.get(f"{PATH}?{RULE}").text
