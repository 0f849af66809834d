"""Finding the authorization server of a server."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.small_oauth import SmallOAuth
from tests.support.waiting import run_async

from thoughtgate.errors import LoginError
from thoughtgate.upstream.oauth.challenge import Challenge
from thoughtgate.upstream.oauth.discovery import Discovery, canonical, discover
from thoughtgate.upstream.oauth.fetch import Fetcher


def _discover(server: SmallOAuth, challenge: Challenge | None = None, **config: Any) -> Discovery:
    return run_async(discover(Fetcher(f"{server.base}/mcp"), challenge, **config))


def test_the_metadata_leads_to_the_endpoints() -> None:
    with SmallOAuth() as server:
        found = _discover(server)

    assert found.resource == f"{server.base}/mcp"
    assert found.scopes == ("read",)
    assert found.server.token_endpoint == f"{server.base}/token"
    assert found.server.has_s256
    assert found.server.sends_issuer
    assert server.received[0].path == "/.well-known/oauth-protected-resource/mcp"


def test_the_challenge_names_the_metadata_and_the_scopes() -> None:
    with SmallOAuth() as server:
        metadata = f"{server.base}/.well-known/oauth-protected-resource/other"
        found = _discover(server, Challenge(metadata, ("write",)))

    assert server.received[0].path == "/.well-known/oauth-protected-resource/other"
    assert found.scopes == ("write",)


def test_the_scopes_of_the_config_count_first() -> None:
    with SmallOAuth() as server:
        assert _discover(server, Challenge("", ("write",)), scopes=("mine",)).scopes == ("mine",)


def test_a_refresh_token_is_asked_for_where_that_needs_a_scope() -> None:
    with SmallOAuth() as server:
        assert server.metadata
        server.metadata["scopes_supported"] = ["read", "offline_access"]
        assert _discover(server).scopes == ("read", "offline_access")


def test_scopes_that_cannot_be_sent_or_shown_are_left_out() -> None:
    with SmallOAuth() as server:
        assert server.resource
        server.resource["scopes_supported"] = ["ok", "a b", "\x1b[31m", "é", "x" * 300, 5, "", "ok"]
        assert _discover(server).scopes == ("ok",)


def _change(key: str, value: Any) -> Callable[[SmallOAuth], None]:
    def change(server: SmallOAuth) -> None:
        for part in (server.resource, server.metadata):
            if part is not None and key in part:
                part[key] = value(server.base) if callable(value) else value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_change("resource", "https://other.example/mcp"), "different resource"),
        (_change("resource", lambda base: f"{base}/other"), "different resource"),
        (_change("resource", lambda base: f"{base}/mc"), "different resource"),
        (_change("resource", lambda base: f"{base}/mcp/deeper"), "different resource"),
        (_change("resource", None), "different resource"),
        (_change("resource", "\r\n"), "different resource"),
        (_change("issuer", "https://other.example"), "different issuer"),
        (_change("issuer", lambda base: f"{base}/path"), "different issuer"),
        (_change("issuer", 5), "different issuer"),
        (_change("authorization_servers", ["http://issuer.example"]), "not https"),
        (_change("authorization_servers", ["file:///etc/passwd"]), "is wrong"),
        (_change("authorization_servers", lambda base: [f"{base}/?x"]), "has a query"),
        (_change("token_endpoint", "http://issuer.example/token"), "not https"),
        (_change("authorization_endpoint", "javascript:alert(1)"), "is wrong"),
        (_change("registration_endpoint", 5), "registration_endpoint .* is not a URL"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    change: Callable[[SmallOAuth], None], words: str
) -> None:
    with SmallOAuth() as server:
        change(server)
        with pytest.raises(LoginError, match=words):
            _discover(server)


@pytest.mark.parametrize("suffix", ["", "/"])
def test_the_resource_may_be_a_path_above_the_endpoint(suffix: str) -> None:
    with SmallOAuth() as server:
        assert server.resource
        server.resource["resource"] = server.base + suffix
        assert _discover(server).resource == server.base + suffix


def test_a_final_slash_of_an_issuer_makes_no_difference() -> None:
    with SmallOAuth() as server:
        assert server.resource
        server.resource["authorization_servers"] = [f"{server.base}/"]
        assert _discover(server).server.issuer == server.base


def test_the_metadata_of_an_issuer_with_a_path_has_three_places() -> None:
    with SmallOAuth() as server:
        assert server.resource
        server.resource["authorization_servers"] = [f"{server.base}/tenant"]
        with pytest.raises(LoginError, match="has no metadata"):
            _discover(server)

    assert [one.path for one in server.received][1:] == [
        "/.well-known/oauth-authorization-server/tenant",
        "/.well-known/openid-configuration/tenant",
        "/tenant/.well-known/openid-configuration",
    ]


def test_a_server_of_the_first_revision_is_its_own_authorization_server() -> None:
    with SmallOAuth() as server:
        server.resource = None
        found = _discover(server)
        server.metadata = None
        guessed = _discover(server)

    assert (found.server.issuer, found.resource) == (server.base, "")
    assert guessed.server.authorization_endpoint == f"{server.base}/authorize"
    assert guessed.server.token_endpoint == f"{server.base}/token"


def test_the_issuer_of_the_config_must_be_one_of_the_servers() -> None:
    with SmallOAuth() as server:
        assert _discover(server, issuer=server.base).server.issuer == server.base
        with pytest.raises(LoginError, match=r"auth\.issuer"):
            _discover(server, issuer="https://other.example")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://MCP.example/a/?key=secret", "https://mcp.example/a"),
        ("https://mcp.example", "https://mcp.example"),
        ("https://mcp.example:8443/A", "https://mcp.example:8443/A"),
    ],
)
def test_a_server_is_identified_by_its_url(url: str, expected: str) -> None:
    assert canonical(url) == expected
