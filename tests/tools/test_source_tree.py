"""Reading the source tree: imports resolved, rooms told, rings found."""

import ast
from pathlib import Path

import pytest
from tools.source_tree import (
    SOURCE,
    Import,
    Module,
    dotted,
    find_cycle,
    functions_in,
    imports_of,
    read_modules,
    room_of,
)


def _module(text: str, name: str = "thoughtgate.wire.frame", file: str = "frame.py") -> Module:
    return Module(Path(file), name, "wire", ast.parse(text))


def test_every_source_file_is_read_with_its_room() -> None:
    rooms = {module.name: module.room for module in read_modules()}

    assert rooms["thoughtgate.wire.frame"] == "wire"
    assert rooms["thoughtgate.errors"] == "errors"
    assert rooms["thoughtgate"] == ""


@pytest.mark.parametrize(
    ("text", "module"),
    [
        ("import a.b", "a.b"),
        ("from a.b import c", "a.b"),
        ("from . import lines", "thoughtgate.wire"),
        ("from .lines import HEAD", "thoughtgate.wire.lines"),
        ("from ..policy import call", "thoughtgate.policy"),
        ("def late():\n    import x", "x"),
        ("if False:\n    from y import z", "y"),
    ],
)
def test_an_import_is_found_wherever_it_stands(text: str, module: str) -> None:
    assert [found.module for found in imports_of(_module(text))] == [module]


def test_a_relative_import_of_a_package_starts_at_the_package() -> None:
    module = _module("from . import lines", "thoughtgate.wire", "__init__.py")

    assert next(imports_of(module)).module == "thoughtgate.wire"


@pytest.mark.parametrize(
    ("imported", "room"),
    [
        (Import("json", "loads", 1), None),
        (Import("thoughtgate.wire.frame", "read_frame", 1), "wire"),
        (Import("thoughtgate", "wire", 1), "wire"),
        (Import("thoughtgate", "errors", 1), "errors"),
        (Import("thoughtgate", "__version__", 1), ""),
        (Import("thoughtgate", "", 1), ""),
    ],
)
def test_an_import_leads_to_its_room(imported: Import, room: str | None) -> None:
    assert SOURCE.is_dir()
    assert room_of(imported) == room


def test_attribute_chains_are_written_with_dots() -> None:
    chain = ast.parse("a.b.c", mode="eval").body
    other = ast.parse("f().b", mode="eval").body

    assert (dotted(chain), dotted(other)) == ("a.b.c", "")


def test_inner_functions_are_found() -> None:
    tree = ast.parse("class A:\n    def f(self):\n        def g(): ...\nasync def h(): ...")

    assert {function.name for function in functions_in(tree)} == {"f", "g", "h"}


@pytest.mark.parametrize(
    ("edges", "ring"),
    [
        ({"a": {"b"}, "b": set()}, []),
        ({"a": {"a"}}, ["a", "a"]),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, ["b", "c", "b"]),
    ],
)
def test_a_ring_is_found(edges: dict[str, set[str]], ring: list[str]) -> None:
    assert find_cycle(edges) == ring
