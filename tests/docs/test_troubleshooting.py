"""The page about troubleshooting has every cause, under its kind."""

import re
from pathlib import Path

import pytest

from thoughtgate.errors import CAUSES, KINDS

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "troubleshooting.md"

ROW = re.compile(r"^\| `([a-z0-9_]+)` \| \S", re.MULTILINE)


def sections() -> dict[str, list[str]]:
    """Return the causes on the page by the kind whose section they are in."""
    parts = re.split(r"^## `([a-z_]+)`$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return {kind: ROW.findall(text) for kind, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_the_page_has_every_cause_once_under_its_kind() -> None:
    found = {cause: kind for kind, causes in sections().items() for cause in causes}
    assert found == {cause: kind for cause, (kind, _) in CAUSES.items()}
    assert sum(map(len, sections().values())) == len(CAUSES)


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in CAUSES.values()}))
def test_every_kind_is_registered_and_has_a_section(kind: str) -> None:
    assert kind in KINDS
    assert kind in sections()
