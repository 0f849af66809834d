"""Converts plain data to settings by the types in ``settings``; reports all problems at once."""

import dataclasses
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, TypeVar, Union, get_args, get_origin

from thoughtgate.config.complaints import EMPTY, MISSING, shown, unknown_key
from thoughtgate.config.document import Path
from thoughtgate.config.key_types import NOT_A_KEY, REQUIRED, Checked, FileKey, Parsed, Section
from thoughtgate.config.settings import Settings

_T = TypeVar("_T")

_MUST_BE: Final[dict[type, str]] = {
    str: "must be text; put it in quotes",
    int: "must be a whole number",
    float: "must be a number",
    bool: "must be true or false",
    list: "must be a list",
    dict: "must hold keys and values",
}


class Shape(NamedTuple):
    """The parts of a type, found once: finding them for each value would take longer than reading."""

    base: Any
    """``tuple``, ``Mapping``, ``Any``, a section or a plain type."""
    member: "Shape | None"
    """The shape of the members of a tuple or mapping."""
    marks: tuple[Any, ...]
    parsers: tuple[Parsed, ...]
    checks: tuple[Checked, ...]


class Key(NamedTuple):
    """One key of a section."""

    field: str
    """The name under which ``from_keys`` gets it."""
    shape: Shape
    default: Any


class Reading(NamedTuple):
    """The result of reading data."""

    settings: Settings | None
    """None when there are problems."""
    problems: list[tuple[Path, str]]


def read_settings(data: dict[str, Any]) -> Reading:
    """Return the settings that plain data describes, or everything that is wrong with it."""
    reader = _Reader()
    settings = reader.read(shape_of(Settings), data, ())
    return Reading(None if reader.problems else settings, reader.problems)


@cache
def keys_of(section: Any) -> dict[str, Key]:
    """Return the keys that a section may hold in the file."""
    found = {}
    for ancestor in reversed(section.__mro__):
        for name, value in vars(ancestor).items():
            if isinstance(value, FileKey):
                found[name] = Key(name, shape_of(value.type), value.default)
    for field in dataclasses.fields(section):
        shape = shape_of(field.type)
        if NOT_A_KEY not in shape.marks:
            found[field.name] = Key(field.name, shape, _default(field))
    # ``_`` tells a field from one with the same name, ``_s`` says that it is in seconds.
    return {name.removesuffix("_").removesuffix("_s"): key for name, key in found.items()}


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return REQUIRED if field.default is dataclasses.MISSING else field.default


def shape_of(type_: Any) -> Shape:
    """Take a type apart; ``X | None`` has the shape of ``X``, since no key may be null."""
    if get_origin(type_) in {Union, UnionType}:
        type_ = next(one for one in get_args(type_) if one is not type(None))
    marks: tuple[Any, ...] = ()
    if get_origin(type_) is Annotated:
        type_, marks = type_.__origin__, type_.__metadata__
    base = get_origin(type_) or type_
    member = shape_of(get_args(type_)[base is Mapping]) if base in {tuple, Mapping} else None
    return Shape(
        base,
        member,
        marks,
        tuple(mark for mark in marks if isinstance(mark, Parsed)),
        tuple(mark for mark in marks if isinstance(mark, Checked)),
    )


class _Reader:
    """Reads values, and collects what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[tuple[Path, str]] = []

    def read(self, shape: Shape, value: Any, path: Path, *, required: bool = False) -> Any:
        """Return the value converted to its type; after a problem, the result is meaningless."""
        if value is None and shape.base is not Any and not required:
            self.problems.append((path, EMPTY))
            return None
        try:
            parsed = value
            for parser in shape.parsers:
                parsed = parser.parse(parsed)
            result = self._of_base(shape.base, shape.member, parsed, path)
            for check in shape.checks:
                check.check(result)
        except ValueError as error:
            self.problems.append((path, f"{error} (got {shown(path, value)})"))
            return None
        return result

    def _of_base(self, base: Any, member: Shape | None, value: Any, path: Path) -> Any:
        if base in _MUST_BE:
            is_whole = base is float and type(value) is int
            return float(value) if is_whole else _required(base, value)
        if member is None:
            is_section = issubclass(base, Section)
            return self._section(base, _required(dict, value), path) if is_section else value
        if base is tuple:
            members = enumerate(_required(list, value))
            return tuple([self.read(member, one, (*path, at)) for at, one in members])
        entries = _required(dict, value).items()
        return {key: self.read(member, one, (*path, key)) for key, one in entries}

    def _section(self, section: Any, value: dict[str, Any], path: Path) -> Any:
        before = len(self.problems)
        keys = keys_of(section)
        found = {}
        for name, key in keys.items():
            required = key.default is REQUIRED
            if name in value:
                found[key.field] = self.read(
                    key.shape, value[name], (*path, name), required=required
                )
            elif required:
                self.problems.append(((*path, name), MISSING))
        self.problems += [
            ((*path, name), unknown_key(name, keys)) for name in value if name not in keys
        ]
        return section.from_keys(found, path) if len(self.problems) == before else None


def _required(type_: type[_T], value: Any) -> _T:
    # Exactly this type: for isinstance, True is an int.
    if type(value) is not type_:
        raise ValueError(_MUST_BE[type_])
    return value
