"""Pages of a list that the hub assembles itself, and their cursors."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

PAGE_BYTES: Final = 4 * 1024 * 1024
"""Bytes per page: well below the largest message; about 5,000 typical tools fit."""


_PLACE: Final = re.compile("[0-9]{1,9}")


class Page(NamedTuple):
    """One page of a list."""

    start: int
    stop: int
    cursor: str
    """The cursor of the next page; empty on the last page."""


def page_of(sizes: Sequence[int], generation: str, cursor: str | None) -> Page | None:
    """Return the page for a cursor, given the sizes of the entries; None for an invalid cursor.

    A cursor is bound to the list that it was made for (``generation``), because its position
    means something else once the list has changed.
    """
    start = 0
    if cursor is not None:
        made_for, _, place = cursor.rpartition(":")
        if made_for != generation or not _PLACE.fullmatch(place) or int(place) > len(sizes):
            return None
        start = int(place)
    # At least one entry per page, however large: otherwise the list would never end.
    stop, used = start, 0
    while stop < len(sizes) and (stop == start or used + sizes[stop] <= PAGE_BYTES):
        used += sizes[stop]
        stop += 1
    return Page(start, stop, f"{generation}:{stop}" if stop < len(sizes) else "")
