"""The connections of one process to one database."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.postgres import PostgresServer
from tests.support.waiting import PATIENCE_S, wait_for

from thoughtgate.errors import StoreError
from thoughtgate.record.shared_ledger import open_shared_ledger
from thoughtgate.stores.engines import postgres_pool
from thoughtgate.stores.engines.postgres import open_postgres
from thoughtgate.stores.engines.postgres_pool import MAX_CONNECTIONS, MAX_SLOW
from thoughtgate.stores.open_database import StoreLocation, open_database


@pytest.fixture
def url(postgres: PostgresServer) -> Iterator[str]:
    """Return the URL of a database, all of whose pools must be closed at the end."""
    found = postgres.url()
    known = set(postgres_pool._open)
    yield found
    assert set(postgres_pool._open) == known


def connections(postgres: PostgresServer, url: str) -> int:
    """Return how many connections the gates of a database have."""
    name = url.rpartition("/")[2].partition("?")[0]
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'thoughtgate' "
        f"AND datname = '{name}'"
    )
    return int(str(postgres.execute(query)[0][0]))


def test_all_stores_of_a_process_share_their_connections(
    postgres: PostgresServer, url: str, tmp_path: Path
) -> None:
    location = StoreLocation(tmp_path, url)
    before = connections(postgres, url)
    with ExitStack() as stack:
        for _ in range(12):
            opened = open_database(location)
            stack.callback(opened.close)
            opened.state()
            opened.read("SELECT 1")
        ledger = open_shared_ledger(location)
        stack.callback(ledger.close)
        # The pool opens a second one if the first is not ready; one is for the notifications.
        assert connections(postgres, url) <= before + 3
    wait_for(lambda: connections(postgres, url) <= before, PATIENCE_S)


def test_a_store_that_is_closed_twice_leaves_the_others_open(url: str) -> None:
    first, second = open_postgres(url), open_postgres(url)
    first.close()
    first.close()
    assert second.read("SELECT 1") == [(1,)]
    with pytest.raises(StoreError, match="closed"):
        first.read("SELECT 1")
    second.close()


def test_a_transaction_is_seen_by_the_other_stores_of_its_thread_only(url: str) -> None:
    first, second = open_postgres(url), open_postgres(url)
    query = "SELECT count(*) FROM used_prompts"
    seen: list[object] = []
    with first.write() as transaction:
        transaction.execute("INSERT INTO used_prompts VALUES ('a', 1)")
        assert second.read(query) == [(1,)]
        other = threading.Thread(target=lambda: seen.extend(second.read(query)))
        other.start()
        other.join(PATIENCE_S)
    assert seen == [(0,)]
    first.close()
    second.close()


def test_slow_queries_leave_connections_for_calls(url: str) -> None:
    database = open_postgres(url)
    lock = 77
    with database.write(exclusive=False) as transaction:
        transaction.execute("SELECT pg_advisory_xact_lock(?)", (lock,))
        wanted = f"SELECT pg_advisory_xact_lock_shared({lock})"
        readers = [
            threading.Thread(target=lambda: database.read_slowly(wanted))
            for _ in range(MAX_CONNECTIONS + 2)
        ]
        for reader in readers:
            reader.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_for(lambda: transaction.execute(waiting).fetchone()[0] == MAX_SLOW, PATIENCE_S)
        answers: list[object] = []
        caller = threading.Thread(target=lambda: answers.extend(database.read("SELECT 2")))
        caller.start()
        caller.join(PATIENCE_S)
    assert answers == [(2,)]
    assert not database.is_away
    for reader in readers:
        reader.join(PATIENCE_S)
    database.close()
