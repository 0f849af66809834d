"""The whole text of arguments that are too long for the row of their approval.

It is stored in compressed parts, so that neither a gate nor a reader keeps it in memory: a
reader fetches one part at a time.
"""

import zlib
from typing import Final

from thoughtgate.core.approval import Approval, Refusal
from thoughtgate.stores.database import Transaction

PART: Final = 65_536
"""Characters of one part, which is also one page for the reader."""

MAX_KEPT: Final = 1024
"""Parts kept of closed approvals, about 64 MB of text; the oldest are deleted first."""

_LEVEL: Final = 1
"""The fastest compression: a gate waits for it."""


def write_parts(connection: Transaction, approval: str, text: str) -> None:
    """Store a text in parts, inside the transaction that stores the approval."""
    connection.execute(
        "DELETE FROM argument_parts WHERE number <= "
        "(SELECT number FROM argument_parts ORDER BY number DESC LIMIT 1 OFFSET ?) "
        "AND approval NOT IN (SELECT id FROM approvals WHERE status IN ('pending', 'approved'))",
        (MAX_KEPT,),
    )
    connection.executemany(
        "INSERT INTO argument_parts (approval, part, text) VALUES (?, ?, ?)",
        (
            (approval, at // PART, zlib.compress(text[at : at + PART].encode(), _LEVEL))
            for at in range(0, len(text), PART)
        ),
    )


def refuse_incomplete(connection: Transaction, asked: Approval) -> Refusal | None:
    """Return why a request cannot be approved: its arguments are shortened. None if they are not.

    Requests of an earlier version may have nothing but shortened arguments.
    """
    whole = "SELECT 1 FROM argument_parts WHERE approval = ?"
    if not asked.folded or connection.execute(whole, (asked.id,)).fetchone() is not None:
        return None
    return Refusal("incomplete", f"the arguments of {asked.id} cannot be shown whole")


def read_part(blob: bytes) -> str:
    """Return the text of a stored part."""
    return zlib.decompress(blob).decode()
