"""Tests on a call's arguments: ``when: {amount: {gt: 100}, "to.country": {in: [DE, FR]}}``.

A test has three outcomes: it holds, it fails, or it is undetermined. It is undetermined if the
value has a type that the operator does not compare (``"1000"`` or ``true`` instead of a number),
if the path leads through a value that is not an object, if a text is too long to be searched
safely, and for ``ne`` and ``not_in`` if the argument is missing. An undetermined test must not
help the caller: a rule that denies, asks a reviewer or uses Cedar matches, a rule that forwards
does not. A missing argument fails every other test except ``exists: false``.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from thoughtgate.policy.call import Condition
from thoughtgate.policy.globs import Glob, any_matches
from thoughtgate.policy.regexes import Pattern
from thoughtgate.policy.uris import without_dot_segments

ConditionOutcome = bool | None
"""True: holds. False: fails. None: undetermined."""

_Test: TypeAlias = Callable[[Any, Any], ConditionOutcome]
"""Tests a value against the operand of a condition."""

_SIZED: Final = (str, list, Mapping)
"""Types whose values have a length."""

_MISSING: Final = object()
_BROKEN: Final = object()
"""The value for a path that leads through a text, a number or a list."""


def parse_conditions(when: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Turn the ``when`` of a rule into conditions; a plain value means ``eq``.

    Raises:
        ValueError: an operator is unknown or its operand has the wrong type.
    """
    found = []
    for path, test in when.items():
        tests = test if isinstance(test, Mapping) else {"eq": test}
        if not tests:
            raise ValueError(f"{path}: name at least one operator, such as {{gt: 100}}")
        found += [_condition(path, operator, operand) for operator, operand in tests.items()]
    return tuple(found)


def judge_conditions(
    conditions: Iterable[Condition], values: Mapping[str, Any]
) -> ConditionOutcome:
    """Return the combined outcome of all conditions: one that fails is enough."""
    outcome: ConditionOutcome = True
    for path, operator, operand in conditions:
        single = _TESTS[operator](_value_at(path, values), operand)
        if single is False:
            return False
        if single is None:
            outcome = None
    return outcome


def _condition(path: str, operator: str, operand: Any) -> Condition:
    if operator not in _TESTS:
        raise ValueError(f"{path}: unknown operator {operator!r}; known are {', '.join(OPERATORS)}")
    prepare = _PREPARE.get(operator)
    try:
        ready = prepare(operand) if prepare else operand
    except ValueError as error:
        raise ValueError(f"{path}.{operator}: {error}") from None
    keys = tuple(key.replace("\\.", ".") for key in re.split(r"(?<!\\)\.", path))
    if not all(keys):
        raise ValueError(f"{path!r} names no argument; write keys with dots between them")
    return Condition(keys, operator, ready)


def _value_at(path: tuple[str, ...], values: Mapping[str, Any]) -> Any:
    at: Any = values
    for key in path:
        if not isinstance(at, Mapping):
            return _MISSING if at is None else _BROKEN
        at = at.get(key, _MISSING)
        if at is _MISSING:
            return _MISSING
    return at


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # noqa: PLR0124  NaN is no number


def _same_type(one: Any, other: Any) -> bool:
    return type(one) is type(other) or (_is_number(one) and _is_number(other))


def _equal(value: Any, operand: Any) -> ConditionOutcome:
    if value is _MISSING:
        return False
    if not _same_type(value, operand):
        return None if operand is not None else False
    if isinstance(operand, list) or (
        isinstance(operand, Mapping) and value.keys() == operand.keys()
    ):
        return _equal_inside(value, operand)
    return bool(value == operand)


def _equal_inside(value: Any, operand: Any) -> ConditionOutcome:
    """Compare member by member, because Python considers true and 1 equal inside lists."""
    if len(value) != len(operand):
        return False
    keys = operand if isinstance(operand, Mapping) else range(len(operand))
    outcomes = {_equal(value[key], operand[key]) for key in keys}
    return False if False in outcomes else None if None in outcomes else True


def _negated(value: Any, outcome: ConditionOutcome) -> ConditionOutcome:
    return None if value is _MISSING or outcome is None else not outcome


def _within(value: Any, operand: Any) -> ConditionOutcome:
    if value is _MISSING:
        return False
    outcomes = {_equal(value, member) for member in operand}
    if True in outcomes:
        return True
    return False if False in outcomes or not operand else None


def _ordered(compare: Callable[[Any, Any], bool]) -> _Test:
    def test(value: Any, operand: Any) -> ConditionOutcome:
        if value is _MISSING:
            return False
        return compare(value, operand) if _is_number(value) else None

    return test


def _only_for(types: Any, compare: _Test) -> _Test:
    """Return a test that is undetermined for values of other types."""

    def test(value: Any, operand: Any) -> ConditionOutcome:
        if value is _MISSING:
            return False
        return compare(value, operand) if isinstance(value, types) else None

    return test


def _contains(value: Any, operand: Any) -> ConditionOutcome:
    if isinstance(value, list):
        # The caller writes this list: a member that fails must not hide an undetermined one.
        outcomes = {_equal(member, operand) for member in value}
        return True if True in outcomes else None if None in outcomes else False
    if value is _MISSING:
        return False
    return operand in value if isinstance(value, str) and isinstance(operand, str) else None


def _is_under(path: str, folders: tuple[str, ...]) -> ConditionOutcome:
    """Tell whether a path is inside one of the folders, after resolving ``.`` and ``..``.

    Only the server knows where a relative path or a ``~`` leads, so those are undetermined.
    """
    if not path.startswith("/") or "\0" in path:
        return None
    walked = without_dot_segments(path)
    return any(walked == folder or walked.startswith(f"{folder}/") for folder in folders)


def _exists(value: Any, operand: Any) -> ConditionOutcome:
    if value is _BROKEN:
        return None
    return (value is not _MISSING) is operand


def _must_be(words: str, is_right: Callable[[Any], bool]) -> Callable[[Any], Any]:
    """Return a function that returns a valid operand and refuses all others."""

    def prepare(operand: Any) -> Any:
        if not is_right(operand):
            raise ValueError(f"must be {words}")
        return operand

    return prepare


_number = _must_be("a number", lambda one: _is_number(one) and abs(one) != math.inf)
_length = _must_be("a whole number, 0 or more", lambda one: type(one) is int and one >= 0)
_text = _must_be("a text that is not empty", lambda one: isinstance(one, str) and one != "")
_flag = _must_be("true or false", lambda one: one is True or one is False)
_members = _must_be(
    "a list that is not empty", lambda one: isinstance(one, list | tuple) and len(one) > 0
)


def _folders(operand: Any) -> Any:
    folders = [_text(one) for one in (operand if isinstance(operand, list) else [operand])]
    if not all(folder.startswith("/") for folder in folders):
        raise ValueError("must be an absolute path, or a list of them")
    return tuple(without_dot_segments(folder).rstrip("/") for folder in folders)


def _globs(operand: Any) -> Any:
    return tuple(Glob(_text(one)) for one in (operand if isinstance(operand, list) else [operand]))


_TESTS: Final[dict[str, _Test]] = {
    "eq": _equal,
    "ne": lambda value, operand: _negated(value, _equal(value, operand)),
    "gt": _ordered(lambda value, operand: value > operand),
    "ge": _ordered(lambda value, operand: value >= operand),
    "lt": _ordered(lambda value, operand: value < operand),
    "le": _ordered(lambda value, operand: value <= operand),
    "in": _within,
    "not_in": lambda value, operand: _negated(value, _within(value, operand)),
    "matches": _only_for(str, lambda value, pattern: pattern.search(value)),
    "glob": _only_for(str, lambda value, globs: any_matches(globs, value)),
    "contains": _contains,
    "starts_with": _only_for(str, lambda value, operand: value.startswith(operand)),
    "ends_with": _only_for(str, lambda value, operand: value.endswith(operand)),
    "under": _only_for(str, _is_under),
    "exists": _exists,
    "length_gt": _only_for(_SIZED, lambda value, operand: len(value) > operand),
    "length_lt": _only_for(_SIZED, lambda value, operand: len(value) < operand),
}

_PREPARE: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("gt", "ge", "lt", "le"), _number),
    **dict.fromkeys(("in", "not_in"), lambda operand: tuple(_members(operand))),
    **dict.fromkeys(("starts_with", "ends_with"), _text),
    **dict.fromkeys(("length_gt", "length_lt"), _length),
    "matches": lambda operand: Pattern(_text(operand)),
    "glob": _globs,
    "under": _folders,
    "exists": _flag,
}

OPERATORS: Final = tuple(_TESTS)
"""The operators of ``when``, in the order the documentation lists them."""
