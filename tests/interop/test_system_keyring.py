"""The key that encrypts tokens in a real keyring: GNOME Keyring, over its Secret Service."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.interop.test_logins import gate_of
from tests.support.authorization_server import AuthorizationServer, ProtectedServer
from tests.support.logins import KEY_ENV, Household
from tests.support.secret_service import needs_secret_service, secret_service

pytestmark = [pytest.mark.long, needs_secret_service]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Household]:
    """Prepare a user whose config names no variable for the key."""
    with AuthorizationServer() as issuer, ProtectedServer(issuer.url) as protected:
        found = Household(tmp_path, issuer, protected, keys={})
        del found.env[KEY_ENV]
        yield found


def stored_tokens(home: Household) -> bytes:
    """Return the tokens as they are in the store."""
    with closing(sqlite3.connect(home.state / "thoughtgate.db")) as database:
        ((body,),) = database.execute("SELECT body FROM oauth_tokens").fetchall()
        return bytes(body)


def test_tokens_are_encrypted_with_a_key_of_the_systems_keyring(
    home: Household, tmp_path: Path
) -> None:
    desktop = tmp_path / "desktop"
    desktop.mkdir()
    with secret_service(desktop) as environ:
        home.env |= environ
        home.log_in()
        with gate_of(home, "proxy-http") as gate:
            assert gate.text("whoami") == "alice"
        with gate_of(home, "serve-stdio") as gate:  # another process reads the same key
            assert gate.text("whoami") == "alice"
        assert stored_tokens(home).startswith(b"gAAAA")  # as Fernet writes
    # A new login of the user at the desktop: the keyring kept the key on disk.
    with secret_service(desktop) as environ:
        home.env |= environ
        with gate_of(home, "proxy-http") as gate:
            assert gate.text("whoami") == "alice"


def test_a_keyring_that_is_locked_is_named(home: Household, tmp_path: Path) -> None:
    desktop = tmp_path / "desktop"
    desktop.mkdir()
    with secret_service(desktop, unlocked=False) as environ:
        home.env |= environ
        done = home.run("login", "search", "--no-browser")
        assert done.returncode == 2
        assert "the system's keyring is locked" in done.stderr
        assert "keys.tokens_env" in done.stderr
