"""Reading the source tree: imports are resolved, packages are named, rings are found."""

import ast
from pathlib import Path

import pytest
from tools.source_tree import (
    SOURCE,
    Import,
    Module,
    dotted,
    find_cycle,
    find_rings,
    functions_in,
    imports_of,
    module_graph,
    package_of,
    read_modules,
)


def _module(text: str, name: str = "thoughtgate.wire.frame", file: str = "frame.py") -> Module:
    return Module(Path(file), name, "wire", ast.parse(text))


def test_every_source_file_is_read_with_its_package() -> None:
    packages = {module.name: module.package for module in read_modules()}

    assert packages["thoughtgate.wire.frame"] == "wire"
    assert packages["thoughtgate.errors"] == "errors"
    assert packages["thoughtgate"] == ""


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
    ("imported", "package"),
    [
        (Import("json", "loads", 1), None),
        (Import("thoughtgate.wire.frame", "read_frame", 1), "wire"),
        (Import("thoughtgate", "wire", 1), "wire"),
        (Import("thoughtgate", "errors", 1), "errors"),
        (Import("thoughtgate", "__version__", 1), ""),
        (Import("thoughtgate", "", 1), ""),
    ],
)
def test_an_import_leads_to_its_package(imported: Import, package: str | None) -> None:
    assert SOURCE.is_dir()
    assert package_of(imported) == package


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


def test_an_import_for_typing_is_marked_and_can_be_left_out() -> None:
    text = "import typing\nif typing.TYPE_CHECKING:\n    from thoughtgate.wire import lines\n"
    one, other = _module(text), _module("", "thoughtgate.wire.lines", "lines.py")

    assert [found.for_typing for found in imports_of(one)] == [False, True]
    assert module_graph([one, other], typing=True)[one.name] == {other.name}
    assert module_graph([one, other], typing=False)[one.name] == set()


def test_every_ring_is_found_with_all_its_members() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"f"}, "f": {"e"}}

    assert find_rings(edges) == [frozenset("bc"), frozenset("ef")]
    assert find_rings({"a": {"b"}, "b": set()}) == []
