"""Sessions that the consoles of several gates share: real HTTP, keys and a real PostgreSQL."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.support.approvals import a_store
from tests.support.consoles import LocalConsole
from tests.support.postgres import PostgresServer
from tests.support.sign_in import (
    ANN,
    ProxiedClient,
    running_issuer,
    sign_in_config,
    signed_in_as,
    token,
)
from tests.web.conftest import Gate

from thoughtgate.errors import StoreError
from thoughtgate.stores.console_sessions import ConsoleSessionStore
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.testing.fake_clock import FakeClock
from thoughtgate.web.sign_in.shared_console_sessions import SharedConsoleSessions


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url()


@pytest.fixture
def ports(tmp_path: Path, url: str) -> Iterator[tuple[int, int]]:
    """Return the ports of the consoles of two gates that share a store."""
    with ExitStack() as stack:
        issuer = stack.enter_context(running_issuer())
        found = []
        for name in ("one", "two"):
            state = tmp_path / name
            state.mkdir()
            text = sign_in_config(issuer.url, rest=f"store: {url}\n")
            found.append(stack.enter_context(LocalConsole(state, text)).console.port)
        yield found[0], found[1]


@pytest.fixture
def held(tmp_path: Path, url: str) -> Iterator[Gate]:
    store = a_store(StoreLocation(tmp_path, url))
    yield Gate(store, owner="gate|0", ids="g0x")
    store.close()


def test_a_browser_stays_signed_in_whichever_gate_it_reaches(ports: tuple[int, int]) -> None:
    client = ProxiedClient(ports[0])
    assert "set-cookie" in client.get("/").headers
    client.port = ports[1]
    page = client.get("/")
    assert page.status == 200
    assert "set-cookie" not in page.headers
    # The cookie is still that of one person.
    client.given = token(email="eve@example.com")
    assert "set-cookie" in client.get("/").headers


def test_a_form_of_one_gate_works_once_at_any(ports: tuple[int, int], held: Gate) -> None:
    ident = held.hold(workflow="signed_in", arguments={"path": "/tmp/x"})
    path = f"/approvals/{ident}"
    client = signed_in_as(ports[0], ANN, "sre")
    form = {"token": client.get("/").token(path), "decision": "approve"}
    client.port = ports[1]
    assert client.post(path, form).status == 303
    assert client.post(path, form).status == 403
    client.port = ports[0]
    assert client.post(path, form).status == 403


def test_signing_out_at_one_gate_signs_out_at_all(ports: tuple[int, int]) -> None:
    client = ProxiedClient(ports[0])
    form = {"token": client.get("/").token("/logout")}
    cookie = client.cookie
    assert client.post("/logout", form).status == 200
    client.cookie = cookie
    client.port = ports[1]
    # A new session, because the cookie is worth nothing any more.
    assert "set-cookie" in client.get("/").headers


def test_without_the_store_nobody_is_signed_in(tmp_path: Path, url: str) -> None:
    clock = FakeClock(time.time())
    database = open_database(StoreLocation(tmp_path, url))
    sessions = SharedConsoleSessions(443, clock, ConsoleSessionStore(database), is_secure=True)
    value, session = sessions.open_session(ANN)
    assert sessions.cookie == "__Host-thoughtgate_443"
    assert sessions.find(value) is not None
    assert sessions.holds(session)
    assert sessions.find("guess") is None
    given = sessions.form_token(session, "approve", "x")
    assert not sessions.spend(session, given, "deny", "x")
    sessions.sign_out(session)
    assert not sessions.holds(session)
    sessions.close()
    with pytest.raises(StoreError):
        sessions.find(value)
