"""The difference between two definitions, for people: word by word in texts, else by member.

Nothing is left out: of a long text, the words around a change are shown as well as the change.
"""

import json
from typing import Any, Final

from thoughtgate.core.definitions.changes import KINDS_OF_CHANGE, Change, compare, heaviest
from thoughtgate.core.definitions.pinned import Definition

MAX_STEPS: Final = 500_000
"""Pairs of words that are compared for all texts of one server: less than a second. Texts beyond that
are shown as removed and added as a whole."""

SAME: Final = "same"
REMOVED: Final = "removed"
ADDED: Final = "added"


class WordDifference:
    """Compares texts word by word, within a number of steps for all of them together."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self._steps = steps

    def parts(self, old: str, new: str) -> list[tuple[str, str]]:
        """Return the parts of two texts in order: ``same``, ``removed`` and ``added`` words."""
        return [
            (kind, " ".join(words)) for kind, words in self.aligned(old.split(" "), new.split(" "))
        ]

    def aligned(self, before: list[str], after: list[str]) -> list[tuple[str, list[str]]]:
        """Return the parts of two lists in order: ``same``, ``removed`` and ``added`` members."""
        # Most texts differ in few words: without their common ends, the alignment stays cheap.
        head = _common(before, after)
        tail = _common(before[head:][::-1], after[head:][::-1])
        first, second = before[head : len(before) - tail], after[head : len(after) - tail]
        steps = len(first) * len(second)
        if steps > self._steps:
            middle = [(REMOVED, first), (ADDED, second)]
        else:
            self._steps -= steps
            middle = _aligned(first, second)
        made = [(SAME, before[:head]), *middle, (SAME, before[len(before) - tail :])]
        return [(kind, words) for kind, words in made if words]

    def marked(self, old: str, new: str) -> str:
        """Return one text with what was removed in ``[-…-]`` and what was added in ``{+…+}``."""
        wraps = {SAME: "{}", REMOVED: "[-{}-]", ADDED: "{{+{}+}}"}
        return " ".join(wraps[kind].format(text) for kind, text in self.parts(old, new))

    def describe(self, old: Definition | None, new: Definition) -> dict[str, Any]:
        """Return the whole difference as a JSON value for people, the weight first."""
        changes = compare(old, new)
        told: dict[str, Any] = {
            "weight": heaviest(changes),
            "changes": [self._told(one) for one in changes],
        }
        if old is None or not old.is_readable or not changes:
            told["definition"] = new.body
        return told

    def lines(self, old: Definition | None, new: Definition) -> list[str]:
        """Return the difference as lines of text, the most severe change first."""
        lines = []
        for one in compare(old, new):
            what = KINDS_OF_CHANGE[one.change][1]
            lines.append(f"{one.weight:<8} {what}  {one.pointer}".rstrip())
            if type(one.before) is str and type(one.after) is str:
                lines.append(f"         {self.marked(one.before, one.after)}")
                continue
            lines += [f"       - {_text(one.before)}"] if one.before is not None else []
            lines += [f"       + {_text(one.after)}"] if one.after is not None else []
        if old is None or not old.is_readable:
            lines += [f"       + {line}" for line in _pretty(new.body)]
        return lines

    def _told(self, change: Change) -> dict[str, Any]:
        said: dict[str, Any] = {
            "weight": change.weight,
            "what": KINDS_OF_CHANGE[change.change][1],
            "where": change.pointer,
        }
        if type(change.before) is str and type(change.after) is str:
            return {**said, "difference": self.marked(change.before, change.after)}
        if change.before is not None:
            said["before"] = change.before
        if change.after is not None:
            said["after"] = change.after
        return said


def _aligned(before: list[str], after: list[str]) -> list[tuple[str, list[str]]]:
    """Align two lists of words by their longest common subsequence, in time of their product."""
    lengths = [[0] * (len(after) + 1)]
    for one in reversed(before):
        below, row = lengths[-1], [0]
        for at, other in enumerate(reversed(after)):
            row.append(below[at] + 1 if one == other else max(below[at + 1], row[at]))
        lengths.append(row)
    lengths.reverse()
    parts: list[tuple[str, list[str]]] = []
    first = second = 0
    while first < len(before) or second < len(after):
        left, right = len(before) - first, len(after) - second
        if left and right and before[first] == after[second]:
            kind, word = SAME, before[first]
            first, second = first + 1, second + 1
        elif left and (not right or lengths[first + 1][right] >= lengths[first][right - 1]):
            kind, word = REMOVED, before[first]
            first += 1
        else:
            kind, word = ADDED, after[second]
            second += 1
        if parts and parts[-1][0] == kind:
            parts[-1][1].append(word)
        else:
            parts.append((kind, [word]))
    return parts


def _common(before: list[str], after: list[str]) -> int:
    """Return how many words two lists have in common at their beginning."""
    same = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        same += 1
    return same


def _text(value: Any) -> str:
    return value if type(value) is str else json.dumps(value, ensure_ascii=False)


def _pretty(body: dict[str, Any]) -> list[str]:
    return json.dumps(body, ensure_ascii=False, indent=2).splitlines()
