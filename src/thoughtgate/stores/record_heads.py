"""The heads of record files: how far each was written, kept apart from the record itself.

A record whose end was cut off, or that was emptied or removed, still has a valid chain. The head
says where the record ended. The head may be behind the file, because it is stored after the file
was written; it is never ahead of the file.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from thoughtgate.errors import StoreError
from thoughtgate.stores.database import Database
from thoughtgate.stores.engines.sqlite import FILE_NAME, open_sqlite

_COLUMNS: Final = "record, number, size, chain, run_id, writer, seq"
_SAVE: Final = (
    f"INSERT INTO record_heads ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) "  # noqa: S608 - our own names
    "ON CONFLICT (record) DO UPDATE SET number = excluded.number, size = excluded.size, "
    "chain = excluded.chain, run_id = excluded.run_id, writer = excluded.writer, "
    "seq = excluded.seq"
)
_IF_LATER: Final = (
    " WHERE excluded.number > record_heads.number"
    " OR (excluded.number = record_heads.number AND excluded.size > record_heads.size)"
)


class RecordHead(NamedTuple):
    """The last line that a gate wrote to a record file."""

    record: str
    """Absolute path of the current file, also if the line is in a rotated one."""
    number: int
    """Number of the file with the line, counted over rotations."""
    size: int
    """Bytes of that file up to the end of the line."""
    chain: str
    run_id: str
    writer: str
    seq: int


def load_head(database: Database, record: str) -> RecordHead | None:
    """Return the stored head of a record.

    Raises:
        StoreError: the store cannot be read.
    """
    query = f"SELECT {_COLUMNS} FROM record_heads WHERE record = ?"  # noqa: S608 - our own names
    rows = database.read(query, (record,))
    return RecordHead(*rows[0]) if rows else None


def save_head(
    database: Database,
    head: RecordHead,
    *,
    replace: bool = False,
    is_kept: Callable[[RecordHead], bool] = lambda _: True,
) -> RecordHead | None:
    """Store a head unless a later one is stored; ``replace`` stores it in any case.

    Otherwise ``is_kept`` tells whether the line of the stored head is still in the file. If it is
    not, nothing is stored, since the old head is the only evidence, and the old head is returned.

    Raises:
        StoreError: the store cannot be written.
    """
    with database.write() as connection:
        before = None if replace else load_head(database, head.record)
        if before is not None and not is_kept(before):
            return before
        connection.execute(_SAVE if replace else _SAVE + _IF_LATER, head)
    return None


def find_head(directory: Path, record: Path) -> RecordHead | None:
    """Return the head of a record from the store in a state directory, if there is one."""
    if not (directory / FILE_NAME).is_file():
        return None
    try:
        database = open_sqlite(directory)
    except StoreError:
        return None
    try:
        return load_head(database, head_name(record))
    except StoreError:
        return None
    finally:
        database.close()


def head_name(record: Path) -> str:
    """Return the name under which the head of a record is stored.

    A link at the path itself is not followed: whoever replaces the file by a link to another one
    would otherwise also replace its head.
    """
    return str(record.parent.resolve() / record.name)
