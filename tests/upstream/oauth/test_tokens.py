"""The values of a sign-in."""

import pytest

from thoughtgate.upstream.oauth.tokens import (
    MAX_SCOPES,
    OAuthClient,
    TokenSet,
    expiry,
    scopes_in,
)

TOKENS = TokenSet(
    "secret-access",
    "https://issuer.example",
    "https://mcp.example/mcp",
    "https://issuer.example/token",
    OAuthClient("me", "secret-client", "client_secret_basic"),
    "secret-refresh",
    1000.0,
    ("read",),
)


def test_tokens_survive_storing() -> None:
    assert TokenSet.from_json(TOKENS.to_json()) == TOKENS


@pytest.mark.parametrize("text", [b"[]", b"{}", b'{"client": 3}', b"nothing", b'{"client": {}}'])
def test_what_is_not_a_token_set_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        TokenSet.from_json(text)


def test_no_representation_shows_a_secret() -> None:
    assert "secret-" not in repr(TOKENS)


def test_a_refresh_replaces_what_the_answer_has() -> None:
    renewed = TOKENS.renewed(
        {"access_token": "a", "refresh_token": "r", "expires_in": 60, "scope": "x y"}, 500.0
    )

    assert (renewed.access_token, renewed.refresh_token) == ("a", "r")
    assert (renewed.expires_at, renewed.scopes) == (560.0, ("x", "y"))


def test_a_refresh_without_rotation_keeps_the_refresh_token_and_the_scopes() -> None:
    renewed = TOKENS.renewed({"access_token": "a"}, 500.0)

    assert (renewed.refresh_token, renewed.scopes) == ("secret-refresh", ("read",))
    assert renewed.expires_at == 0


@pytest.mark.parametrize(
    ("lasts", "expected"),
    [
        (60, 160.0),
        ("60", 160.0),
        (None, 0),
        (0, 0),
        (-1, 0),
        ("soon", 0),
        ("nan", 0),
        (10**300, 100.0 + 366 * 86_400),
    ],
)
def test_an_expiry_is_bounded(lasts: object, expected: float) -> None:
    assert expiry({"expires_in": lasts}, 100.0) == expected


def test_scopes_are_a_list_of_words() -> None:
    assert scopes_in({"scope": "a b"}) == ("a", "b")
    assert scopes_in({"scope": ["a"]}) == ()


def test_only_what_can_be_a_scope_is_kept_of_an_answer() -> None:
    said = "read \x1b[31m a\x00b \u202ex tools:write " + "y" * 300

    assert scopes_in({"scope": said}) == ("read", "tools:write")
    assert len(scopes_in({"scope": "a " * 100_000})) <= MAX_SCOPES
