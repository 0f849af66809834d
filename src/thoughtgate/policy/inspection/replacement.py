"""Placeholders in place of what was found, in a copy of the value."""

from collections.abc import Iterable
from typing import Any

from thoughtgate.policy.inspection.finding import Finding


def replace_findings(value: Any, findings: Iterable[Finding]) -> Any:
    """Return a copy of a JSON value with each span replaced by a typed placeholder.

    A placeholder names its check: ``[removed: secret-token]``. Names of members and the structure
    stay as they are; a finding about a whole member replaces its value.
    """
    copy = _copy(value)
    spans: dict[str, list[tuple[int, int, str]]] = {}
    for finding in findings:
        spans.setdefault(finding.pointer, []).append((finding.start, finding.end, finding.check))
    for pointer, found in spans.items():
        copy = _replace_at(copy, pointer, found)
    return copy


def placeholder(check: str) -> str:
    """Return the text that stands for what a check found."""
    return f"[removed: {check}]"


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(one) for one in value]
    return value


def _replace_at(value: Any, pointer: str, spans: list[tuple[int, int, str]]) -> Any:
    if not pointer:
        return _replaced(value, spans)
    parts = [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]
    parent = value
    for part in parts[:-1]:
        parent = _member(parent, part)
    last: Any = int(parts[-1]) if isinstance(parent, list) else parts[-1]
    parent[last] = _replaced(parent[last], spans)
    return value


def _member(parent: Any, part: str) -> Any:
    return parent[int(part)] if isinstance(parent, list) else parent[part]


def _replaced(value: Any, spans: list[tuple[int, int, str]]) -> Any:
    whole = [check for _, end, check in spans if not end]
    if whole or not isinstance(value, str):
        return placeholder(whole[0] if whole else spans[0][2])
    pieces: list[str] = []
    done = 0
    for start, end, check in _merged(spans):
        pieces += (value[done:start], placeholder(check))
        done = end
    return "".join([*pieces, value[done:]])


def _merged(spans: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Return spans that do not overlap; of overlapping ones, the first names the placeholder."""
    merged: list[tuple[int, int, str]] = []
    for start, end, check in sorted(spans):
        if merged and start < merged[-1][1]:
            first, last, name = merged[-1]
            merged[-1] = (first, max(last, end), name)
        else:
            merged.append((start, end, check))
    return merged
