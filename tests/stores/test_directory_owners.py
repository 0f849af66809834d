"""Whom root trusts with the path of the state directory."""

import os
from pathlib import Path

import pytest

from thoughtgate.errors import StoreError
from thoughtgate.gate.state_directory import ensure_directory
from thoughtgate.stores.open_database import StoreLocation, open_database


def open_state(directory: str) -> str:
    """Open the store in a directory."""
    open_database(StoreLocation(Path(directory))).close()
    return directory


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("linked", ["link/thoughtgate", "owned/link", "owned/thoughtgate"])
def test_root_follows_no_path_that_another_user_chose(tmp_path: Path, linked: str) -> None:
    target = tmp_path / "of-root"
    target.mkdir(mode=0o755)
    (tmp_path / "owned").mkdir()
    for link in (tmp_path / "link", tmp_path / "owned" / "link"):
        link.symlink_to(target)
        os.chown(link, 65534, 65534, follow_symlinks=False)
    os.chown(tmp_path / "owned", 65534, 65534)

    for use in (ensure_directory, open_state):
        with pytest.raises(StoreError, match="belongs to another user; run this as that user"):
            use(str(tmp_path / linked))
    assert target.stat().st_mode & 0o777 == 0o755
    assert list(target.iterdir()) == []
    mine = tmp_path / "mine"
    mine.symlink_to(target)
    assert ensure_directory(str(mine / "thoughtgate"))
