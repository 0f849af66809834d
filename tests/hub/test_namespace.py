"""Choosing a namespace."""

import pytest

from thoughtgate.hub.namespace import NoSelection, Selection, select_namespace

SPACES = {"work": ("files", "git"), "home": ("files",)}
ALL = ("files", "git", "web")


@pytest.mark.requirement("S002-53", "S002-04")
@pytest.mark.parametrize(
    ("asked", "default", "spaces", "expected"),
    [
        ("home", "work", SPACES, Selection("home", "flag", ("files",))),
        ("", "work", SPACES, Selection("work", "default", ("files", "git"))),
        ("", "", {"work": ("git",)}, Selection("work", "only", ("git",))),
        ("", "", {}, Selection("", "all", ALL)),
    ],
)
def test_a_namespace_is_chosen_by_flag_default_only_one_or_all(
    asked: str, default: str, spaces: dict[str, tuple[str, ...]], expected: Selection
) -> None:
    assert select_namespace(asked, default, spaces, ALL) == expected


@pytest.mark.requirement("S002-53")
@pytest.mark.parametrize(("asked", "default"), [("", ""), ("nope", ""), ("", "nope")])
def test_an_ambiguous_or_unknown_namespace_names_the_choices(asked: str, default: str) -> None:
    chosen = select_namespace(asked, default, SPACES, ALL)

    assert isinstance(chosen, NoSelection)
    assert chosen.choices == ("work", "home")
    assert "work" in chosen.reason
    assert "home" in chosen.reason


def test_an_unknown_namespace_is_an_error_where_none_is_configured() -> None:
    chosen = select_namespace("work", "", {}, ALL)

    assert isinstance(chosen, NoSelection)
    assert "none is configured" in chosen.reason
