"""The key that encrypts tokens."""

import base64
import sys
from pathlib import Path

import pytest
from keyring.backend import KeyringBackend
from keyring.backends import fail, null
from keyring.errors import KeyringLocked

from thoughtgate.errors import LoginError
from thoughtgate.upstream.oauth.token_keys import cipher_of, load_cipher

ONE, TWO = (base64.urlsafe_b64encode(byte * 32).decode() for byte in (b"1", b"2"))


class MemoryKeyring(KeyringBackend):
    """A keyring of the system, in memory."""

    priority = 5.0

    def __init__(self, *, forgets: bool = False, fails: Exception | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.kept: dict[tuple[str, str], str] = {}
        self.forgets = forgets
        self.fails = fails

    def get_password(self, service: str, username: str) -> str | None:
        if self.fails is not None:
            raise self.fails
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if not self.forgets:
            self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class PlainFile(MemoryKeyring):
    """A backend that keeps everything in a plain file."""

    priority = 0.5


def _use(monkeypatch: pytest.MonkeyPatch, *keyrings: KeyringBackend) -> None:
    monkeypatch.setattr("keyring.backend.get_all_keyring", lambda: list(keyrings))


def test_the_key_is_in_the_variable_that_the_config_names() -> None:
    sealed = load_cipher({"KEYS": f" {ONE} "}, "KEYS").encrypt(b"text")

    assert b"text" not in sealed
    assert load_cipher({"KEYS": f"{TWO},{ONE}"}, "KEYS").decrypt(sealed) == b"text"
    with pytest.raises(ValueError, match="no key fits"):
        load_cipher({"KEYS": TWO}, "KEYS").decrypt(sealed)


@pytest.mark.parametrize("environ", [{}, {"KEYS": " "}])
def test_a_variable_that_is_not_set_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(LoginError, match=r"KEYS \(keys\.tokens_env\) is not set.*openssl"):
        load_cipher(environ, "KEYS")


@pytest.mark.parametrize("text", ["short", ",", f"{ONE},secret", ",".join([ONE] * 17)])
def test_what_is_not_a_key_is_refused_and_not_shown(text: str) -> None:
    with pytest.raises(LoginError, match="1 to 16 keys") as refused:
        cipher_of(text, "the variable KEYS")
    assert "secret" not in str(refused.value)
    assert ONE not in str(refused.value)


def test_the_keyring_keeps_a_key_that_is_created_once(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = MemoryKeyring()
    _use(monkeypatch, PlainFile(), backend)
    sealed = load_cipher({}).encrypt(b"text")

    assert load_cipher({}).decrypt(sealed) == b"text"
    assert len(backend.kept) == 1


@pytest.mark.parametrize(
    "broken",
    [
        MemoryKeyring(forgets=True),
        MemoryKeyring(fails=KeyringLocked("secret")),
        MemoryKeyring(fails=RuntimeError("secret")),
        PlainFile(),
        fail.Keyring(),  # type: ignore[no-untyped-call]
        null.Keyring(),  # type: ignore[no-untyped-call]
    ],
)
def test_without_a_keyring_there_is_no_fallback(
    monkeypatch: pytest.MonkeyPatch, broken: KeyringBackend
) -> None:
    _use(monkeypatch, broken)

    with pytest.raises(LoginError, match="keyring") as refused:
        load_cipher({})
    assert "secret" not in str(refused.value)


def test_no_variable_and_no_file_chooses_the_keyring(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "python_keyring").mkdir()
    chosen = "[backend]\ndefault-keyring=evil.Keyring\nkeyring-path=/evil\n"
    (tmp_path / "python_keyring" / "keyringrc.cfg").write_text(chosen)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "evil.Keyring")
    _use(monkeypatch, MemoryKeyring())

    assert load_cipher({}).encrypt(b"text")
    assert "/evil" not in sys.path
