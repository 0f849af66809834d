"""The keys below ``servers.*.auth``."""

from typing import Any

import pytest

from thoughtgate.config.checks import check

URL = "https://mcp.example/mcp"


def _complaints(auth: dict[str, Any]) -> list[str]:
    found = check({"servers": {"one": {"url": URL, "auth": auth}}})
    return [f"{path[-1]}: {words}" for path, words in found]


@pytest.mark.parametrize(
    "auth",
    [
        {"token_env": "T"},
        {"type": "bearer", "token_env": "T"},
        {"type": "oauth"},
        {"type": "oauth", "client_id": "me", "scopes": ["read"]},
        {"type": "oauth", "issuer": "https://issuer.example"},
        {
            "type": "oauth",
            "client_id": "me",
            "client_secret_env": "S",
            "issuer": "https://issuer.example",
        },
        {
            "type": "oauth",
            "grant": "client_credentials",
            "client_id": "me",
            "client_secret_env": "S",
            "issuer": "https://issuer.example",
        },
    ],
)
def test_each_type_has_its_keys(auth: dict[str, Any]) -> None:
    assert _complaints(auth) == []


@pytest.mark.parametrize(
    ("auth", "expected"),
    [
        ({"type": "bearer"}, "token_env: required when type is bearer"),
        ({"token_env": "T", "scopes": ["x"]}, "scopes: has no effect when type is bearer; remove"),
        ({"type": "oauth", "token_env": "T"}, "token_env: has no effect when type is oauth"),
        ({"type": "oauth", "client_secret_env": "S"}, "client_id: required with client_secret_env"),
        (
            {"type": "oauth", "grant": "client_credentials", "client_id": "me"},
            "client_secret_env: required when grant is client_credentials",
        ),
        (
            {"type": "oauth", "client_id": "me", "client_secret_env": "S"},
            "issuer: required with client_secret_env",
        ),
        ({"type": "oauth", "issuer": "http://issuer.example"}, "issuer: must be https://"),
        (
            {"type": "oauth", "client_metadata_url": "ftp://x"},
            "client_metadata_url: must be an http:// or https:// URL",
        ),
    ],
)
def test_keys_that_do_not_fit_are_named(auth: dict[str, Any], expected: str) -> None:
    assert [text for text in _complaints(auth) if text.startswith(expected)]
