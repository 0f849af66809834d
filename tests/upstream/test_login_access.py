"""Credentials that are loaded when a server first wants them."""

import subprocess
import sys
from pathlib import Path

from thoughtgate.config.server_auth import ServerAuth
from thoughtgate.config.settings import ServerSettings
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.upstream.login_access import LoginAccess

URL = "https://mcp.example/mcp"


def _access(place: Path) -> LoginAccess:
    return LoginAccess(StoreLocation(place), {})


def test_a_server_with_credentials_in_the_config_has_no_others(tmp_path: Path) -> None:
    access = _access(tmp_path)
    fixed = ServerSettings("a", url=URL, auth=ServerAuth(token_env="T"))
    header = ServerSettings("b", url=URL, headers={"AUTHORIZATION": "x"})

    assert access.authorizer(fixed) is None
    assert access.authorizer(header) is None


def test_a_server_is_asked_first_unless_the_config_says_oauth(tmp_path: Path) -> None:
    access = _access(tmp_path)
    silent = access.authorizer(ServerSettings("a", url=URL, headers={"x-team": "blue"}))
    oauth = access.authorizer(ServerSettings("b", url=URL, auth=ServerAuth(type="oauth")))

    assert silent is not None
    assert silent.header("ann") == b""
    assert not access.is_personal(ServerSettings("a", url=URL))
    assert access.is_personal(ServerSettings("b", url=URL, auth=ServerAuth(type="oauth")))
    machine = ServerAuth(type="oauth", grant="client_credentials")
    assert not access.is_personal(ServerSettings("c", url=URL, auth=machine))
    assert not access.is_personal(ServerSettings("d", command="x"))
    assert oauth is not None
    assert oauth.header("ann") is None


def test_nothing_of_oauth_is_imported_before_it_is_needed() -> None:
    code = (
        "import sys; import thoughtgate.proxy.stdio, thoughtgate.proxy.http, thoughtgate.hub.run;"
        "print([m for m in sys.modules if 'oauth' in m or m in"
        " ('authlib', 'cryptography', 'keyring')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout.strip() == "[]"
