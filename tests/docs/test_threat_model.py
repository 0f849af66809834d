"""The threat model: every promise on the page has a test, and every marked test a promise."""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs" / "concepts" / "threat-model.md"
_ROW: Final = re.compile(r"^\| `([a-z-]+)` \| (.+?) \| (.*)\|$", re.MULTILINE)


def promised() -> list[str]:
    """Return the ids on the page, in order."""
    return [ident for ident, _, _ in _ROW.findall(PAGE.read_text("utf-8"))]


@functools.cache
def holders() -> dict[str, list[str]]:
    """Return the ids that tests are marked with, each with the tests."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text("utf-8")
        if "promise(" in text:
            for ident, test in _marks(ast.parse(text)):
                found.setdefault(ident, []).append(f"{path.relative_to(ROOT)}::{test}")
    return found


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for mark in node.decorator_list:
                yield from ((ident, node.name) for ident in _ids(mark))
        elif isinstance(node, ast.Assign):
            yield from ((ident, "module") for ident in _ids(node.value))


def _ids(mark: ast.expr) -> Iterator[str]:
    """Yield the ids of ``pytest.mark.promise(...)``."""
    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.promise":
        for argument in mark.args:
            assert isinstance(argument, ast.Constant)
            yield str(argument.value)


@pytest.mark.parametrize("ident", promised())
def test_a_promise_has_a_test(ident: str) -> None:
    assert holders().get(ident), f"no test is marked with promise({ident!r})"


def test_every_marked_test_holds_a_promise_of_the_page() -> None:
    assert set(holders()) <= set(promised())


def test_a_promise_stands_once_on_the_page() -> None:
    assert len(promised()) == len(set(promised()))
    assert len(promised()) > 30
