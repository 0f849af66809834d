"""The keys of the seals: made once and private, or from a file that only the gate may read."""

import os
import stat
from pathlib import Path

import pytest

from thoughtgate.errors import ConfigError
from thoughtgate.gate.keys import KEY_FILE, KeyPlace, KeyRing, check_keys, load_key, read_keys

CURRENT, PREVIOUS = "0f" * 32, "a7" * 32


def key_file(folder: Path, text: str = f"{CURRENT}\n{PREVIOUS}\n", mode: int = 0o600) -> str:
    path = folder / "session-keys"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_the_key_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    key = load_key(str(tmp_path))
    assert len(key) == 32
    assert load_key(str(tmp_path)) == key
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == [KEY_FILE]  # noqa: PTH208  names are enough
    assert len(load_key(str(tmp_path / "missing"))) == 32


def test_the_first_key_of_a_file_seals_and_every_one_verifies(tmp_path: Path) -> None:
    current, previous = map(bytes.fromhex, (CURRENT, PREVIOUS))
    assert read_keys(key_file(tmp_path, f"{CURRENT}\n\n  {PREVIOUS.upper()}  \n")) == (
        current,
        previous,
    )
    ring = KeyPlace("/nonexistent", key_file(tmp_path)).load()
    old, new = KeyRing([previous]), KeyRing([current])

    assert ring.seal(b"x") == new.seal(b"x")
    assert ring.is_sealed(b"x", old.seal(b"x")[:15])
    assert ring.is_sealed(b"x", new.seal(b"x"))
    assert not new.is_sealed(b"x", old.seal(b"x"))
    assert not ring.is_sealed(b"y", old.seal(b"x"))
    assert not ring.derive("sessions").is_sealed(b"x", ring.seal(b"x"))


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o600, 0o640])
def test_a_mounted_secret_is_read_through_its_links(tmp_path: Path, mode: int) -> None:
    version = tmp_path / "..2026_11_16"
    version.mkdir()
    (tmp_path / "..data").symlink_to(version.name)
    file = Path(key_file(version, mode=mode))
    (tmp_path / file.name).symlink_to(f"..data/{file.name}")

    assert len(read_keys(str(tmp_path / file.name))) == 2


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o660, 0o602, 0o620, 0o444, 0o601])
def test_a_file_that_others_can_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(ConfigError, match=r"keys.file: .*others can read or change it.*chmod"):
        read_keys(key_file(tmp_path, mode=mode))


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = key_file(tmp_path)
    found = os.stat(file)  # noqa: PTH116  the values are changed below
    theirs = os.stat_result((*found[:4], 12_345, *found[5:]))
    monkeypatch.setattr("thoughtgate.gate.keys.os.fstat", lambda _: theirs)

    with pytest.raises(ConfigError, match="belongs to another user"):
        read_keys(file)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "0f" * 31, "0f" * 33, "zz" * 32, f"{CURRENT}\nnot a key", "0f " * 32, CURRENT * 99],
)
def test_a_line_that_is_no_key_is_refused_without_being_shown(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="openssl rand -hex 32") as raised:
        read_keys(key_file(tmp_path, text))
    assert CURRENT not in str(raised.value)


def test_too_many_keys_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="1 to 16 lines"):
        read_keys(key_file(tmp_path, f"{CURRENT}\n" * 17))


def test_a_missing_file_is_named_with_the_command_that_creates_it(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"keys.file: .*/none: No such file.*openssl rand -hex 32"
    ):
        read_keys(str(tmp_path / "none"))


def test_what_is_not_a_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("pipe", "."):
        with pytest.raises(ConfigError, match="not a regular file"):
            read_keys(str(tmp_path / name))


def test_a_shared_store_needs_common_keys(tmp_path: Path) -> None:
    check_keys(KeyPlace(str(tmp_path)), "gate.yaml", is_shared=False)
    check_keys(KeyPlace(str(tmp_path), key_file(tmp_path)), "gate.yaml", is_shared=True)
    with pytest.raises(ConfigError, match=r"keys.file: required.*openssl rand -hex 32"):
        check_keys(KeyPlace(str(tmp_path)), "gate.yaml", is_shared=True)
    with pytest.raises(ConfigError, match="No such file"):
        check_keys(KeyPlace(str(tmp_path), "/nonexistent"), "gate.yaml", is_shared=False)
