"""The engines on which every test of a store runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.approvals import DEAD, a_store

from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.open_database import StoreLocation


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> StoreLocation:
    """Return where an empty store is, on each engine in turn."""
    if request.param == "sqlite":
        return StoreLocation(tmp_path)
    return StoreLocation(tmp_path, request.getfixturevalue("postgres").url())


@pytest.fixture
def store(location: StoreLocation) -> Iterator[ApprovalStore]:
    """Return a store of approvals, for which one owner is dead."""
    opened = a_store(location, alive=lambda owner: owner != DEAD)
    yield opened
    opened.close()
