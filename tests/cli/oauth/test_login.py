"""``login`` with a real authorization server: browser, device, refusal, time-out, mistakes."""

import json
import re
from pathlib import Path

from tests.support.authorization_server import (
    MACHINE,
    AuthorizationServer,
    Browser,
    ProtectedServer,
)
from tests.support.logins import Household
from tests.support.waiting import wait_for


def test_a_sign_in_stores_tokens_and_status_shows_it(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer
) -> None:
    home = Household(tmp_path, issuer, protected)

    said = home.log_in()

    assert (said["server"], said["principal"], said["issuer"]) == ("search", "local", issuer.url)
    assert said["scopes"] == ["tools:read"]
    assert said["renewable"] is True
    told = json.loads(home.run("status", "--json").stdout)
    assert [one["server"] for one in told["logins"]] == ["search"]
    assert "login search: local is signed in" in home.run("status").stdout


def test_the_browser_is_opened_and_the_place_is_named(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer
) -> None:
    home, opened = Household(tmp_path, issuer, protected), tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    home.env["BROWSER"] = str(browser)
    with home.command("login", "search", "-c", str(home.config)) as peer:
        wait_for(opened.exists, what="the browser")
        status, page = Browser().log_in(opened.read_text("utf-8"))
        assert status == 200, page
        assert peer.finish() == 0, peer.stderr
        assert f"Opening {issuer.url} in the browser" in peer.stderr


def test_a_device_signs_in_with_a_code(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer
) -> None:
    said = Household(tmp_path, issuer, protected).log_in_by_device()

    assert said["server"] == "search"


def test_a_machine_signs_in_by_itself(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer
) -> None:
    ident, secret = MACHINE
    auth = {
        "type": "oauth",
        "grant": "client_credentials",
        "client_id": ident,
        "client_secret_env": "MACHINE_SECRET",
        "issuer": issuer.url,
    }
    home = Household(tmp_path, issuer, protected, auth=auth)
    home.env["MACHINE_SECRET"] = secret

    done = home.run("login", "search", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["server"] == "search"


def test_a_user_who_refuses_is_not_signed_in(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer
) -> None:
    home = Household(tmp_path, issuer, protected)
    issuer.configure(consent=False)
    try:
        with home.command("login", "search", "-c", str(home.config), "--no-browser") as peer:
            link = wait_for(lambda: re.search(r"http://\S+/auth\?\S+", peer.stderr))[0]
            # The name may come from a repository, so the user must see which server has it.
            assert (
                f"Signing in to search at {protected.endpoint.removesuffix('/mcp')}" in peer.stderr
            )
            status, page = Browser().log_in(link)
            assert status == 400
            assert "The sign-in failed" in page
            assert peer.finish() == 2
            assert "Error: " in peer.stderr
    finally:
        issuer.configure(consent=True)
    assert json.loads(home.run("status", "--json").stdout)["logins"] == []


def test_nobody_waits_for_ever(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer
) -> None:
    home = Household(tmp_path, issuer, protected)

    done = home.run("login", "search", "--no-browser", "--timeout", "1s")

    assert done.returncode == 2
    assert "nobody signed in within the time" in done.stderr


def test_mistakes_are_named(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer
) -> None:
    home = Household(tmp_path, issuer, protected)

    assert "no remote server 'serach'" in home.run("login", "serach").stderr
    assert "--timeout" in home.run("login", "search", "--timeout", "soon").stderr
