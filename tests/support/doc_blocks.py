"""Code in the pages of the documentation that tests run: whole scripts, and files of an example."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

FENCE: Final = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """One runnable block of a page."""

    page: Path
    number: int
    language: str
    """``sh`` or ``python``."""
    script: str


def runnable_blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks that are marked ``sh run`` or ``python run``."""
    number = 0
    for found in FENCE.finditer(page.read_text("utf-8")):
        language, *marks = found["info"].split() or [""]
        if marks == ["run"]:
            number += 1
            yield Block(page, number, language, found["body"])


def write_files(page: Path, folder: Path) -> None:
    """Write the blocks that are marked ``file=NAME`` into a folder."""
    for found in FENCE.finditer(page.read_text("utf-8")):
        for mark in found["info"].split()[1:]:
            if mark.startswith("file="):
                (folder / mark.removeprefix("file=")).write_text(found["body"], "utf-8")
