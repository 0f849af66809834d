"""Secrets in text."""

import base64
import random
import string
import zlib

import pytest

from thoughtgate.policy.inspection.inspect import inspect_arguments, inspect_result
from thoughtgate.policy.inspection.secret_values import (
    entropy,
    has_github_checksum,
    is_secret_name,
    judge_member,
    judge_value,
)

CHANCE = random.Random(16)
LETTERS = string.ascii_letters + string.digits


def made(size: int, alphabet: str = LETTERS) -> str:
    return "".join(CHANCE.choice(alphabet) for _ in range(size))


def github_token() -> str:
    body, digits = made(30), ""
    number = zlib.crc32(body.encode())
    alphabet = string.digits + string.ascii_uppercase + string.ascii_lowercase
    while number:
        number, rest = divmod(number, 62)
        digits = alphabet[rest] + digits
    return f"ghp_{body}{digits.rjust(6, '0')}"


def found(text: str) -> dict[str, str]:
    return {one.check: one.tier for one in inspect_result({"text": text})}


def test_a_github_token_is_known_by_its_checksum() -> None:
    token = github_token()
    assert has_github_checksum(token)
    assert found(f"x {token} y")["secret-token"] == "hard"
    assert found(f"x ghp_{made(36)} y")["secret-token"] == "soft"


HEADER = base64.urlsafe_b64encode(b'{"alg":"HS256"}').decode().rstrip("=")
JWT = f"{HEADER}.eyJhIjoxfQ.{made(43)}"
PEM = f"-----BEGIN PRIVATE KEY-----\n{made(64)}\n{made(64)}\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("AKIA" + made(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"), "secret-token"),
        ("glpat-" + made(20), "secret-token"),
        ("sk_live_" + made(24), "secret-token"),
        ("sk-ant-api03-" + made(60), "secret-token"),
        ("AIza" + made(35), "secret-token"),
        (JWT, "secret-token"),
        (PEM, "secret-key"),
        ("PuTTY-User-Key-File-3: ssh-ed25519 private key", "secret-key"),
        (f"postgres://app:{made(12)}@db.internal/x", "secret-url"),
        (f"DB_PASSWORD={made(20)}7a", "secret-value"),
        (f"Authorization: Bearer {made(40)}7a", "secret-value"),
        ("Authorization: Basic " + base64.b64encode(b"ann:S3cret!77").decode(), "secret-value"),
        (f"tool --token {made(30)}7a", "secret-value"),
        (f"1234567890:AA{made(33)}", "secret-token"),
    ],
)
def test_a_secret_is_hard(text: str, check: str) -> None:
    hard = {one: tier for one, tier in found(text).items() if tier == "hard"}
    assert check in hard or (check == "secret-key" and check in found(text))


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_" + "x" * 36,
        "password = getpass()",
        "password: ${DB_PASSWORD}",
        "token = os.environ['TOKEN']",
        "API_KEY=your-api-key-here",
        "postgres://user:password@localhost/db",
        "postgres://app:${PASSWORD}@db/x",
        "next_token=" + made(40),
        "max_tokens: 4096",
        "task-" + made(40),
        "eyJhIjoxfQ is a cursor",
        "eyJhbGciOiJub25lIn",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PUBLIC KEY-----\n" + made(64) + "\n-----END PUBLIC KEY-----",
        "Basic information about cats",
        "the private key is safe",
        "sk-" + "abcdefghijklmnopqrstuvwxyz",
        "eyJhbGciOiJIUzI1NiIx.eyJhIjoxfQ.abcdef",
        "eyJhIjoxfQ0000.eyJhIjoxfQ.abcdef",
        base64.urlsafe_b64encode(b'{"a":1, "b":22}').decode() + ".abcdef.abcdef",
        "-----BEGIN A PRIVATE KEY",
        "postgres://app:secret@db.internal/x",
        "tool --token x",
        "postgres://app:postgres@db.internal/x",
        "tool --token",
        "Authorization: Basic abcdefghijklm",
        "Authorization: Basic " + base64.b64encode(b"user:password").decode(),
    ],
)
def test_examples_and_code_are_no_secrets(text: str) -> None:
    assert not [one for one in found(text) if one.startswith("secret-")]


def test_a_token_that_was_split_is_found() -> None:
    token = "AKIA" + made(10, "ABCDEFGHIJKLMNOP") + "234567"
    assert "secret-token" in found(f"{token[:8]} {token[8:14]} {token[14:]}")


def test_a_member_is_judged_by_its_name() -> None:
    assert is_secret_name("dbPassword")
    assert judge_member("password", "Tr0ub4dor!") == "soft"
    assert judge_member("password", "correct horse battery staple") == "soft"
    assert judge_member("password", "the password of the user, if there is one: see below") == ""
    assert judge_member("page_token", made(40)) == ""
    assert judge_member("api_key", made(30) + "7a") == "hard"
    (finding,) = inspect_arguments({"a": [{"client_secret": made(30) + "7a"}]})
    assert finding.where == "/a/0/client_secret:0-32"


def test_a_value_is_judged_by_its_randomness() -> None:
    assert judge_value("correct-horse", is_password=False) == ""
    assert judge_value("abc123abc123", is_password=False) == ""
    assert judge_value(made(24) + "7a", is_password=False) == "hard"
    assert entropy("") == 0


def test_the_start_of_a_key_is_soft() -> None:
    assert found("-----BEGIN PRIVATE KEY-----\nMIIEvQ\n")["secret-key"] == "soft"


def test_overlapping_names_are_reported_once() -> None:
    found_twice = inspect_result(f"secret token: {made(30)}7a")
    assert [one.check for one in found_twice] == ["secret-value"]
    (last, *_) = inspect_arguments({"password": "Tr0ub4dor!", "b": "x"})
    assert last.where == "/password:0-10"
    assert inspect_arguments({"password": "changeme", "b": "x"}) == ()
