"""The documentation site: every page is in its navigation, and nothing comes from elsewhere."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from ruamel.yaml import YAML
from tools.error_pages import ADVICE
from tools.site_pages import MAX_PAGE, on_page_markdown, on_post_page
from tools.source_tree import ROOT

from thoughtgate.errors import KINDS

DOCS: Final = ROOT / "docs"
BUILD_S: Final = 300.0
LOADS: Final = re.compile(
    r'<(?:script|img|iframe|link rel="(?:stylesheet|icon|preconnect)")[^>]*(?:src|href)="https?://'
)
REPOSITORY: Final = "https://example.org/code"


def _config() -> dict[str, Any]:
    found: dict[str, Any] = YAML(typ="safe").load(ROOT / "mkdocs.yml")
    return found


def _leaves(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from _leaves(value)
    elif isinstance(node, list):
        for value in node:
            yield from _leaves(value)


def test_every_page_is_in_the_navigation_once() -> None:
    listed = list(_leaves(_config()["nav"]))

    assert sorted(listed) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def test_every_kind_of_error_has_advice() -> None:
    assert list(ADVICE) == list(KINDS)


@pytest.mark.parametrize(
    ("link", "leads_to"),
    [
        ("../../deploy/compose.yaml", f"{REPOSITORY}/blob/main/deploy/compose.yaml"),
        ("../../CHANGELOG.md#unreleased", f"{REPOSITORY}/blob/main/CHANGELOG.md#unreleased"),
        ("../concepts/gates.md#limits", "../concepts/gates.md#limits"),
        ("wrap.md", "wrap.md"),
    ],
)
def test_links_that_leave_the_docs_lead_to_the_repository(link: str, leads_to: str) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="guides/containers.md"))

    text = on_page_markdown(f"See [it]({link}).", page=page, config={"repo_url": REPOSITORY})

    assert text == f"See [it]({leads_to})."


def test_a_page_that_is_too_large_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x" * (MAX_PAGE - 10))
    page = SimpleNamespace(file=SimpleNamespace(src_uri="p.md"), markdown="![it](a.png)")
    config = {"docs_dir": str(tmp_path)}

    assert on_post_page("0123456789", page=page, config=config) == "0123456789"
    with pytest.raises(ValueError, match="at most 300,000"):
        on_post_page("0123456789x", page=page, config=config)


@pytest.mark.long
def test_the_site_builds_small_pages_that_load_nothing_from_elsewhere() -> None:
    subprocess.run(["make", "site"], cwd=ROOT, check=True, timeout=BUILD_S)

    pages = sorted((ROOT / "build" / "site").rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))
    for page in pages:
        text = page.read_text("utf-8")
        assert len(text.encode()) < MAX_PAGE, page
        assert not LOADS.search(text), page
