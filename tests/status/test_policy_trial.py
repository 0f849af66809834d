"""The policy in force with its hits, and candidates that are tried and never applied."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.consoles import write_events
from tests.support.records import T0, call, decided, started

from thoughtgate.core.record_events import Record
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.policy.call import Call
from thoughtgate.policy.layers import with_layers
from thoughtgate.policy.policy import Layer, Policy
from thoughtgate.status.policy_trial import PolicyInForce
from thoughtgate.status.record_view import ConsoleRecord

CONFIG = """\
schema: 1
default: forward
rules:
  - {id: reads, tool: "read_*", server: files, action: forward}
  - {tool: transfer, when: {amount: {gt: 100}}, action: approve, reason: large}
"""


class Place:
    """A config and a record."""

    def __init__(self, folder: Path, config: str = CONFIG) -> None:
        self.folder = folder
        self.file = folder / "thoughtgate.yaml"
        self.file.write_text(config)
        self.loaded = load_configuration(str(self.file), {}, str(folder))
        record = ConsoleRecord(folder / "audit.jsonl")
        self.policy = PolicyInForce(self.loaded, {"HIDDEN": "hunter2"}, record)

    def write(self, *events: Record) -> None:
        write_events(self.folder, *events)

    def hits(self) -> dict[str, int]:
        (_, rules), *_ = self.policy.rules()
        return {rule.id: rule.hits for rule in rules}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def by(place: Place, ident: str, rule: str, version: str = "") -> list[Record]:
    body = decided(ident, T0, tool="read_file")
    decision = {
        **body.body["decision"],
        "rule_id": rule,
        "policy": {"policy_version": version or place.loaded.policy.version},
    }
    judged = body._replace(body={**body.body, "decision": decision})
    return [started(ident, T0, tool="read_file", preview="{}"), judged]


def test_rules_are_told_with_what_they_apply_to_and_how_often(place: Place) -> None:
    place.write(
        *by(place, "run-1.1", "reads"),
        *by(place, "run-1.2", "reads"),
        *by(place, "run-1.3", "rules[1]", "an older policy"),
        *by(place, "run-1.4", "default"),
    )

    assert place.hits() == {"reads": 2, "rules[1]": 0, "default": 1}
    (_, rules), *_ = place.policy.rules()
    assert rules[0].selects == "tool read_* on files"
    assert "amount gt 100" in rules[1].selects


def test_a_changed_file_is_read_again_and_a_broken_one_is_not_used(place: Place) -> None:
    place.file.write_text("schema: 1\ndefault: deny\n")
    assert place.policy.current().policy.default == "deny"
    place.file.write_text("schema: 1\ndefault: nonsense\n")

    assert place.policy.current().policy.default == "deny"
    assert "default" in place.policy.problem


def test_a_typed_call_is_explained(place: Place) -> None:
    found = place.policy.explain_call(Call("bank", "tool", "transfer", {"amount": 500}), T0)

    assert found.decision == "HOLD"
    assert found.verdict is not None
    assert found.verdict.reason == "large"
    assert [step.gate for step in found.steps] == ["visibility", "rules"]


def test_a_candidate_is_compared_and_replayed_and_never_applied(place: Place) -> None:
    place.write(*(event for number in range(4) for event in call(number)))
    found = place.policy.try_policy("schema: 1\ndefault: deny\n", T0)

    assert found.problems == ()
    assert found.calls == 4
    assert sum(flip.calls for flip in found.flips) == 4
    assert all(flip.tightens for flip in found.flips)
    assert any(change.subject == "default" for change in found.changes)
    assert place.policy.current().policy.default == "forward"


@pytest.mark.parametrize(
    "text",
    [
        "schema: 1\ndefault: nonsense\n",
        "not a config",
        "[" * 5000,
        "a: &a [x]\nb: *a\n" * 2,
        'schema: 1\ndefault: "${HIDDEN}"\n',
        "schema: 1\ndefault: policy\ncedar: {policies: [thoughtgate.yaml]}\n",
        "schema: 1\ndefault: policy\ncedar: {policies: [/etc/passwd]}\n",
    ],
)
def test_what_is_no_candidate_is_told_so(place: Place, text: str) -> None:
    found = place.policy.try_policy(text, T0)

    assert found.problems
    assert "hunter2" not in str(found)
    assert found.changes == ()


def test_a_variable_stays_as_it_is_written(place: Place) -> None:
    text = 'schema: 1\ndefault: forward\nrules: [{tool: "${HIDDEN}", action: deny}]\n'
    found = place.policy.try_policy(text, T0)

    assert found.problems == ()
    assert "${HIDDEN}" in str(found.changes)
    assert "hunter2" not in str(found)


def test_the_organisations_policy_applies_to_a_candidate_too(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    floor = Layer("organisation", Policy(version="o", default="deny"))
    layered = replace(place.loaded, policy=with_layers(place.loaded.policy, floor))
    policy = PolicyInForce(layered, {}, ConsoleRecord(tmp_path / "audit.jsonl"))
    place.write(*call(1))
    row = ConsoleRecord(tmp_path / "audit.jsonl").calls(1)[0]
    found = policy.try_call("schema: 1\ndefault: forward\n", row, T0)

    assert found.decision == "BLOCK"
    assert [name for name, _ in policy.rules()] == ["", "organisation"]


def test_a_proposal_is_made_from_the_record(place: Place) -> None:
    assert place.policy.learn(0.0, "") == ""
    place.write(*call(1))

    assert "default: deny" in place.policy.learn(0.0, "7d")
