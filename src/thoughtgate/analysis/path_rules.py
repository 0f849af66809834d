"""Detection of rules on paths that miss some of the paths for which they were written."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from thoughtgate.config.document import Path
from thoughtgate.config.settings import RuleSettings
from thoughtgate.policy.globs import Glob, is_glob

_STRICT: Final = ("deny", "approve")
_QUANTIFIERS: Final = ("any", "all")
_TEXT_OPERATORS: Final = ("glob", "matches", "starts_with", "ends_with", "under")
_PLURALS: Final = {
    "path": "paths",
    "file": "files",
    "filename": "filenames",
    "file_path": "file_paths",
    "filepath": "filepaths",
    "directory": "directories",
    "uri": "uris",
    "url": "urls",
}
"""Usual names of arguments with a path, and of arrays of them."""


def path_findings(rules: Sequence[RuleSettings]) -> Iterator[tuple[Path, str]]:
    """Yield what rules on paths miss: bare names, and arrays."""
    looks_into = {
        name.rpartition(".")[2]
        for rule in rules
        for name, test in rule.when.items()
        if rule.action in _STRICT and not set(_QUANTIFIERS).isdisjoint(_operators(test))
    }
    for number, rule in enumerate(rules):
        for name, test in rule.when.items():
            for text in _missed(rule, name, _operators(test), looks_into):
                yield ("rules", number, "when"), text


def _missed(
    rule: RuleSettings, name: str, operators: Mapping[str, Any], looks_into: set[str]
) -> Iterator[str]:
    key = name.rpartition(".")[2]
    compared = next((one for one in _TEXT_OPERATORS if one in operators), "")
    if compared and key in _PLURALS.values():
        way = f"write {name}: {{any: {{{compared}: …}}}}, or all:"
        yield f"{compared} cannot be decided for an array; {way}"
    if rule.action not in _STRICT:
        return
    yield from _missed_names(operators)
    plural = _PLURALS.get(key, "")
    if compared and plural and plural not in looks_into and _is_for_any_tool(rule):
        way = f"add a rule with {plural}: {{any: {{{compared}: …}}}}"
        yield f"a tool that takes an array, such as {plural}, is not covered; {way}"


def _operators(test: Any) -> Mapping[str, Any]:
    return test if isinstance(test, Mapping) else {}


def _is_for_any_tool(rule: RuleSettings) -> bool:
    """Tell whether a rule applies to tools whose arguments its author may not know."""
    names = rule.selector.names
    return not names or any(is_glob(name) for name in names)


def _missed_names(operators: Mapping[str, Any]) -> Iterator[str]:
    """Yield the patterns ``*/NAME`` that miss a file in the current directory."""
    for quantifier in _QUANTIFIERS:
        if quantifier in operators:
            yield from _missed_names(_operators(operators[quantifier]))
    written = operators.get("glob", [])
    patterns = [written] if isinstance(written, str) else written
    for pattern in patterns:
        bare = pattern.removeprefix("*/")
        example = bare.replace("*", "x").replace("?", "x")
        if bare not in {pattern, ""} and not any(Glob(one).matches(example) for one in patterns):
            yield f"{pattern!r} misses {example!r}, a path without a slash; add {bare!r}"
