"""Variables of installed entries, in private files."""

from pathlib import Path

import pytest

from thoughtgate.gate.installs.entry_variables import entry_path, read_entry, write_entry

KEY = "0123456789abcdef"


def test_what_is_written_is_read_and_private(tmp_path: Path) -> None:
    write_entry(str(tmp_path), KEY, {"env": {"HOME": "/x"}})

    assert read_entry(str(tmp_path), KEY) == {"env": {"HOME": "/x"}}
    assert Path(entry_path(str(tmp_path), KEY)).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("key", ["../../secret", "", "0123456789ABCDEF", KEY + "0", f"{KEY}\n"])
def test_a_key_cannot_name_another_file(tmp_path: Path, key: str) -> None:
    assert "is not the key" in read_entry(str(tmp_path), key)["problem"]


def test_a_missing_damaged_or_readable_file_keeps_the_server_from_starting(tmp_path: Path) -> None:
    assert "run thoughtgate install again" in read_entry(str(tmp_path), KEY)["problem"]
    write_entry(str(tmp_path), KEY, {"env": {}})
    path = Path(entry_path(str(tmp_path), KEY))
    path.chmod(0o644)
    assert "chmod 600" in read_entry(str(tmp_path), KEY)["problem"]
    path.chmod(0o600)
    for text in ("[]", "{", '{"env"'):
        path.write_text(text, "utf-8")
        assert "is damaged" in read_entry(str(tmp_path), KEY)["problem"]
