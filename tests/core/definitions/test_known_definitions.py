"""What the judge knows about definitions."""

from thoughtgate.core.definitions.known_definitions import DEFINITION_HELD, Doubt, KnownDefinitions
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, Call, Verdict
from thoughtgate.policy.definitions import DefinitionPolicy
from thoughtgate.wire.methods import Named

PINNED = DefinitionPolicy({"s": "pin"})
GO = Verdict(FORWARD, "rules")
DOUBT = Doubt("held", "the definition changed (severe)")


def call(name: str, kind: str = "tool") -> Call:
    return Call("s", kind, name, {}, "tools/call")


def known(policy: DefinitionPolicy = PINNED) -> KnownDefinitions:
    made = KnownDefinitions(policy)
    made.watch()
    made.replace("s", {("tool", "good"): None, ("tool", "bad"): DOUBT})
    made.listed("s", "tool")
    return made


def test_only_accepted_definitions_can_be_called() -> None:
    found = known()
    assert found.review(call("good"), GO) == GO
    held = found.review(call("bad"), GO)
    assert (held.action, held.kind, held.reason) == (DENY, DEFINITION_HELD, DOUBT.note)
    assert found.review(call("unlisted"), GO).kind == DEFINITION_HELD
    assert found.hidden("s", "tool", ("good", "bad", "new")) == {"bad", "new"}


def test_a_refusal_stays_what_it_is() -> None:
    no = Verdict(DENY, "visibility", "not_exposed")
    assert known().review(call("bad"), no) is no


def test_a_list_is_needed_before_a_call() -> None:
    found = known()
    named = (Named("tool", "good", {}),)
    assert not found.must_list("s", named, "")
    found.forget("s")
    assert found.must_list("s", named, "")
    assert not found.must_list("s", named, "failed")
    assert found.review(call("good"), GO).kind == DEFINITION_HELD
    assert not found.must_list("other", named, "")


def test_pins_that_cannot_be_read_count_as_changed() -> None:
    found = known()
    found.unread.add("s")
    assert found.review(call("good"), GO).kind == DEFINITION_HELD
    assert found.hidden("s", "tool", ("good",)) == {"good"}


def test_a_resource_need_not_be_listed() -> None:
    assert known().review(call("file:///x", "resource"), GO) == GO


def test_a_warning_is_told_to_the_reviewer_only() -> None:
    found = known(DefinitionPolicy())
    assert found.review(call("bad"), GO) == GO
    asks = Verdict(APPROVE, "rules", reason="large")
    assert found.review(call("bad"), asks).reason == f"large; {DOUBT.note}"
    assert found.review(call("good"), asks) == asks
    assert found.hidden("s", "tool", ("bad",)) == frozenset()


def test_nothing_matters_without_doubts_and_pins() -> None:
    found = KnownDefinitions(DefinitionPolicy())
    found.watch()
    assert not found.is_relevant
    assert not KnownDefinitions(PINNED).is_relevant
