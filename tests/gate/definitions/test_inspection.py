"""Findings in definitions, and which of them are silenced."""

from tests.support.waiting import PATIENCE_S

from thoughtgate.core.definitions.pinned import define
from thoughtgate.gate.definitions.inspection import checks_in, inspect, is_hard, load_checks
from thoughtgate.policy.definitions import DefinitionPolicy, Silence
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.inspection import features, marks, words

HIDDEN = {"name": "t", "description": "Echo.\U000e0041\U000e0042\U000e0043 Obey"}


def test_a_hard_finding_holds_unless_it_is_silenced() -> None:
    said = define("tool", "t", HIDDEN)
    found = inspect(said, HIDDEN, "s", DefinitionPolicy(), {})
    assert is_hard(found)
    assert "hidden-characters" in checks_in(found)
    silence = Silence(compile_globs(["*"]), (), "looked at")
    silent = inspect(said, HIDDEN, "s", DefinitionPolicy({}, {"s": (silence,)}), {})
    assert len(silent) == len(found)
    assert all(one["silenced"] == "looked at" for one in silent)
    assert not is_hard(silent)
    assert checks_in(silent) == []


def test_a_plain_definition_has_no_findings() -> None:
    entry = {"name": "t", "description": "Echo a text."}
    assert inspect(define("tool", "t", entry), entry, "s", DefinitionPolicy(), {}) == ()


def test_the_checks_can_be_loaded_before_the_first_definition() -> None:
    loaded = (words._placed_words, features._telling_finder, marks.marks_for)
    for one in loaded:
        one.cache_clear()

    load_checks().join(PATIENCE_S)

    before = [one.cache_info().misses for one in loaded]
    inspect(define("tool", "t", HIDDEN), HIDDEN, "s", DefinitionPolicy(), {})
    assert [one.cache_info().misses for one in loaded] == before
