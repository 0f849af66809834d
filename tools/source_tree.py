"""The source tree as syntax: which module lies in which room, imports what and calls what.

Shared by the tests that hold the room table, the sizes and the mirror of tests.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = "thoughtgate"
SOURCE: Final = ROOT / "src" / PACKAGE


class Module(NamedTuple):
    """One source file."""

    path: Path
    name: str
    """Dotted, such as ``thoughtgate.wire.frame``."""
    room: str
    """The first part below the package; ``""`` for the package's own file."""
    tree: ast.Module


class Import(NamedTuple):
    """One imported name; ``thing`` is empty for ``import module``."""

    module: str
    thing: str
    line: int


def read_modules(source: Path = SOURCE) -> list[Module]:
    """Parse every file of the package."""
    return [_read(path, source) for path in sorted(source.rglob("*.py"))]


def _read(path: Path, source: Path) -> Module:
    parts = path.relative_to(source).with_suffix("").parts
    names = [part for part in parts if part != "__init__"]
    room = names[0] if names else ""
    tree = ast.parse(path.read_text("utf-8"), str(path))
    return Module(path, ".".join((PACKAGE, *names)), room, tree)


def imports_of(module: Module) -> Iterator[Import]:
    """Yield every import, those for typing only and those inside functions included."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, "", node.lineno)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(module, node)
            for alias in node.names:
                yield Import(origin, alias.name, node.lineno)


def _origin(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    is_package = module.path.name == "__init__.py"
    parts = module.name.split(".")
    kept = parts[: len(parts) - node.level + is_package]
    return ".".join([*kept, *([node.module] if node.module else [])])


def room_of(imported: Import) -> str | None:
    """Return the room of ours that an import reaches, ``""`` for the package itself, or None."""
    parts = imported.module.split(".")
    if parts[0] != PACKAGE:
        return None
    if len(parts) > 1:
        return parts[1]
    if imported.thing and _is_room(imported.thing):
        return imported.thing
    return ""


def _is_room(name: str) -> bool:
    return (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()


def dotted(node: ast.expr) -> str:
    """Return ``a.b.c`` for an attribute chain, ``""`` for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def functions_in(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function, methods and inner ones included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def find_cycle(edges: dict[str, set[str]]) -> list[str]:
    """Return one ring of a directed graph, or an empty list."""
    done: set[str] = set()

    def walk(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        for after in sorted(edges.get(node, ())):
            ring = walk(after, [*path, node])
            if ring:
                return ring
        done.add(node)
        return []

    for start in sorted(edges):
        ring = walk(start, [])
        if ring:
            return ring
    return []
