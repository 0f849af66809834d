"""Tests on a call's arguments: ``when: {amount: {gt: 100}, "to.country": {in: [DE, FR]}}``.

A test has three outcomes: it holds, it fails, or it is undetermined. It is undetermined if the
value has a type that the operator does not compare (``"1000"`` or ``true`` instead of a number),
if the path leads through a value that is not an object, if a text is too long to be searched
safely, and for ``ne`` and ``not_in`` if the argument is missing. It is also undetermined if servers
could read the arguments differently and the readings differ in their outcome: keys that some
servers take for the named one (``Path`` for ``path``), paths of files for ``under`` and ``glob``,
and whole numbers of more than 53 bits.

An undetermined test must not help the caller: a rule that denies, asks a reviewer or uses Cedar
matches, a rule that forwards does not. A missing argument fails every other test except
``exists: false``.

``any`` and ``all`` test the members of an array: ``paths: {any: {glob: ".*"}}``. A path may lead
through one: ``"files.path": {any: {glob: ".*"}}``.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from operator import eq
from typing import Any, Final, TypeAlias

from thoughtgate.policy.call import Condition
from thoughtgate.policy.globs import Glob, any_matches
from thoughtgate.policy.regexes import Pattern
from thoughtgate.wire.frame import fold_key
from thoughtgate.wire.readings import (
    MISSING,
    ArgumentReadings,
    fold_path,
    without_dot_segments,
)

ConditionOutcome = bool | None
"""True: holds. False: fails. None: undetermined."""

MAX_ELEMENTS: Final = 1_000
"""Maximum length of an array whose members are tested; for longer ones, ``any`` and ``all`` are
undetermined, because every rule would test every member."""

MAX_SEARCH_STEPS: Final = 50_000_000
"""Maximum steps of all searches for one call, over all rules and array members: half a second."""

_QUANTIFIERS: Final = frozenset({"any", "all"})

_Test: TypeAlias = Callable[[Any, Any], ConditionOutcome]
"""Tests a value against the operand of a condition."""

_SIZED: Final = (str, list, Mapping)
"""Types whose values have a length."""

_MAX_EXACT: Final = 2**53
"""Whole numbers up to this one are exact in readers that have only doubles."""

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
    conditions: Iterable[Condition],
    values: Mapping[str, Any],
    readings: ArgumentReadings | None = None,
) -> ConditionOutcome:
    """Return the combined outcome of all conditions: one that fails is enough."""
    readings = readings if readings is not None else ArgumentReadings()
    outcome: ConditionOutcome = True
    for path, operator, operand in conditions:
        single = _judge(values, path, operator, operand, readings)
        if single is False:
            return False
        if single is None:
            outcome = None
    return outcome


def _test(operator: str, operand: Any) -> tuple[str, Any]:
    if operator not in _TESTS:
        raise ValueError(f"unknown operator {operator!r}; known are {', '.join(OPERATORS)}")
    prepare = _PREPARE.get(operator)
    try:
        return operator, prepare(operand) if prepare else operand
    except ValueError as error:
        raise ValueError(f"{operator}: {error}") from None


def _condition(path: str, operator: str, operand: Any) -> Condition:
    try:
        _, ready = _test(operator, operand)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    keys = tuple(key.replace("\\.", ".") for key in re.split(r"(?<!\\)\.", path))
    if not all(keys):
        raise ValueError(f"{path!r} names no argument; write keys with dots between them")
    return Condition(keys, operator, ready)


def _judge(
    at: Any, path: tuple[str, ...], operator: str, operand: Any, readings: ArgumentReadings
) -> ConditionOutcome:
    """Return the outcome of a test on the value that a path leads to, in all readings."""
    for number, key in enumerate(path):
        if type(at) is list and operator in _QUANTIFIERS:
            return _quantify(at, path[number:], operator, operand, readings)
        if not isinstance(at, Mapping):
            return _apply(operator, MISSING if at is None else _BROKEN, operand, readings)
        values = readings.values(at, key)
        if values is None or len(values) != 1:
            rest = path[number + 1 :]
            return _in_all_readings(values, rest, operator, operand, readings)
        at = values[0]
        if at is MISSING:
            break
    if type(at) is list and operator in _QUANTIFIERS:
        return _quantify(at, (), operator, operand, readings)
    return _apply(operator, at, operand, readings)


def _apply(operator: str, value: Any, operand: Any, readings: ArgumentReadings) -> ConditionOutcome:
    if operator == "matches" and isinstance(value, str):
        return _search(value, operand, readings)
    test = _PATH_TESTS.get(operator)
    if test is None or not isinstance(value, str):
        return _TESTS[operator](value, operand)
    return test(value, operand, readings)


def _search(value: str, pattern: Pattern, readings: ArgumentReadings) -> ConditionOutcome:
    """Search a text; undetermined if all searches for this call would together take too long."""
    if len(value) > pattern.max_length:
        return None
    readings.search_steps += pattern.steps(value)
    return None if readings.search_steps > MAX_SEARCH_STEPS else pattern.search(value)


def _in_all_readings(
    values: tuple[Any, ...] | None,
    path: tuple[str, ...],
    operator: str,
    operand: Any,
    readings: ArgumentReadings,
) -> ConditionOutcome:
    outcomes: set[ConditionOutcome] = {None}
    if values is not None:
        outcomes = {
            _judge(value, () if value is MISSING else path, operator, operand, readings)
            for value in values
        }
    if outcomes in ({True}, {False}):
        return outcomes.pop()
    readings.ambiguous = True
    return None


def _quantify(
    members: list[Any],
    path: tuple[str, ...],
    operator: str,
    tests: tuple[tuple[str, Any], ...],
    readings: ArgumentReadings,
) -> ConditionOutcome:
    # Servers differ in what an empty list means: often everything.
    if len(members) > MAX_ELEMENTS or (operator == "all" and not members):
        return None
    decisive = operator == "any"
    outcome: ConditionOutcome = not decisive
    for member in members:
        singles = {_judge(member, path, *test, readings) for test in tests}
        single = False if False in singles else None if None in singles else True
        if single is decisive:
            return decisive
        if single is None:
            outcome = None
    return outcome


def _other_type(value: Any, _: Any) -> ConditionOutcome:
    """Return the outcome for a value of a type that the operator does not test."""
    return False if value is MISSING else None


def _is_number(value: Any) -> bool:
    # For Python, True and False are numbers too.
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # noqa: PLR0124  NaN is no number


def _same_type(one: Any, other: Any) -> bool:
    return type(one) is type(other) or (_is_number(one) and _is_number(other))


def _equal(value: Any, operand: Any) -> ConditionOutcome:
    if value is MISSING:
        return False
    if not _same_type(value, operand):
        return None if operand is not None else False
    if isinstance(operand, Mapping) and value.keys() != operand.keys():
        alike = {fold_key(key) for key in value} == {fold_key(key) for key in operand}
        return None if alike else False
    if isinstance(operand, list | Mapping):
        return _equal_inside(value, operand)
    return _compared(eq, value, operand)


def is_rounded_by_some(value: Any) -> bool:
    """Tell whether a value is a whole number that JavaScript would round."""
    return type(value) is int and not -_MAX_EXACT <= value <= _MAX_EXACT


def _compared(compare: Callable[[Any, Any], bool], value: Any, operand: Any) -> ConditionOutcome:
    """Compare two values; undetermined if a reader with doubles only gets another result.

    JavaScript rounds whole numbers of more than 53 bits.
    """
    outcome = bool(compare(value, operand))
    if is_rounded_by_some(value):
        return _agreed({outcome, bool(compare(_rounded(value), _rounded(operand)))})
    return outcome


def _rounded(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _equal_inside(value: Any, operand: Any) -> ConditionOutcome:
    """Compare member by member, because Python considers true and 1 equal inside lists."""
    if len(value) != len(operand):
        return False
    keys = operand if isinstance(operand, Mapping) else range(len(operand))
    outcomes = {_equal(value[key], operand[key]) for key in keys}
    return False if False in outcomes else None if None in outcomes else True


def _negated(value: Any, outcome: ConditionOutcome) -> ConditionOutcome:
    return None if value is MISSING or outcome is None else not outcome


def _within(value: Any, operand: Any) -> ConditionOutcome:
    if value is MISSING:
        return False
    outcomes = {_equal(value, member) for member in operand}
    if True in outcomes:
        return True
    # A server may convert the value to the type of such a member.
    return None if None in outcomes else False


def _ordered(compare: Callable[[Any, Any], bool]) -> _Test:
    def test(value: Any, operand: Any) -> ConditionOutcome:
        if value is MISSING:
            return False
        return _compared(compare, value, operand) if _is_number(value) else None

    return test


def _only_for(types: Any, compare: _Test) -> _Test:
    """Return a test that is undetermined for values of other types."""

    def test(value: Any, operand: Any) -> ConditionOutcome:
        if value is MISSING:
            return False
        return compare(value, operand) if isinstance(value, types) else None

    return test


def _contains(value: Any, operand: Any) -> ConditionOutcome:
    if isinstance(value, list):
        # The caller writes this list: a member that fails must not hide an undetermined one.
        outcomes = {_equal(member, operand) for member in value}
        return True if True in outcomes else None if None in outcomes else False
    if value is MISSING:
        return False
    return operand in value if isinstance(value, str) and isinstance(operand, str) else None


def _agreed(outcomes: set[bool]) -> ConditionOutcome:
    """Return the outcome that all readings have in common."""
    return outcomes.pop() if len(outcomes) == 1 else None


def _is_under(path: str, folders: tuple[str, ...], readings: ArgumentReadings) -> ConditionOutcome:
    """Tell whether a path is inside one of the folders, on every system.

    Only the server knows where a relative path or a ``~`` leads, so those are undetermined.
    """
    if not path.startswith("/") or "\0" in path:
        return None
    outcomes = set()
    found = readings.texts(path)
    # Systems resolve a path before they use it, so the path as sent does not count as a reading.
    for walked, folded in found[1:] or found:
        outcomes.add(any(_is_in(walked, folder) for folder in folders))
        outcomes.add(any(_is_in(folded, fold_path(folder)) for folder in folders))
    return _agreed(outcomes)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


class TextGlob(Glob):
    """A pattern for a text, which may be a path on a disk that does not distinguish case."""

    __slots__ = ("folded",)

    folded: Glob
    """The pattern for folded texts."""

    def __init__(self, pattern: str) -> None:
        super().__init__(pattern)
        folded = fold_path(pattern)
        self.folded = self if folded == pattern else Glob(folded)


def _matches_globs(
    text: str, globs: tuple[TextGlob, ...], readings: ArgumentReadings
) -> ConditionOutcome:
    """Tell whether a text matches one of the patterns, also where it is a path or a URL."""
    found = readings.texts(text)
    if len(found) == 1 and found[0][1] == text and all(glob.folded is glob for glob in globs):
        return any_matches(globs, text)  # nothing to fold, as in most paths and patterns
    # A pattern without wildcards that equals the text means exactly this text, however it is read.
    if any(glob.exact and glob.matches(text) for glob in globs):
        return True
    outcomes = set()
    for reading, folded in found:
        outcomes.add(any_matches(globs, reading))
        outcomes.add(any(glob.folded.matches(folded) for glob in globs))
    return _agreed(outcomes)


def _exists(value: Any, operand: Any) -> ConditionOutcome:
    if value is _BROKEN:
        return None
    return (value is not MISSING) is operand


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
    patterns = [_text(one) for one in (operand if isinstance(operand, list) else [operand])]
    return tuple(map(TextGlob, patterns))


def _member_tests(operand: Any) -> Any:
    tests = operand if isinstance(operand, Mapping) else {"eq": operand}
    if not tests:
        raise ValueError('name at least one operator, such as {glob: "*.env"}')
    return tuple(_test(operator, inner) for operator, inner in tests.items())


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
    "glob": _other_type,
    "contains": _contains,
    "starts_with": _only_for(str, lambda value, operand: value.startswith(operand)),
    "ends_with": _only_for(str, lambda value, operand: value.endswith(operand)),
    "under": _other_type,
    "exists": _exists,
    "length_gt": _only_for(_SIZED, lambda value, operand: len(value) > operand),
    "length_lt": _only_for(_SIZED, lambda value, operand: len(value) < operand),
    "any": _other_type,
    "all": _other_type,
}

_PATH_TESTS: Final[dict[str, Callable[[str, Any, ArgumentReadings], ConditionOutcome]]] = {
    "glob": _matches_globs,
    "under": _is_under,
}
"""The tests of texts that may be paths."""

_PREPARE: Final[dict[str, Callable[[Any], Any]]] = {
    **dict.fromkeys(("gt", "ge", "lt", "le"), _number),
    **dict.fromkeys(("in", "not_in"), lambda operand: tuple(_members(operand))),
    **dict.fromkeys(("starts_with", "ends_with"), _text),
    **dict.fromkeys(("length_gt", "length_lt"), _length),
    "matches": lambda operand: Pattern(_text(operand)),
    "glob": _globs,
    "under": _folders,
    "exists": _flag,
    **dict.fromkeys(("any", "all"), _member_tests),
}

OPERATORS: Final = tuple(_TESTS)
"""The operators of ``when``, in the order the documentation lists them."""
