"""Exposures are compared pattern by pattern: a probe cannot show every name."""

import pytest

from thoughtgate.analysis.exposure_changes import compare_exposures
from thoughtgate.analysis.rule_changes import LOOSENS, UNTOLD
from thoughtgate.policy.visibility import Exposure, Visibility

ALL = Exposure()
OFF = Exposure(enabled=False)


def allow(*names: str) -> Exposure:
    return Exposure.of("allow", names)


def block(*names: str) -> Exposure:
    return Exposure.of("block", names)


@pytest.mark.parametrize(
    ("old", "new", "effect"),
    [
        (ALL, ALL, ""),
        (ALL, allow("a"), ""),
        (ALL, OFF, ""),
        (OFF, OFF, ""),
        (OFF, ALL, LOOSENS),
        (OFF, allow("a"), LOOSENS),
        (allow("a"), ALL, LOOSENS),
        (block("a"), ALL, LOOSENS),
        (allow("a*"), allow("ab*", "ac"), ""),
        (allow("ab*"), allow("a*"), UNTOLD),
        (allow("a"), allow("a", "b"), UNTOLD),
        (allow("a"), allow(), ""),
        (block("ab*"), block("a*"), ""),
        (block("a*"), block("a*x"), UNTOLD),
        (block("a"), block(), UNTOLD),
        (allow("a"), block("b"), UNTOLD),
        (block("a"), allow("b"), UNTOLD),
    ],
)
def test_what_may_show_more_is_found(old: Exposure, new: Exposure, effect: str) -> None:
    found = list(compare_exposures(Visibility({"s": old}), Visibility({"s": new})))

    assert [one.change.effect for one in found] == ([effect] if effect else [])


def test_a_server_without_an_entry_is_compared_by_the_entry_for_all_others() -> None:
    old = Visibility({"*": allow("a"), "s": allow("a")})
    new = Visibility({"*": allow("a", "b")})

    found = {one.server: one.change.subject for one in compare_exposures(old, new)}

    assert found == {"*": "servers.*.expose", "s": "servers.s.expose"}


def test_the_change_names_both_lists() -> None:
    (shown,) = compare_exposures(Visibility({"s": OFF}), Visibility({"s": allow("b*", "a")}))

    assert (shown.change.before, shown.change.after) == ("disabled", "allow a b*")
