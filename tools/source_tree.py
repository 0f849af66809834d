"""The source tree as syntax: which module lies in which package, imports what and calls what.

Shared by the tests of the import rules, of the sizes and of the layout of the tests.
"""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
ROOT_PACKAGE: Final = "thoughtgate"
SOURCE: Final = ROOT / "src" / ROOT_PACKAGE


class Module(NamedTuple):
    """One source file."""

    path: Path
    name: str
    """Dotted, such as ``thoughtgate.wire.frame``."""
    package: str
    """The first part below ``thoughtgate``; ``""`` for the root package's own file."""
    tree: ast.Module


class Import(NamedTuple):
    """One imported name; ``thing`` is empty for ``import module``."""

    module: str
    thing: str
    line: int
    for_typing: bool = False
    """Whether only type checkers run it, because it is below ``if TYPE_CHECKING``."""


def read_modules(source: Path = SOURCE) -> list[Module]:
    """Parse every file of the package."""
    return [_read(path, source) for path in sorted(source.rglob("*.py"))]


def _read(path: Path, source: Path) -> Module:
    parts = path.relative_to(source).with_suffix("").parts
    names = [part for part in parts if part != "__init__"]
    package = names[0] if names else ""
    tree = ast.parse(path.read_text("utf-8"), str(path))
    return Module(path, ".".join((ROOT_PACKAGE, *names)), package, tree)


def imports_of(module: Module) -> Iterator[Import]:
    """Yield every import, those for typing only and those inside functions included."""
    for_typing = {
        id(inner)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.If) and dotted(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, "", node.lineno, id(node) in for_typing)
        elif isinstance(node, ast.ImportFrom):
            origin = _origin(module, node)
            for alias in node.names:
                yield Import(origin, alias.name, node.lineno, id(node) in for_typing)


def _origin(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    is_package = module.path.name == "__init__.py"
    parts = module.name.split(".")
    kept = parts[: len(parts) - node.level + is_package]
    return ".".join([*kept, *([node.module] if node.module else [])])


def package_of(imported: Import) -> str | None:
    """Return the package of ours that an import reaches, ``""`` for the root package, or None."""
    parts = imported.module.split(".")
    if parts[0] != ROOT_PACKAGE:
        return None
    if len(parts) > 1:
        return parts[1]
    if imported.thing and _is_package(imported.thing):
        return imported.thing
    return ""


def _is_package(name: str) -> bool:
    return (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()


def module_graph(modules: Sequence[Module], *, typing: bool) -> dict[str, set[str]]:
    """Return which modules of ours each module imports; ``typing`` includes imports for typing."""
    names = {module.name for module in modules}
    graph: dict[str, set[str]] = {}
    for module in modules:
        reached = graph.setdefault(module.name, set())
        for imported in imports_of(module):
            if imported.for_typing and not typing:
                continue
            inner = f"{imported.module}.{imported.thing}"
            target = inner if inner in names else imported.module
            if target in names and target != module.name:
                reached.add(target)
    return graph


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


def find_rings(edges: dict[str, set[str]]) -> list[frozenset[str]]:
    """Return the sets of nodes that all reach each other, in order of their first names."""
    reached = {node: _reachable(edges, node) for node in edges}
    rings = {
        frozenset(other for other in reached[node] if node in reached.get(other, ()))
        for node in edges
        if node in reached[node]
    }
    return sorted(rings, key=min)


def _reachable(edges: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    following = [*edges.get(start, ())]
    while following:
        node = following.pop()
        if node not in found:
            found.add(node)
            following += edges.get(node, ())
    return found
