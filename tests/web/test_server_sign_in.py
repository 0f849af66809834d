"""Signing in to a server from the console, with a real authorization server."""

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.authorization_server import AuthorizationServer, Browser, ProtectedServer
from tests.support.consoles import Client, LocalConsole
from tests.support.logins import KEY, KEY_ENV

SIGN_IN, SIGN_OUT = "/servers/search/sign-in", "/servers/search/sign-out"


@pytest.fixture(scope="module")
def issuer() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as server:
        yield server


@pytest.fixture(scope="module")
def protected(issuer: AuthorizationServer) -> Iterator[ProtectedServer]:
    with ProtectedServer(issuer.url) as server:
        yield server


@pytest.fixture
def console(tmp_path: Path, protected: ProtectedServer) -> Iterator[LocalConsole]:
    config = {
        "schema": 1,
        "default": "forward",
        "servers": {"search": {"url": protected.endpoint}, "near": {"command": "true"}},
        "keys": {"tokens_env": KEY_ENV},
    }
    with LocalConsole(tmp_path, json.dumps(config), **{KEY_ENV: KEY}) as console:
        yield console


@pytest.fixture
def client(console: LocalConsole) -> Client:
    return console.client()


def begin(client: Client) -> str:
    """Press the button; return the link that the page shows."""
    page = client.post(SIGN_IN, {"token": client.get("/servers").token(SIGN_IN)})
    assert page.status == 200, page.text
    found = re.search(r'href="([^"]+/auth\?[^"]+)"', page.text)
    assert found is not None, page.text
    return unescape(found[1])


def come_back(client: Client, link: str) -> str:
    """Consent; return the address to which the page after that leads."""
    parts = urlsplit(Browser().consent(link))
    assert parts.path.startswith("/callback/")
    # The browser sends no cookie with a request that another site leads to.
    page = Client(client.port).get(f"{parts.path}?{parts.query}")
    assert page.status == 200, page.text
    found = re.search(r'content="0; url=([^"]+)"', page.text)
    assert found is not None, page.text
    return unescape(found[1])


def test_a_person_signs_in_and_out(client: Client) -> None:
    assert "near" not in client.get("/servers").text

    done = client.get(come_back(client, begin(client)))

    assert (done.status, done.headers["location"]) == (303, "/servers?signed_in=search")
    page = client.get(done.headers["location"])
    assert "You are signed in to <b>search</b>" in page.text
    assert "renewed by the gate" in page.text

    out = client.post(SIGN_OUT, {"token": page.token(SIGN_OUT)})
    assert (out.status, out.headers["location"]) == (303, "/servers")
    assert SIGN_IN in client.get("/servers").text


def test_another_browser_cannot_finish_a_sign_in(console: LocalConsole, client: Client) -> None:
    target = come_back(client, begin(client))

    assert console.stranger().get(target).status == 401
    assert console.client().get(target).status == 400
    assert client.get(target).status == 303
    assert client.get(target).status == 400


def test_a_forged_form_begins_nothing(console: LocalConsole, client: Client) -> None:
    token = client.get("/servers").token(SIGN_IN)

    assert client.post(SIGN_IN, {"token": "x"}).status == 403
    assert client.post(SIGN_OUT, {"token": token}).status == 403
    assert client.post(SIGN_IN, {"token": token}, {"Origin": "http://evil.example"}).status == 403
    assert console.stranger().post(SIGN_IN, {"token": token}).status == 401


def test_a_refusal_is_shown(client: Client, issuer: AuthorizationServer) -> None:
    issuer.configure(consent=False)
    try:
        page = client.get(come_back(client, begin(client)))
    finally:
        issuer.configure(consent=True)

    assert page.status == 400
    assert "Sign-in to a server" in page.text


def test_what_does_not_exist_cannot_be_signed_in_to(client: Client) -> None:
    assert client.get("/servers/finish?state=x&code=y").status == 400
    assert client.get(f"/callback?{'x' * 20_000}").status in {400, 414, 431}
    assert client.post("/servers/other/sign-in", {"token": "x"}).status == 403
