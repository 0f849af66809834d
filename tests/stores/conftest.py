"""The engines on which every test of a store runs."""

from pathlib import Path

import pytest

from thoughtgate.stores.open_database import StoreLocation


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> StoreLocation:
    """Return where an empty store is, on each engine in turn."""
    if request.param == "sqlite":
        return StoreLocation(tmp_path)
    return StoreLocation(tmp_path, request.getfixturevalue("postgres").url())
