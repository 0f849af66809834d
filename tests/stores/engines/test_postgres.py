"""The PostgreSQL engine: never further away than seconds, never trusted further than it must be."""

import threading
from collections.abc import Iterator

import psycopg
import pytest
from tests.support.postgres import PostgresServer
from tests.support.waiting import wait_for

from thoughtgate.errors import StoreError
from thoughtgate.stores.database import next_rev
from thoughtgate.stores.engines.postgres import (
    PostgresDatabase,
    connection_info,
    open_postgres,
    translated,
)
from thoughtgate.stores.engines.schema import MIGRATIONS

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


@pytest.mark.promise("agent-environment")
def test_a_gate_that_an_agent_starts_takes_only_the_password_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = {
        "PGSSLMODE": "disable",
        "PGPORT": "6666",
        "PGSSLROOTCERT": "/tmp/own-ca.crt",
        "PGUSER": "somebody",
        "PGCHANNELBINDING": "disable",
        "PGPASSWORD": "hunter2",
        "HOME": "/tmp/agent",
    }
    for name, value in chosen.items():
        monkeypatch.setenv(name, value)
    conninfo = connection_info("postgresql://db/d", ignores_environment=True)[0]
    found = psycopg.pq.Conninfo.parse(conninfo.encode())
    values = {one.keyword.decode(): one.val for one in found if one.envvar}
    assert values["password"] == b"hunter2"
    assert (values["channel_binding"], values["gssencmode"]) == (b"prefer", b"disable")
    assert (values["sslmode"], values["port"]) == (b"require", b"5432")
    # None is read from a variable: these are refused, or can only make the connection fail.
    assert {name for name, value in values.items() if value is None} == {
        "service",
        "hostaddr",
        "sslcertmode",
        "min_protocol_version",
        "max_protocol_version",
    }
    assert {text.encode() for text in chosen.values()} & {*values.values()} == {
        b"hunter2",
        b"disable",
    }
    assert b"/tmp/" not in (values["sslrootcert"] or b"")


def test_the_port_of_a_url_is_not_taken_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPORT", "6666")
    assert "port=5432" in connection_info("postgresql://gate@db/d")[0]


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
    with pytest.raises(StoreError, match=r"later version of thoughtgate.*pip install --upgrade"):
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
        with pytest.raises(StoreError, match="keeps trying"):
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
        with pytest.raises(StoreError, match="keeps trying"):
            database.read("SELECT 1")
    finally:
        own_server.resume()
    wait_for(lambda: not database.is_away)
    database.close()


def test_each_reason_why_a_gate_cannot_start_says_what_mends_it(
    own_server: PostgresServer,
) -> None:
    own_server.url("mending")
    place = f"127.0.0.1:{own_server.port}/thoughtgate"
    own_server.execute("CREATE ROLE poor LOGIN PASSWORD 'right'")
    own_server.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
    hba = own_server.data / "pg_hba.conf"
    hba.write_text(f"host all locked 127.0.0.1/32 md5\n{hba.read_text('utf-8')}", "utf-8")
    own_server.execute("SELECT pg_reload_conf()")
    wrong = {
        f"postgresql://gate@127.0.0.1:{own_server.port}/missing": "createdb",
        f"postgresql://nobody@{place}": "createuser",
        f"postgresql://gate@{place}?sslmode=require": "sslmode",
        "postgresql://gate@127.0.0.1:1/thoughtgate": "start the database",
        f"postgresql://poor@{place}": "grant the user CREATE",
    }
    for url, mended_by in wrong.items():
        with pytest.raises(StoreError, match=mended_by):
            open_postgres(url)

    def refused() -> str:
        with pytest.raises(StoreError) as caught:
            open_postgres(f"postgresql://locked:hunter2@{place}")
        return str(caught.value)

    text = wait_for(lambda: said if "password" in (said := refused()) else "", what="the reload")
    assert "PGPASSWORD" in text
    assert "hunter2" not in text


def test_without_the_environment_a_database_is_still_reached(postgres: PostgresServer) -> None:
    database = open_postgres(postgres.url(), ignores_environment=True)
    try:
        assert database.read("SELECT 1") == [(1,)]
    finally:
        database.close()


@pytest.mark.promise("agent-environment")
def test_a_gate_that_an_agent_starts_follows_no_service_file() -> None:
    url = "postgresql://db/d?service=other"
    assert "service=other" in connection_info(url)[0]
    with pytest.raises(StoreError, match="must be sqlite or postgresql"):
        connection_info(url, ignores_environment=True)
