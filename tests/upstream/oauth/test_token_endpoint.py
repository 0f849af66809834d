"""Requests to the token endpoint."""

import base64
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from tests.support.http_upstream import Reply
from tests.support.small_oauth import SmallOAuth
from tests.support.waiting import run_async

from thoughtgate.errors import LoginError
from thoughtgate.upstream.oauth.fetch import Fetcher
from thoughtgate.upstream.oauth.token_endpoint import (
    MAX_TOKEN,
    RefusedGrant,
    choose_auth_method,
    grant_tokens,
    refresh,
    revoke,
)
from thoughtgate.upstream.oauth.tokens import OAuthClient, TokenSet


def _grant(server: SmallOAuth, client: OAuthClient) -> Any:
    fields = {"grant_type": "client_credentials", "scope": "read"}
    fetch = Fetcher(f"{server.base}/mcp")
    return run_async(grant_tokens(fetch, f"{server.base}/token", client, server.base, fields))


def test_a_public_client_says_its_id() -> None:
    with SmallOAuth() as server:
        assert _grant(server, OAuthClient("me"))["access_token"]
    assert server.forms[0]["client_id"] == "me"
    assert server.clients == [("", "")]


def test_the_parts_of_basic_authentication_are_encoded() -> None:
    with SmallOAuth() as server:
        _grant(server, OAuthClient("a:é", "s %+:", "client_secret_basic"))
    assert server.clients == [("a:é", "s %+:")]


def test_a_secret_may_be_in_the_form() -> None:
    with SmallOAuth() as server:
        _grant(server, OAuthClient("me", "s&=", "client_secret_post"))
    assert (server.forms[0]["client_id"], server.forms[0]["client_secret"]) == ("me", "s&=")


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (rsa.generate_private_key(65537, 2048), "RS256"),
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
    ],
)
def test_a_private_key_signs_an_assertion(key: Any, algorithm: str) -> None:
    pem = _pem(key)
    method = choose_auth_method(pem, ())
    with SmallOAuth() as server:
        _grant(server, OAuthClient("me", pem, method))
    head, claims, _ = (_part(one) for one in server.forms[0]["client_assertion"].split("."))
    assert head["alg"] == algorithm
    assert (claims["iss"], claims["sub"], claims["aud"]) == ("me", "me", server.base)
    assert pem not in str(server.forms)


def _pem(key: Any) -> str:
    return str(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()
    )


def _part(text: str) -> Any:
    try:
        return json.loads(base64.urlsafe_b64decode(text + "=="))
    except ValueError:
        return {}


@pytest.mark.parametrize(
    "pem",
    [
        "-----BEGIN secret",
        _pem(ed25519.Ed25519PrivateKey.generate()),
        _pem(ec.generate_private_key(ec.SECP384R1())),
    ],
)
def test_a_key_that_cannot_be_used_is_named_and_not_shown(pem: str) -> None:
    client = OAuthClient("me", pem, "private_key_jwt")
    with SmallOAuth() as server, pytest.raises(LoginError, match="client_secret_env") as failed:
        _grant(server, client)
    assert "BEGIN" not in str(failed.value)


@pytest.mark.parametrize(
    ("secret", "offered", "expected"),
    [
        ("", ("client_secret_basic",), "none"),
        ("s", (), "client_secret_basic"),
        ("s", ("client_secret_post", "client_secret_basic"), "client_secret_basic"),
        ("s", ("client_secret_post", "none"), "client_secret_post"),
        ("-----BEGIN PRIVATE KEY-----", (), "private_key_jwt"),
    ],
)
def test_the_method_fits_the_secret(secret: str, offered: tuple[str, ...], expected: str) -> None:
    assert choose_auth_method(secret, offered) == expected


def _reply(value: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(value).encode())


@pytest.mark.parametrize(
    "reply",
    [
        _reply({}),
        _reply({"access_token": 5}),
        _reply({"access_token": ""}),
        _reply({"access_token": "a\r\nx: y"}),
        _reply({"access_token": "x" * (MAX_TOKEN + 1)}),
        _reply({"access_token": "a", "token_type": "dpop"}),
        _reply({"access_token": "a", "refresh_token": ["r"]}),
        _reply({"error": "server_error"}, 500),
        _reply({"error": "slow"}, 429),
        Reply(302, headers={"location": "https://elsewhere.example"}),
    ],
)
def test_an_answer_without_a_usable_token_is_refused(reply: Reply) -> None:
    with SmallOAuth() as server:
        server.token_reply = reply
        with pytest.raises(LoginError) as failed:
            _grant(server, OAuthClient("me"))
    assert not isinstance(failed.value, RefusedGrant)


def test_a_refused_grant_is_told_apart() -> None:
    with SmallOAuth() as server:
        server.token_reply = _reply({"error": "invalid_grant", "error_description": "secret"}, 400)
        with pytest.raises(RefusedGrant, match=r"\(invalid_grant\)") as failed:
            _grant(server, OAuthClient("me"))
    assert failed.value.code == "invalid_grant"
    assert "secret" not in str(failed.value)


def _tokens(server: SmallOAuth, **fields: Any) -> TokenSet:
    server.refresh_tokens["r0"] = "read"
    endpoint = f"{server.base}/token"
    known: dict[str, Any] = {"refresh_token": "r0", "revocation_endpoint": f"{server.base}/revoke"}
    return TokenSet(
        "a0", server.base, f"{server.base}/mcp", endpoint, OAuthClient("me"), **known | fields
    )


def test_a_refresh_names_the_resource_and_takes_the_rotated_token() -> None:
    with SmallOAuth() as server:
        tokens = _tokens(server)
        renewed = run_async(refresh(Fetcher(server.url), tokens, tokens.client, 100.0))
    assert server.forms[0]["resource"] == f"{server.base}/mcp"
    assert renewed.refresh_token in server.refresh_tokens
    assert renewed.expires_at == 3700


def test_both_tokens_are_revoked() -> None:
    with SmallOAuth() as server:
        tokens = _tokens(server)
        assert run_async(revoke(Fetcher(server.url), tokens, tokens.client))
    assert server.revoked == ["r0", "a0"]


def test_a_revocation_may_be_impossible() -> None:
    with SmallOAuth() as server:
        without = _tokens(server, revocation_endpoint="")
        away = _tokens(server, revocation_endpoint="http://127.0.0.1:1/revoke")
        for tokens in (without, away):
            assert not run_async(revoke(Fetcher(server.url), tokens, tokens.client))
