"""The tables are the same on both engines, and migrations only add."""

import re

import pytest

from thoughtgate.stores.engines.schema import MIGRATIONS, for_postgres


def test_the_types_of_sqlite_are_translated() -> None:
    script = (
        "CREATE TABLE a (n INTEGER PRIMARY KEY, x REAL, y INTEGER, b BLOB) STRICT, WITHOUT ROWID;"
    )
    assert for_postgres(script) == (
        "CREATE TABLE a (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, x double precision, "
        "y bigint, b bytea);"
    )


@pytest.mark.parametrize("script", MIGRATIONS)
def test_a_migration_only_adds(script: str) -> None:
    assert not re.search(r"\b(DROP|RENAME|DELETE|UPDATE)\b", script)
