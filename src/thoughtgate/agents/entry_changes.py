"""What was done to an entry, as values that a journal can hold.

Pure data: written by ``rewrite``, read by ``revert``, kept by ``journal``.
"""

from dataclasses import dataclass
from typing import Any, Literal

from thoughtgate.agents.entries import KeyPath


@dataclass(frozen=True, slots=True)
class Change:
    """One edit of one entry."""

    op: Literal["replace", "insert", "remove", "prepend"]
    keys: KeyPath
    new: Any = None
    """The value put there; for ``prepend`` the elements put before the others."""
    old: str = ""
    """The text that stood there, for ``replace`` and ``remove``."""
    after: str | None = None
    """The key it stands behind, for ``insert`` and for undoing ``remove``; None: it is the first."""


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """What was done to one entry."""

    path: KeyPath
    server_id: str
    head: tuple[str, ...]
    """The words that the entry's command line begins with since: by them it is known as ours."""
    changes: tuple[Change, ...]
