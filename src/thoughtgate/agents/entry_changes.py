"""The changes that a wrap made to an entry, in a form that the journal can store.

Data only: ``rewrite`` creates it, ``journal`` stores it, ``revert`` undoes it.
"""

from dataclasses import dataclass
from typing import Any, Literal

from thoughtgate.agents.entries import KeyPath


@dataclass(frozen=True, slots=True)
class EntryChange:
    """One edit of one entry."""

    op: Literal["replace", "insert", "remove", "prepend"]
    keys: KeyPath
    new: Any = None
    """The new value; for ``prepend``, the elements added at the start."""
    old: str = ""
    """The previous text, for ``replace`` and ``remove``."""
    after: str | None = None
    """The preceding key, for ``insert`` and for undoing ``remove``; None if it is the first."""


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """All changes to one entry."""

    path: KeyPath
    server_id: str
    head: tuple[str, ...]
    """The words that the wrapped command line begins with; they identify the entry as wrapped."""
    changes: tuple[EntryChange, ...]
