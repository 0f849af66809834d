"""The documentation is true: links lead somewhere, pages are fresh, commands are told, blocks run."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.support.commands import isolated_command
from tests.support.doc_blocks import FENCE, Block, runnable_blocks
from tools.docs import ROOT, pages

from thoughtgate.cli.app import COMMANDS

MAX_README: Final = 150
INTERPRETERS: Final = {"sh": ["/bin/sh", "-eu"], "python": [sys.executable, "-W", "error"]}
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)


def _pages() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def _without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def _anchors(page: Path) -> set[str]:
    """Return the anchors a page offers, made as the usual renderers make them."""
    headings = _HEADING.findall(FENCE.sub("", page.read_text("utf-8")))
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in kept}


def _broken_links(page: Path) -> Iterator[str]:
    for target in _LINK.findall(_without_code(page.read_text("utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        goal = (page.parent / file).resolve() if file else page
        if not goal.exists():
            yield f"{page.relative_to(ROOT)}: {target} leads nowhere"
        elif anchor and anchor not in _anchors(goal):
            yield f"{page.relative_to(ROOT)}: {target} has no such heading"


def _blocks() -> Iterator[Block]:
    for page in _pages():
        yield from runnable_blocks(page)


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= MAX_README


def test_every_merge_is_finished() -> None:
    marks = re.compile(r"^(?:<{7} |>{7} )", re.MULTILINE)

    assert [page.name for page in _pages() if marks.search(page.read_text("utf-8"))] == []


def test_every_link_leads_somewhere() -> None:
    broken = [line for page in _pages() for line in _broken_links(page)]

    assert not broken, "\n".join(broken)


def test_every_command_is_told_of_in_prose() -> None:
    prose = "\n".join(page.read_text("utf-8") for page in _pages() if page.name != "commands.md")
    untold = [one.name for one in COMMANDS if f"thoughtgate {one.name}" not in prose]

    assert not untold


def test_every_page_has_a_title_and_says_what_it_is() -> None:
    for page in _pages():
        lines = page.read_text("utf-8").splitlines()
        assert lines, page
        assert lines[0].startswith("# "), page


def test_the_generated_pages_are_fresh() -> None:
    stale = [str(page.path.relative_to(ROOT)) for page in pages() if page.is_stale]

    assert not stale, f"run make docs: {stale}"


@pytest.mark.parametrize(
    "block", list(_blocks()), ids=lambda block: f"{block.page.stem}-{block.number}"
)
def test_a_runnable_block_runs(block: Block, tmp_path: Path) -> None:
    folder = str(Path(sys.executable).parent)
    work = tmp_path / "work"
    for one in (tmp_path / "bin", work):
        one.mkdir()
    own = isolated_command(tmp_path / "bin").parent
    environment = {**os.environ, "PATH": f"{own}:{folder}:{os.environ['PATH']}"}
    run = subprocess.run(
        [*INTERPRETERS[block.language], "-c", block.script],
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert run.returncode == 0, run.stdout + run.stderr
