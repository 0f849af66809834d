"""The record's page is the contract, whole and fresh."""

from pathlib import Path

import pytest
from tools.docs_audit import OCSF_FIELDS, render

from thoughtgate.record.contract import ENVELOPE, EVENTS
from thoughtgate.record.ocsf import CLASSES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "audit.md"


@pytest.mark.requirement("NFR-M3")
def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text("utf-8") == render(), "write it again: make docs"


def test_every_type_and_member_is_on_the_page() -> None:
    page = render()
    for event in EVENTS:
        assert f"\n## `{event.name}`\n" in page
        for member in (*ENVELOPE, *event.members):
            assert f"| `{member.path}` |" in page


def test_the_ocsf_mapping_is_on_the_page() -> None:
    page = render()
    for name, shape in CLASSES.items():
        assert f"| `{name}` | {shape.class_name} ({shape.class_uid}) |" in page
    for field, source in OCSF_FIELDS:
        assert f"| `{field}` | {source} |" in page
