"""Sizes that keep a file or a function readable at once. There is no list of exceptions."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.source_tree import ROOT, functions_in

MAX_FILE: Final = 600
MAX_FUNCTION: Final = 65
FOLDERS: Final = ("src", "tests", "tools", "bench")


def _files() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_no_file_is_too_long() -> None:
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in _files()}
    long = [f"{path.relative_to(ROOT)}: {n}" for path, n in lengths.items() if n > MAX_FILE]

    assert not long, "\n".join(long)


def test_no_function_is_too_long() -> None:
    long = []
    for path in _files():
        for function in functions_in(ast.parse(path.read_text("utf-8"))):
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            if length > MAX_FUNCTION:
                long.append(f"{path.relative_to(ROOT)}:{function.lineno} {function.name}: {length}")

    assert not long, "\n".join(long)
