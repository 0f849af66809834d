"""Signing in and out."""

from urllib.parse import urlsplit

from tests.support.consoles import Client, LocalConsole


def test_the_link_signs_one_browser_in_once(console: LocalConsole) -> None:
    path = urlsplit(console.console.new_link()).path
    first, second = console.stranger(), console.stranger()

    answer = first.get(path)
    assert answer.status == 200
    assert 'http-equiv="refresh"' in answer.text
    assert first.get("/").status == 200

    assert second.get(path).status == 401
    assert second.get("/").status == 401
    assert ("unknown, used or expired sign-in link", "/login/") in console.refusals


def test_the_cookie_is_kept_from_scripts_and_other_sites(console: LocalConsole) -> None:
    answer = console.stranger().get(urlsplit(console.console.new_link()).path)
    cookie = answer.headers["set-cookie"].lower()

    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert f"thoughtgate_{console.console.port}=" in cookie


def test_the_link_works_when_another_page_shows_it(console: LocalConsole) -> None:
    """A strict cookie is not sent along with what another site began, so there is no redirect."""
    path = urlsplit(console.console.new_link()).path
    answer = console.stranger().get(path, {"Sec-Fetch-Site": "cross-site"})

    assert answer.status == 200
    assert "location" not in answer.headers


def test_a_wrong_code_is_refused_and_recorded(console: LocalConsole) -> None:
    answer = console.stranger().get("/login/guess")

    assert answer.status == 401
    assert "set-cookie" not in answer.headers
    assert ("unknown, used or expired sign-in link", "/login/") in console.refusals


def test_the_code_is_not_on_record(console: LocalConsole) -> None:
    console.stranger().get("/login/nearly-right-secret")

    assert "nearly-right" not in str(console.refusals)


def test_signing_out_ends_the_session_on_the_server_too(client: Client) -> None:
    cookie = client.cookie
    token = client.get("/").token("/logout")
    answer = client.post("/logout", {"token": token})

    assert answer.status == 303
    client.cookie = cookie
    assert client.get("/").status == 401


def test_nobody_is_signed_out_by_another_page(client: Client) -> None:
    assert client.post("/logout", {"token": "made up"}).status == 403
    assert client.get("/").status == 200
