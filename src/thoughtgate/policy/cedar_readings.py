"""The readings of a call's arguments for which Cedar policies are evaluated.

Some servers match keys without regard to case. A policy names attributes exactly, so every key
that such a server takes for an attribute is put in its place, in a separate reading. The same
holds for a whole number of more than 53 bits, which JavaScript rounds.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Final

from thoughtgate.policy.conditions import is_rounded_by_some
from thoughtgate.wire.frame import fold_key

MAX_READINGS: Final = 16
"""Maximum number of readings per call, because Cedar evaluates each."""


_MAX_LONG: Final = 2**63
"""Beyond it a number is a String in Cedar, which no policy compares with a number."""


class AttributeNames:
    """The attributes that policies name, by their folded form."""

    __slots__ = ("_names",)

    def __init__(self, names: Iterable[str]) -> None:
        self._names: dict[str, list[str]] = {}
        for name in sorted(names):
            self._names.setdefault(fold_key(name), []).append(name)

    def select(self, values: Mapping[str, Any], names: frozenset[str] | None) -> dict[str, Any]:
        """Return the members with one of these names, or a key that folds to one; None for all."""
        if names is None:
            return dict(values)
        wanted = {fold_key(name) for name in names}
        return {key: value for key, value in values.items() if fold_key(key) in wanted}

    def readings(self, values: dict[str, Any]) -> list[dict[str, Any]] | None:
        """Return all readings of the arguments, first as sent; None if there are too many."""
        count = self._count(values)
        if count == 1:
            return [values]
        return list(self._readings(values)) if count <= MAX_READINGS else None

    def _variants(self, members: dict[str, Any]) -> dict[str, list[str]]:
        """Return the keys that servers may take for an attribute, if not only for itself."""
        found: dict[str, list[str]] = {}
        for key in members:
            folded = fold_key(key)
            if folded in self._names:
                found.setdefault(folded, []).append(key)
        return {folded: keys for folded, keys in found.items() if keys != self._names[folded]}

    def _count(self, value: Any) -> int:
        """Return the number of readings, or more than the maximum if there are too many."""
        count = 1
        if type(value) is dict:
            for keys in self._variants(value).values():
                # Go merges the members of objects with such keys, in any combination.
                if sum(type(value[key]) is dict for key in keys) > 1:
                    return MAX_READINGS + 1
                count *= 1 + len(keys)
        elif type(value) is not list:
            return len(_number_readings(value))
        for inner in value.values() if type(value) is dict else value:
            if count > MAX_READINGS:
                break
            count *= self._count(inner)
        return count

    def _readings(self, value: Any) -> Iterable[Any]:
        if type(value) is list:
            return [list(members) for members in product(*map(self._readings, value))]
        if type(value) is not dict:
            return _number_readings(value)
        bodies = [
            dict(zip(value, members, strict=True))
            for members in product(*map(self._readings, value.values()))
        ]
        variants = self._variants(value)
        choices = list(product(*((None, *keys) for keys in variants.values())))
        return [self._replaced(body, variants, choice) for body in bodies for choice in choices]

    def _replaced(
        self, body: dict[str, Any], variants: Iterable[str], choice: tuple[str | None, ...]
    ) -> dict[str, Any]:
        """Return an object in which the chosen keys take the place of the attributes."""
        read = dict(body)
        for folded, key in zip(variants, choice, strict=True):
            if key is not None:
                read |= dict.fromkeys(self._names[folded], body[key])
        return read


def _number_readings(value: Any) -> list[Any]:
    """Return a value, and what JavaScript makes of it if it is a number that it rounds."""
    if is_rounded_by_some(value) and abs(value) <= _MAX_LONG:
        return [value, int(float(value))]
    return [value]
