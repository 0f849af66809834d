"""Replaces ``${VAR}`` and ``${VAR:-default}`` in string values, after parsing.

A value is inserted once and unchanged: it cannot change the structure of the config, and references
in it are not replaced. ``$${`` stands for ``${``. A variable that is set but empty counts as set.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from thoughtgate.config.document import Path

_REFERENCE: Final = re.compile(r"\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?")


def substitute(data: Any, env: Mapping[str, str]) -> tuple[Any, list[tuple[Path, str]]]:
    """Return the data with references replaced, and the path and problem of those that cannot be."""
    problems: list[tuple[Path, str]] = []
    return _walk(data, env, (), problems), problems


def references(data: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every text that refers to a variable."""
    if isinstance(data, str) and "${" in data:
        yield path
    elif isinstance(data, dict):
        for key, one in data.items():
            yield from references(one, (*path, key))
    elif isinstance(data, list):
        for at, one in enumerate(data):
            yield from references(one, (*path, at))


def variable_names(data: Any) -> set[str]:
    """Return the names of all variables that the data refers to."""
    if isinstance(data, str):
        return {match[1] for match in _REFERENCE.finditer(data) if match[1]}
    members = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return {name for member in members for name in variable_names(member)}


def _walk(value: Any, env: Mapping[str, str], path: Path, problems: list[tuple[Path, str]]) -> Any:
    if isinstance(value, str) and "${" in value:
        return _fill(value, env, path, problems)
    if isinstance(value, dict):
        return {key: _walk(one, env, (*path, key), problems) for key, one in value.items()}
    if isinstance(value, list):
        return [_walk(one, env, (*path, at), problems) for at, one in enumerate(value)]
    return value


def _fill(text: str, env: Mapping[str, str], path: Path, problems: list[tuple[Path, str]]) -> str:
    def value_of(match: re.Match[str]) -> str:
        name, default = match.groups()
        if match[0] == "$${":
            return "${"
        value = env.get(name, default) if name else None
        if value is not None:
            return value
        words = "'${' must be followed by NAME} or NAME:-default}; write $${ for a literal ${"
        if name:
            unset = f"the environment variable {name} is not set"
            words = f"{unset}; set it or write ${{{name}:-default}}"
        problems.append((path, words))
        return ""

    return _REFERENCE.sub(value_of, text)
