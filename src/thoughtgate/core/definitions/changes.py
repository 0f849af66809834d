"""What changed between two definitions, and how much it matters.

The weight of a change says what a reviewer must look at first, not whether it is an attack: most
rewordings are harmless, and a new required parameter may be how a tool asks for data.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.core.answers import INSTRUCTIONS
from thoughtgate.core.definitions.pinned import TEXTS, Definition
from thoughtgate.errors import visible

MILD: Final = "mild"
NOTABLE: Final = "notable"
SEVERE: Final = "severe"

WEIGHTS: Final = (MILD, NOTABLE, SEVERE)
"""From the mildest to the most severe."""

NEW: Final = "new-definition"
GONE: Final = "removed-definition"
UNREADABLE: Final = "unreadable-definition"

KINDS_OF_CHANGE: Final[Mapping[str, tuple[str, str]]] = {
    "wording": (MILD, "a text has other words"),
    "icons": (MILD, "the icons changed"),
    "constraint-added": (MILD, "a parameter accepts fewer values"),
    "parameter-added": (NOTABLE, "there is a new parameter"),
    "parameter-removed": (NOTABLE, "a parameter is gone"),
    "constraint-changed": (NOTABLE, "a parameter accepts other values"),
    "parameter-not-required": (NOTABLE, "a parameter is no longer required"),
    "default-changed": (NOTABLE, "a parameter has another default"),
    "instructions": (NOTABLE, "the server's instructions to the model changed"),
    "output": (NOTABLE, "the schema of the results changed"),
    "member-changed": (NOTABLE, "another member changed"),
    GONE: (NOTABLE, "the server no longer offers it"),
    "parameter-required": (SEVERE, "there is a new required parameter"),
    "constraint-removed": (SEVERE, "a parameter accepts more values"),
    "type-changed": (SEVERE, "a parameter has another type"),
    "hint-flipped": (SEVERE, "a hint about what the tool does was flipped"),
    "url-added": (SEVERE, "a text has a new URL"),
    "hidden-characters": (SEVERE, "a text has new characters that cannot be seen"),
    NEW: (SEVERE, "the server did not offer it before"),
    UNREADABLE: (SEVERE, "it cannot be read, or is too long to be pinned"),
}
"""Every kind of change: its weight, and what it means."""

MAX_CHANGES: Final = 1000
"""Changes that are listed for one definition; the texts themselves show all."""

_CONSTRAINTS: Final = frozenset(
    [
        "enum",
        "const",
        "pattern",
        "format",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "additionalProperties",
        "propertyNames",
        "dependentRequired",
        "not",
        "allOf",
        "anyOf",
        "oneOf",
    ]
)
_HINTS: Final = frozenset({"destructiveHint", "readOnlyHint", "openWorldHint"})

_ROOTS: Final = {"outputSchema": "output", "icons": "icons", INSTRUCTIONS: "instructions"}
_MEMBERS: Final = {
    "type": "type-changed",
    "default": "default-changed",
    **dict.fromkeys(TEXTS, "wording"),
}

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}:/{2}[^\s\"'<>()\[\]{}|\\^`]{1,2048}")
_MISSING: Final = object()


class Change(NamedTuple):
    """One difference between two definitions."""

    change: str
    """A key of ``KINDS_OF_CHANGE``."""
    pointer: str
    """JSON pointer of the member; empty for the whole definition."""
    before: Any = None
    after: Any = None

    @property
    def weight(self) -> str:
        """How much it matters."""
        return KINDS_OF_CHANGE[self.change][0]

    def as_json(self) -> dict[str, Any]:
        """Return the change for ``--json``."""
        return {
            "change": self.change,
            "weight": self.weight,
            "where": self.pointer,
            "before": self.before,
            "after": self.after,
        }


def compare(old: Definition | None, new: Definition) -> tuple[Change, ...]:
    """Return what changed, the most severe first; ``old`` is None for a new definition."""
    if not new.is_readable:
        return (Change(UNREADABLE, ""),)
    if old is None or not old.is_readable:
        return (Change(NEW, ""),)
    found: list[Change] = []
    for one in _differences(old.body, new.body, ()):
        found.append(one)
        if len(found) >= MAX_CHANGES:
            break
    return tuple(sorted(found, key=lambda one: -WEIGHTS.index(one.weight)))


def heaviest(changes: Iterable[Change]) -> str:
    """Return the greatest weight of some changes; empty if there are none."""
    return max((one.weight for one in changes), key=WEIGHTS.index, default="")


def _differences(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[Change]:
    if old == new and type(old) is type(new):
        return
    if type(old) is dict and type(new) is dict:
        for member in sorted(old.keys() | new.keys()):
            if member == "required" and _is_schema(path):
                yield from _required(old, new, path)
            else:
                values = old.get(member, _MISSING), new.get(member, _MISSING)
                yield from _member(*values, (*path, member))
        return
    if type(old) is list and type(new) is list and len(old) == len(new):
        for at, pair in enumerate(zip(old, new, strict=True)):
            yield from _differences(*pair, (*path, str(at)))
        return
    yield _change(old, new, path)


def _member(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[Change]:
    """Yield the changes of one member of an object."""
    if path == ("annotations",):
        # Missing annotations are like absent hints: a hint that appears counts as flipped.
        old, new = ({} if one is _MISSING else one for one in (old, new))
    if _MISSING not in (old, new):
        if path[-1] in TEXTS and type(old) is str and type(new) is str:
            if old != new:
                yield _change(old, new, path)
                yield from _in_text(old, new, path)
        else:
            yield from _differences(old, new, path)
    else:
        yield _change(old, new, path)
        if old is _MISSING:
            # What is new may hide a URL in its own texts.
            yield from _added_texts(new, path)


def _required(old: dict[str, Any], new: dict[str, Any], path: tuple[str, ...]) -> Iterator[Change]:
    before, after = _names(old.get("required")), _names(new.get("required"))
    where = _pointer((*path, "required"))
    for name in sorted(after - before):
        yield Change("parameter-required", where, None, name)
    for name in sorted(before - after):
        # A parameter that is gone altogether is reported as removed.
        if name in (new.get("properties") or {}):
            yield Change("parameter-not-required", where, name, None)


def _change(old: Any, new: Any, path: tuple[str, ...]) -> Change:
    name = _name_of_change(old, new, path)
    before = None if old is _MISSING else old
    return Change(name, _pointer(path), before, None if new is _MISSING else new)


def _name_of_change(old: Any, new: Any, path: tuple[str, ...]) -> str:
    member, root = path[-1] if path else "", path[0] if path else ""
    if root == "annotations" and member in _HINTS:
        return "hint-flipped"
    if root in _ROOTS:
        return _ROOTS[root]
    if len(path) > 1 and path[-2] == "properties":
        return _by_presence(old, new, "parameter-added", "parameter-removed", "type-changed")
    if member in _MEMBERS:
        return _MEMBERS[member]
    if root == "inputSchema" and any(one in _CONSTRAINTS for one in path):
        names = ("constraint-added", "constraint-removed", "constraint-changed")
        # A schema that is just ``true`` accepts everything.
        return _by_presence(old, _MISSING if new is True else new, *names)
    return "member-changed"


def _by_presence(old: Any, new: Any, added: str, removed: str, changed: str) -> str:
    return added if old is _MISSING else removed if new is _MISSING else changed


def _in_text(old: str, new: str, path: tuple[str, ...]) -> Iterator[Change]:
    """Yield what a new text has that is worse than other words."""
    before = set(_URL.findall(old))
    for url in sorted(set(_URL.findall(new)) - before):
        yield Change("url-added", _pointer(path), None, url)
    hidden = sorted({one for one in new if visible(one) != one and one not in "\t\n\r"} - set(old))
    if hidden:
        yield Change("hidden-characters", _pointer(path), None, [visible(one) for one in hidden])


def _added_texts(value: Any, path: tuple[str, ...]) -> Iterator[Change]:
    if type(value) is str:
        yield from _in_text("", value, path)
    elif type(value) is dict:
        for member in sorted(value):
            yield from _added_texts(value[member], (*path, member))
    elif type(value) is list:
        for at, inner in enumerate(value):
            yield from _added_texts(inner, (*path, str(at)))


def _is_schema(path: tuple[str, ...]) -> bool:
    return path[:1] == ("inputSchema",) and path[-1:] != ("properties",)


def _names(value: Any) -> set[str]:
    return {one for one in value if type(one) is str} if type(value) is list else set()


def _pointer(path: tuple[str, ...]) -> str:
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in path)
