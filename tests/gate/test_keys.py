"""The key of the seals: made once, private, and a passing one where it cannot be kept."""

import os
import stat
from pathlib import Path

from thoughtgate.gate.keys import KEY_FILE, load_key


def test_the_key_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    key = load_key(str(tmp_path))
    assert len(key) == 32
    assert load_key(str(tmp_path)) == key
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == [KEY_FILE]  # noqa: PTH208  names are enough
    assert len(load_key(str(tmp_path / "missing"))) == 32
