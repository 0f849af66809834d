"""Choosing and registering the gate's client."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.support.http_upstream import Reply
from tests.support.small_oauth import SmallOAuth
from tests.support.waiting import run_async

from thoughtgate.config.server_auth import ServerAuth
from thoughtgate.errors import LoginError
from thoughtgate.upstream.oauth.discovery import AuthorizationServer
from thoughtgate.upstream.oauth.fetch import Fetcher
from thoughtgate.upstream.oauth.registration import choose_client, configured_client
from thoughtgate.upstream.oauth.tokens import OAuthClient, TokenSet

REDIRECT = "http://127.0.0.1:7/callback"
DOCUMENT = "https://gate.example/client.json"


def _server(base: str, **fields: Any) -> AuthorizationServer:
    known: dict[str, Any] = {"registration_endpoint": f"{base}/register", "auth_methods": ("none",)}
    return AuthorizationServer(base, f"{base}/authorize", f"{base}/token", **known | fields)


def _choose(
    server: SmallOAuth,
    auth: ServerAuth | None = None,
    known: TokenSet | None = None,
    redirect_uri: str = REDIRECT,
    **fields: Any,
) -> OAuthClient:
    return run_async(
        choose_client(
            Fetcher(server.url),
            _server(server.base, **fields),
            auth,
            {"SECRET": " s "},
            redirect_uri=redirect_uri,
            known=known,
            now=1000.0,
        )
    )


def test_the_client_of_the_config_counts_first() -> None:
    auth = ServerAuth(type="oauth", client_id="me", client_secret_env="SECRET")
    with SmallOAuth() as server:
        client = _choose(server, auth)
    assert client == OAuthClient("me", "s", "client_secret_basic")
    assert configured_client(auth, {}) == OAuthClient("me")
    assert not server.received


def test_a_metadata_document_is_the_client_where_it_is_supported() -> None:
    auth = ServerAuth(type="oauth", client_metadata_url=DOCUMENT)
    with SmallOAuth() as server:
        assert _choose(server, auth, takes_metadata_documents=True) == OAuthClient(DOCUMENT)
        assert _choose(server, auth).client_id == "client-1"


@pytest.mark.parametrize(
    ("redirect", "kind"), [(REDIRECT, "native"), ("https://x.example/", "web")]
)
def test_the_gate_registers_itself(redirect: str, kind: str) -> None:
    with SmallOAuth() as server:
        client = _choose(server, redirect_uri=redirect)
    (wanted,) = server.registered
    assert (client.client_id, client.auth_method) == ("client-1", "none")
    assert wanted["redirect_uris"] == [redirect]
    assert wanted["application_type"] == kind
    assert wanted["grant_types"] == ["authorization_code", "refresh_token"]
    assert wanted["token_endpoint_auth_method"] == "none"


def test_a_known_client_is_used_at_the_same_issuer_with_the_same_redirect() -> None:
    with SmallOAuth() as server:
        client = OAuthClient("old", "s", "client_secret_basic", REDIRECT, 2000.0)
        known = TokenSet("a", server.base, "", f"{server.base}/token", client)
        assert _choose(server, known=known) == client
        others = [
            replace(known, issuer="https://other.example"),
            replace(known, client=replace(client, redirect_uri="http://127.0.0.1:8/callback")),
            replace(known, client=replace(client, secret_expires_at=900.0)),
            replace(known, client=replace(client, redirect_uri="")),
        ]
        for other in others:
            assert _choose(server, known=other).client_id.startswith("client-")


def test_without_registration_the_config_must_have_a_client() -> None:
    with SmallOAuth() as server, pytest.raises(LoginError, match=r"auth\.client_id"):
        _choose(server, registration_endpoint="")


@pytest.mark.parametrize(
    "reply",
    [
        Reply(403),
        Reply(201, b"{}"),
        Reply(201, json.dumps({"client_id": 5}).encode()),
        Reply(201, json.dumps({"client_id": "x" * 5000}).encode()),
        Reply(
            201,
            json.dumps({"client_id": "x", "token_endpoint_auth_method": "tls"}).encode(),
        ),
        Reply(
            201,
            json.dumps(
                {"client_id": "x", "token_endpoint_auth_method": "client_secret_post"}
            ).encode(),
        ),
    ],
)
def test_a_registration_that_cannot_be_used_is_refused(reply: Reply) -> None:
    with SmallOAuth() as server:
        server.script = lambda _: reply
        with pytest.raises(LoginError):
            _choose(server)


def test_a_registered_secret_is_kept_with_its_end() -> None:
    answer = {
        "client_id": "x",
        "client_secret": "s",
        "client_secret_expires_at": 5000,
        "token_endpoint_auth_method": "client_secret_post",
    }
    with SmallOAuth() as server:
        server.script = lambda _: Reply(201, json.dumps(answer).encode())
        client = _choose(server, auth_methods=("client_secret_post",))
    assert client == OAuthClient("x", "s", "client_secret_post", REDIRECT, 5000.0)
