"""The reference page of the config says what the models say."""

from pathlib import Path

from tools.docs_config import OPERATOR_MEANINGS, render

from thoughtgate.policy.conditions import OPERATORS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "config.md"


def test_the_page_is_not_stale() -> None:
    message = "write it again: python -m tools.docs_config > docs/reference/config.md"
    assert PAGE.read_text("utf-8") == render(), message


def test_every_operator_is_explained() -> None:
    assert tuple(OPERATOR_MEANINGS) == OPERATORS
