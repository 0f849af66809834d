"""Masking: what is hidden, what stays readable, what is never touched."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.policy.redaction import MASK, MAX_NAMES, Redactor
from thoughtgate.wire.canonical import canonical_json

REDACTOR = Redactor()
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abc123def456",
        "sk-proj-abc123def456",
        "ghp_abcdef123456",
        "gho_abcdef123456",
        "github_pat_11ABCDEF_xyz",
        "glpat-abcdefghij12",
        "xoxb-1234567890-abc",
        "AKIAIOSFODNN7EXAMPLE",
        "AIzaSyA1234567890abcdefghij",
        JWT,
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIE",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: A-B,00\n\nMIIE\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQdGB\n-----END PGP PRIVATE KEY BLOCK-----",
        "sk_live_abcdef123456",
        "npm_abcdefghij0123456789abcdef",
        "hf_abcdefghij0123456789",
        "pypi-AgEIcHlwaS5vcmcCJ",
        "xapp-1-ABCDEFGH",
        "ya29.abcdefghij_klm",
        "SG.abcdefghijkl.mnopqrstuv",
    ],
)
def test_a_well_known_token_is_masked_wherever_it_stands(secret: str) -> None:
    masked = REDACTOR.mask_text(f"before {secret} after")
    assert secret not in masked
    assert masked.startswith("before [REDACTED]")
    assert REDACTOR.mask_value({"note": ["x", secret]})["note"] == ["x", MASK]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer abcdef123", "Authorization: Bearer [REDACTED]"),
        ("BASIC dXNlcjpwYXNzd29yZA==", "BASIC [REDACTED]"),
        ("password=hunter2&x=1", "password=[REDACTED]&x=1"),
        ('{"token": "abcdef"}', '{"token": "[REDACTED]"}'),
        ("api_key: abcdef", "api_key: [REDACTED]"),
        ("redis://user:pass@host/0", "redis://user:[REDACTED]@host/0"),
    ],
)
def test_what_stands_before_a_secret_stays_readable(text: str, masked: str) -> None:
    assert REDACTOR.mask_text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "",
        "task-force",
        "a token of thanks",
        "me@example.com",
        "https://example.com/a:b",
        "basic idea",
        "skill",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert REDACTOR.mask_text(text) == text


@pytest.mark.parametrize(
    "name", ["password", "PASSWORD", "api-key", "Authorization", "client_secret"]
)
def test_a_value_whose_name_says_secret_is_masked_whole(name: str) -> None:
    assert REDACTOR.is_secret_name(name)
    assert REDACTOR.mask_value({name: {"a": 1}, "other": 1}) == {name: MASK, "other": 1}


def test_a_null_secret_shows_that_there_is_none() -> None:
    assert REDACTOR.mask_value({"password": None}) == {"password": None}


def test_configured_names_values_and_patterns_are_masked_too() -> None:
    redactor = Redactor(
        names=["PIN"], literals=["hunter2", "abc", "hunter2-long"], patterns=["K-[0-9]+"]
    )
    assert redactor.mask_value({"pin": 1234}) == {"pin": MASK}
    assert redactor.mask_text("hunter2-long hunter2 abc K-12") == f"{MASK} {MASK} abc {MASK}"
    assert redactor.mask_value({"hunter2": 1}) == {MASK: 1}


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=8,
    )
)
def test_masking_makes_a_new_value_and_is_final(value: Any) -> None:
    before = copy.deepcopy(value)
    masked = REDACTOR.mask_value(value)
    assert value == before
    assert REDACTOR.mask_value(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "password='hunter2'",
        "{'password': 'hunter2'}",
        '{"password": "hunter2 hunter2"}',
        '{"password": "a\\"hunter2"}',
        '{\\"password\\": \\"hunter2\\"}',
        "PASSWORD   =   hunter2",
        "aws_secret_access_key = hunter2",
        "AccountKey=hunter2;",
        "login --password hunter2",
        "Authorization: Token hunter2",
        "https://user:p@hunter2@host/",
    ],
)
def test_a_secret_is_masked_however_it_is_written_beside_its_name(text: str) -> None:
    masked = REDACTOR.mask_text(text)
    assert "hunter2" not in masked
    assert MASK in masked


@pytest.mark.parametrize(
    "name",
    ["accessToken", "clientSecret", "privateKey", "db_password", "GITHUB_TOKEN", "X-Auth-Token"],
)
def test_a_name_says_that_it_is_secret_in_any_spelling(name: str) -> None:
    assert REDACTOR.mask_value({"env": [{name: "hunter2"}]}) == {"env": [{name: MASK}]}


@pytest.mark.parametrize("name", ["pageToken", "next_token", "max_tokens", "keyboard", "tokenizer"])
def test_a_name_that_only_sounds_secret_is_shown(name: str) -> None:
    assert REDACTOR.mask_value({name: "x"}) == {name: "x"}


def test_the_value_beside_the_name_of_a_secret_is_masked() -> None:
    pairs = [{"name": "Authorization", "value": "x"}, {"name": "Accept", "value": "y"}]
    masked = REDACTOR.mask_value({"headers": pairs})
    assert [pair["value"] for pair in masked["headers"]] == [MASK, "y"]


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=8)
        | st.sampled_from(["ghp_" + "a1B2" * 9, 'se"cret\\value', "Bearer abcdefghijklmnop"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["path", "password", "apiKey", "name", "value", "a"]),
                inner,
                max_size=3,
            )
        ),
        max_leaves=6,
    ).map(lambda value: {"arguments": value})
)
def test_what_looks_clean_at_a_glance_has_nothing_to_mask(value: dict[str, Any]) -> None:
    redactor = Redactor(literals=['se"cret\\value'])

    if redactor.is_clean(value, canonical_json(value)):
        assert redactor.mask_value(value) == value


def test_a_glance_at_plain_arguments_is_enough() -> None:
    value = {"path": "/tmp/a", "options": {"lines": [1, 2]}}

    assert Redactor().is_clean(value, canonical_json(value))
    assert not Redactor(patterns=["x"]).is_clean(value, canonical_json(value))
    assert not Redactor().is_clean({"password": "x"}, '{"password":"x"}')


def test_names_without_end_are_not_remembered_without_end() -> None:
    redactor = Redactor()
    value = {f"argument {number}": 1 for number in range(MAX_NAMES + 1)}

    assert redactor.is_clean(value, "{}")
    assert redactor.is_clean(value, "{}")


def test_a_token_in_the_text_is_worth_a_look() -> None:
    token = "ghp_" + "a1B2" * 9

    assert not Redactor().is_clean({"note": token}, f'{{"note":"{token}"}}')


def test_a_long_name_of_an_argument_is_not_remembered() -> None:
    redactor = Redactor()
    assert redactor.is_clean({"n" * 100_000: 1}, "{}")
    assert not redactor._plain_names


@pytest.mark.parametrize("flag", ["--token", "--api-key", "-password", "--pin", "--db_password"])
def test_the_word_after_a_flag_that_names_a_secret_is_masked(flag: str) -> None:
    redactor = Redactor(names=["pin"])
    value = {"args": ["run", flag, "hunter22", "left", {"x": [flag, 5]}, flag]}

    assert not redactor.is_clean(value, canonical_json(value))
    assert redactor.mask_value(value) == {
        "args": ["run", flag, MASK, "left", {"x": [flag, 5]}, flag]
    }


def test_words_after_other_flags_are_shown() -> None:
    words = ["--verbose", "yes", "token", "shown", "--page-token", "p2"]
    assert Redactor().mask_value(words) == words
