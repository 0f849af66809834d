"""The first pass over a text: one automaton for every mark and telling word, and who looks closer."""

from collections.abc import Collection
from functools import cache
from typing import Any, Final, NamedTuple

from ahocorasick_rs import MATCHKIND_LEFTMOST_LONGEST, AhoCorasick

from thoughtgate.policy.inspection.checks import ARGUMENTS
from thoughtgate.policy.inspection.commands import PATH_MARKS, shell_marks
from thoughtgate.policy.inspection.encoded import DISGUISE_MARKS, LEET_MARKS, SPACED_MARKS
from thoughtgate.policy.inspection.links import METADATA_MARKS, SCHEME_MARKS
from thoughtgate.policy.inspection.secret_values import (
    BEARER_MARKS,
    JWT_MARKS,
    KEY_MARKS,
    NAME_MARKS,
    TOKEN_FORMS,
    URL_MARKS,
)
from thoughtgate.policy.inspection.words import file_words, quick_words

WORD: Final = "word"
TOKEN: Final = "token"  # noqa: S105 - a group of marks
NAMED: Final = "named"
BEARER: Final = "bearer"
KEY: Final = "key"
URL: Final = "url"
JWT: Final = "jwt"
SHELL: Final = "shell"
PATH: Final = "path"
SCHEME: Final = "scheme"
METADATA: Final = "metadata"
DISGUISE: Final = "disguise"
SPACED: Final = "spaced"
LEET: Final = "leet"


class Hit(NamedTuple):
    """A mark in a text."""

    payload: Any
    start: int
    end: int


class Marks:
    """The marks of one kind of value."""

    def __init__(self, kind: str) -> None:
        """Build the automaton; ``kind`` is definition, arguments or result."""
        table: dict[str, list[tuple[str, Any]]] = {}
        words, classes = quick_words()
        groups: list[tuple[str, dict[str, Any]]] = [
            (WORD, dict(zip(words, classes, strict=True))),
            (NAMED, dict.fromkeys(NAME_MARKS)),
            (BEARER, dict.fromkeys(BEARER_MARKS)),
            (KEY, dict.fromkeys(KEY_MARKS)),
            (URL, dict.fromkeys(URL_MARKS)),
            (JWT, dict.fromkeys(JWT_MARKS)),
            (SHELL, dict.fromkeys(shell_marks(kind))),
            (PATH, dict.fromkeys((*PATH_MARKS, *file_words()) if kind == ARGUMENTS else ())),
            (SCHEME, dict.fromkeys(SCHEME_MARKS)),
            (METADATA, dict.fromkeys(METADATA_MARKS)),
            (DISGUISE, dict(DISGUISE_MARKS)),
            (SPACED, dict.fromkeys(SPACED_MARKS)),
            (LEET, dict.fromkeys(LEET_MARKS)),
        ]
        groups.extend((TOKEN, dict.fromkeys(form.marks, form)) for form in TOKEN_FORMS)
        for group, marks in groups:
            for mark, payload in marks.items():
                table.setdefault(mark, []).append((group, payload))
        self._groups = [
            [(group, payload, len(mark)) for mark in begun for group, payload in table[mark]]
            for begun in _begun_by(table)
        ]
        # With each mark those that it begins with: the automaton returns the longest one only.
        self._automaton = AhoCorasick(list(table), matchkind=MATCHKIND_LEFTMOST_LONGEST)

    def find(self, text: str) -> dict[str, list[Hit]]:
        """Return the marks of a text by group, in order."""
        found: dict[str, list[Hit]] = {}
        groups = self._groups
        for index, start, _ in self._automaton.find_matches_as_indexes(text):
            for group, payload, size in groups[index]:
                hits = found.get(group)
                if hits is None:
                    found[group] = [Hit(payload, start, start + size)]
                else:
                    hits.append(Hit(payload, start, start + size))
        return found


def _begun_by(marks: Collection[str]) -> list[tuple[str, ...]]:
    """Return for each mark the marks that it begins with, the shortest first, itself included."""
    found: dict[str, tuple[str, ...]] = {}
    begun: list[str] = []
    # Sorted, what a mark begins with stands before it, and so do the others that begin with that.
    for mark in sorted(marks):
        while begun and not mark.startswith(begun[-1]):
            begun.pop()
        begun.append(mark)
        found[mark] = tuple(begun)
    return [found[mark] for mark in marks]


@cache
def marks_for(kind: str) -> Marks:
    """Return the marks for a kind of value; built when it is first inspected."""
    return Marks(kind)
