"""Pages of a list that the hub puts together itself, and the cursors between them."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

PAGE_BYTES: Final = 4 * 1024 * 1024
"""Bytes of one page: well under the largest message, and 5,000 usual tools fit in one."""


_PLACE: Final = re.compile("[0-9]{1,9}")


class Page(NamedTuple):
    """A part of a list."""

    start: int
    stop: int
    cursor: str
    """Of the next page; empty at the end."""


def page_of(sizes: Sequence[int], generation: str, cursor: str | None) -> Page | None:
    """Return the page a cursor stands for, given the entries' sizes; None for a foreign cursor.

    A cursor binds to the list it was made for (``generation``): when the list has changed
    since, its places mean something else.
    """
    start = 0
    if cursor is not None:
        made_for, _, place = cursor.rpartition(":")
        if made_for != generation or not _PLACE.fullmatch(place) or int(place) > len(sizes):
            return None
        start = int(place)
    stop, used = start, 0
    while stop < len(sizes) and (stop == start or used + sizes[stop] <= PAGE_BYTES):
        used += sizes[stop]
        stop += 1
    return Page(start, stop, f"{generation}:{stop}" if stop < len(sizes) else "")
