"""The reference page of the config says what the models say."""

import re
from pathlib import Path

from tools.docs_config import OPERATOR_MEANINGS, render

from thoughtgate.config.json_schema import json_schema
from thoughtgate.policy.conditions import OPERATORS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "config.md"


def test_the_page_is_not_stale() -> None:
    message = "write it again: python -m tools.docs_config > docs/reference/config.md"
    assert PAGE.read_text("utf-8") == render(), message


def test_every_operator_is_explained() -> None:
    assert tuple(OPERATOR_MEANINGS) == OPERATORS


def test_every_key_that_holds_keys_has_a_section() -> None:
    schema, page = json_schema(), PAGE.read_text("utf-8")
    for definition in (schema, *schema["$defs"].values()):
        for key, entry in definition["properties"].items():
            heading = rf"^### `(.*\.)?{key}(\[\]|\.<\w+>)?`$"
            if "$ref" in str(entry) and key != "mcpServers":
                assert re.search(heading, page, re.MULTILINE), key
