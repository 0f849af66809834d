"""What a check found, and where."""

from thoughtgate.policy.inspection.finding import HARD, SOFT, Finding, tier_of


def test_the_place_has_a_span_only_if_there_is_one() -> None:
    assert Finding("a", HARD, "/b", 1, 3, "c").where == "/b:1-3"
    assert Finding("a", HARD, "/b", 0, 0, "c").where == "/b"


def test_the_strictest_tier_counts() -> None:
    soft, hard = Finding("a", SOFT, "", 0, 0, "b"), Finding("a", HARD, "", 0, 0, "b")
    assert [tier_of(one) for one in ((), (soft,), (soft, hard))] == ["none", "soft", "hard"]
