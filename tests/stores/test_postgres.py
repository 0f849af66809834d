"""The PostgreSQL engine: never further away than seconds, never trusted further than it must be."""

import threading
from collections.abc import Iterator

import pytest
from tests.support.postgres import PostgresServer
from tests.support.waiting import wait_for

from thoughtgate.errors import StoreError
from thoughtgate.stores.database import next_rev
from thoughtgate.stores.postgres import (
    PostgresDatabase,
    connection_info,
    open_postgres,
    translated,
)
from thoughtgate.stores.schema import MIGRATIONS

WRONG = (
    "postgresql://",
    "postgresql://gate@/thoughtgate",
    "postgresql://gate:hunter2@h",
    "postgresql://gate:hunter2@h:port/d",
    "mysql://gate:hunter2@h/d",
    "postgresql://gate:hunter2@h/d?nonsense",
    "postgresql://gate:hunter2@h/d?sslmodus=require",
)


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[PostgresDatabase]:
    opened = open_postgres(postgres.url())
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """Return a server that the tests of this module may stop."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.mark.parametrize("url", WRONG)
def test_a_wrong_url_is_named_without_its_password(url: str) -> None:
    with pytest.raises(StoreError, match="postgresql://USER@HOST/DATABASE") as caught:
        connection_info(url)
    assert "hunter2" not in str(caught.value)


def test_another_machine_is_asked_for_tls_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PGSSLMODE", raising=False)
    assert "sslmode=require" in connection_info("postgresql://gate@db/d")[0]
    assert "sslmode" not in connection_info("postgresql://gate@127.0.0.1/d")[0]
    assert "sslmode=verify-full" in connection_info("postgresql://gate@db/d?sslmode=verify-full")[0]
    monkeypatch.setenv("PGSSLMODE", "verify-ca")
    assert "sslmode=verify-ca" in connection_info("postgresql://gate@db/d")[0]


def test_several_hosts_are_tried_for_the_one_that_can_be_written() -> None:
    conninfo, shown = connection_info("postgresql://gate@127.0.0.1:5001,127.0.0.2:5002/d")
    assert "port=5001,5002" in conninfo
    assert "target_session_attrs=read-write" in conninfo
    assert "sslmode" not in conninfo
    assert "sslmode=require" in connection_info("postgresql://gate@127.0.0.1,db/d")[0]
    assert shown == "database d on 127.0.0.1,127.0.0.2"


def test_a_variable_cannot_name_another_server(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.url()
    monkeypatch.setenv("PGHOSTADDR", "127.0.0.9")
    with pytest.raises(StoreError, match="PGHOSTADDR"):
        open_postgres(url)
    monkeypatch.delenv("PGHOSTADDR")
    monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=0")
    opened = open_postgres(url)
    assert opened.read("SHOW statement_timeout") == [("3s",)]
    opened.close()


def test_a_database_that_is_not_there_is_named_without_its_password(
    postgres: PostgresServer,
) -> None:
    with pytest.raises(StoreError) as caught:
        open_postgres(f"postgresql://gate:hunter2@127.0.0.1:{postgres.port}/missing")
    assert "database missing on 127.0.0.1" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_values_are_passed_as_values() -> None:
    assert translated("SELECT a FROM b WHERE c = ? AND d = :name") == (
        "SELECT a FROM b WHERE c = %s AND d = %(name)s"
    )
    assert translated("SELECT 1::float8 % 2, a LIKE 'x%'") == (
        "SELECT 1::float8 %% 2, a LIKE 'x%%'"
    )


def test_several_gates_may_create_the_tables_at_once(postgres: PostgresServer) -> None:
    url, failures = postgres.url(), list[BaseException]()

    def work() -> None:
        try:
            open_postgres(url).close()
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert failures == []


def test_a_gate_of_the_version_before_can_go_on(database: PostgresDatabase) -> None:
    with database.write() as statements:
        statements.execute("UPDATE schema_version SET version = version + 1")
    database.migrate()
    assert database.read("SELECT version FROM schema_version") == [(len(MIGRATIONS) + 1,)]


def test_tables_that_this_version_cannot_use_are_refused(database: PostgresDatabase) -> None:
    with database.write() as statements:
        statements.execute("UPDATE schema_version SET oldest = ?", (len(MIGRATIONS) + 1,))
    with pytest.raises(StoreError, match="later version of thoughtgate; update this one"):
        database.migrate()


def test_a_failed_transaction_leaves_nothing(database: PostgresDatabase) -> None:
    def fail() -> None:
        with database.write() as statements:
            next_rev(statements)
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert database.read("SELECT value FROM counter") == [(0,)]


def test_a_wrong_statement_is_an_error_and_the_next_one_works(database: PostgresDatabase) -> None:
    with pytest.raises(StoreError, match="nowhere"):
        database.read("SELECT 1 FROM nowhere")
    assert database.read("SELECT 1") == [(1,)]
    assert not database.is_away


def test_a_change_by_another_gate_is_noticed(
    database: PostgresDatabase, postgres: PostgresServer
) -> None:
    other = PostgresDatabase(database._conninfo, "other")
    database.state()
    seen = database.state()
    with other.write() as statements:
        next_rev(statements)
    wait_for(lambda: database.state() != seen)
    other.close()


def test_the_databases_clock_counts(database: PostgresDatabase) -> None:
    with database.write() as statements:
        row = statements.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    assert abs(database.time(row[0]) - row[0]) < 60


def test_connections_of_a_database_that_was_restarted_are_replaced(
    own_server: PostgresServer,
) -> None:
    database = open_postgres(own_server.url())
    with database.write() as statements:
        next_rev(statements)
    own_server.stop()
    own_server.start()
    with database.write() as statements:
        assert next_rev(statements) == 2
    database.close()


def test_a_database_that_is_away_fails_at_once_and_comes_back_by_itself(
    own_server: PostgresServer,
) -> None:
    database = open_postgres(own_server.url())
    own_server.stop()
    try:
        with pytest.raises(StoreError):
            database.read("SELECT 1")
        assert database.is_away
        with pytest.raises(StoreError, match="tried again"):
            database.read("SELECT 1")
    finally:
        own_server.start()
    wait_for(lambda: not database.is_away)
    assert database.read("SELECT 1") == [(1,)]
    database.close()


@pytest.mark.long
def test_a_database_that_is_paused_does_not_stop_the_gate(own_server: PostgresServer) -> None:
    database = open_postgres(own_server.url())
    own_server.pause()
    try:
        with pytest.raises(StoreError):
            database.read("SELECT 1")
        with pytest.raises(StoreError, match="tried again"):
            database.read("SELECT 1")
    finally:
        own_server.resume()
    wait_for(lambda: not database.is_away)
    database.close()
