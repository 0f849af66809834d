"""Where the store is, and how it is opened."""

from pathlib import Path

import pytest

from thoughtgate.errors import StoreError
from thoughtgate.stores.open_database import StoreLocation, open_database


def test_a_directory_has_a_file(tmp_path: Path) -> None:
    for place in (tmp_path, str(tmp_path), StoreLocation(tmp_path)):
        opened = open_database(place)
        assert not opened.is_shared
        opened.close()


def test_a_location_does_not_print_its_url(tmp_path: Path) -> None:
    location = StoreLocation(tmp_path, "postgresql://gate:hunter2@db/d")
    assert location.is_shared
    assert "hunter2" not in repr(location)


def test_a_missing_driver_is_named_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    for name in ("postgres", "postgres_pool"):
        monkeypatch.delitem(
            __import__("sys").modules, f"thoughtgate.stores.engines.{name}", raising=False
        )
    with pytest.raises(StoreError, match=r"pip install 'thoughtgate\[postgres\]'"):
        open_database(StoreLocation(tmp_path, "postgresql://gate@db/d"))
