"""``logout`` with a real authorization server: revoked there, deleted here."""

import json
from pathlib import Path

from tests.support.authorization_server import AuthorizationServer, ProtectedServer
from tests.support.logins import Household


def test_signing_out_revokes_and_deletes(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer
) -> None:
    home = Household(tmp_path, issuer, protected)
    home.log_in()
    before = issuer.seen["revoked"]

    done = home.run("logout", "search", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "server": "search",
        "principal": "local",
        "signed_out": True,
    }
    assert issuer.seen["revoked"] > before
    assert json.loads(home.run("status", "--json").stdout)["logins"] == []
    assert "You were not signed in to search" in home.run("logout", "search").stdout


def test_tokens_are_deleted_even_if_nobody_can_be_told(tmp_path: Path) -> None:
    with AuthorizationServer() as issuer, ProtectedServer(issuer.url) as protected:
        home = Household(tmp_path, issuer, protected)
        home.log_in()

    done = home.run("logout", "search")

    assert "Signed out from search" in done.stdout + done.stderr or done.returncode
    assert json.loads(home.run("status", "--json").stdout)["logins"] == []
