"""A shared ledger for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.postgres import PostgresServer

from thoughtgate.record.shared_ledger import SharedLedger, open_shared_ledger
from thoughtgate.stores.open_database import StoreLocation


@pytest.fixture
def location(postgres: PostgresServer, tmp_path: Path) -> StoreLocation:
    """Return where the shared ledger is."""
    return StoreLocation(tmp_path, postgres.url())


@pytest.fixture
def shared(location: StoreLocation) -> Iterator[SharedLedger]:
    """Return an empty ledger in PostgreSQL."""
    opened = open_shared_ledger(location)
    yield opened
    opened.close()
