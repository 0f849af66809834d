"""Long arguments in parts: stored whole, read one part at a time, deleted with age."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from thoughtgate.stores.argument_parts import MAX_KEPT, PART, read_part, write_parts
from thoughtgate.stores.database import Database, open_database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = open_database(tmp_path)
    yield opened
    opened.close()


def parts(database: Database, approval: str) -> list[str]:
    rows = database.read(
        "SELECT text FROM argument_parts WHERE approval = ? ORDER BY part", (approval,)
    )
    return [read_part(blob) for (blob,) in rows]


@pytest.mark.parametrize("length", [0, 1, PART - 1, PART, PART + 1, 3 * PART + 7])
def test_a_text_is_stored_whole(database: Database, length: int) -> None:
    text = ("äö" * length)[:length]
    with database.write() as connection:
        write_parts(connection, "k3f9ab", text)

    assert "".join(parts(database, "k3f9ab")) == text
    assert all(len(part) <= PART for part in parts(database, "k3f9ab"))


def test_the_oldest_parts_of_closed_approvals_are_deleted(database: Database) -> None:
    def fill(connection: sqlite3.Connection) -> None:
        connection.executemany(
            "INSERT INTO argument_parts (approval, part, text) VALUES (?, ?, ?)",
            [(f"old{number}", 0, b"") for number in range(MAX_KEPT + 5)],
        )

    with database.write() as connection:
        fill(connection)
        write_parts(connection, "new", "x")

    (kept,) = database.read("SELECT count(*), min(number) FROM argument_parts")
    assert kept == (MAX_KEPT + 1, 6)
