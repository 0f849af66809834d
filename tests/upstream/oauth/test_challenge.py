"""The challenges of servers."""

import pytest

from thoughtgate.upstream.oauth.challenge import MAX_CHALLENGE, Challenge, read_challenge

METADATA = "https://mcp.example/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Bearer", Challenge()),
        ("bearer realm=x", Challenge()),
        (f'Bearer resource_metadata="{METADATA}"', Challenge(METADATA)),
        (f"Bearer resource_metadata={METADATA}", Challenge(METADATA)),
        (
            'Basic realm="a, Bearer b", Bearer error="insufficient_scope", scope="read write read"',
            Challenge("", ("read", "write"), "insufficient_scope"),
        ),
        ('Bearer error="invalid_token", Basic realm="x"', Challenge(error="invalid_token")),
        ('Bearer error="a\\"b"', Challenge(error='a"b')),
        ('Basic realm="x"', None),
        ("", None),
        ('"', None),
    ],
)
def test_the_bearer_challenge_is_read(value: str, expected: Challenge | None) -> None:
    assert read_challenge([(b"www-authenticate", value.encode())]) == expected


def test_the_first_header_with_a_bearer_challenge_counts() -> None:
    headers = [
        (b"server", b"Bearer"),
        (b"www-authenticate", b"Basic"),
        (b"www-authenticate", b'Bearer scope="one"'),
        (b"www-authenticate", b'Bearer scope="two"'),
    ]

    assert read_challenge(headers) == Challenge("", ("one",))


def test_a_huge_header_is_not_read() -> None:
    assert read_challenge([(b"www-authenticate", b"Bearer" + b" " * MAX_CHALLENGE)]) is None


@pytest.mark.parametrize("part", ['a="', "a=b,", " ,", "a ", '\\"', "a=\\"])
def test_reading_is_linear(part: str) -> None:
    value = ("Basic " + part * MAX_CHALLENGE)[:MAX_CHALLENGE]

    assert read_challenge([(b"www-authenticate", value.encode())] * 50) is None


def test_a_challenge_tells_whether_scopes_are_missing() -> None:
    assert Challenge(error="insufficient_scope").wants_more_scopes
    assert not Challenge(error="invalid_token").wants_more_scopes
