"""The shared file: private, versioned, and safe to open from everywhere."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from thoughtgate.errors import StoreError
from thoughtgate.stores.database import next_rev
from thoughtgate.stores.engines.schema import MIGRATIONS
from thoughtgate.stores.engines.sqlite import FILE_NAME, open_sqlite


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_file_and_its_directory_are_private(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "state"
    previous = os.umask(0)
    try:
        database = open_sqlite(directory)
    finally:
        os.umask(previous)
    with database.write() as connection:
        next_rev(connection)
    assert mode(directory) == 0o700
    for file in directory.iterdir():
        assert mode(file) == 0o600, file
    assert {file.name for file in directory.iterdir()} >= {FILE_NAME, f"{FILE_NAME}-wal"}
    database.close()


def test_loose_modes_are_tightened(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / FILE_NAME).touch(0o644)
    (tmp_path / FILE_NAME).chmod(0o644)
    open_sqlite(tmp_path).close()
    assert mode(tmp_path) == 0o700
    assert mode(tmp_path / FILE_NAME) == 0o600


def test_a_link_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / FILE_NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=FILE_NAME):
        open_sqlite(tmp_path)


def test_a_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(StoreError, match="another user"):
        open_sqlite(tmp_path)


def test_a_place_that_cannot_be_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError):
        open_sqlite(tmp_path / "file")


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"not a database, and long enough to tell" * 100)
    with pytest.raises(StoreError, match=FILE_NAME):
        open_sqlite(tmp_path)


def test_a_later_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    open_sqlite(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    connection.close()
    with pytest.raises(StoreError, match="later version"):
        open_sqlite(tmp_path)


def test_several_threads_may_make_the_file_at_once(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            open_sqlite(tmp_path).close()
        except StoreError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert failures == []


def test_a_failed_transaction_leaves_nothing(tmp_path: Path) -> None:
    database = open_sqlite(tmp_path)

    def fail() -> None:
        with database.write() as connection:
            next_rev(connection)
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert database.read("SELECT value FROM counter") == [(0,)]
    with database.write(through_power_loss=True) as connection:
        assert next_rev(connection) == 1
    assert database.read("PRAGMA synchronous") == [(1,)]
    database.close()


def test_a_writer_that_holds_the_file_too_long_is_an_error_and_not_a_wait(tmp_path: Path) -> None:
    one, other = open_sqlite(tmp_path), open_sqlite(tmp_path, busy_ms=10)
    with one.write(), pytest.raises(StoreError, match="locked"), other.write():
        pass
    with other.write() as connection:
        assert next_rev(connection) == 1
    one.close()
    other.close()


def test_a_change_by_anybody_changes_the_state(tmp_path: Path) -> None:
    one, other = open_sqlite(tmp_path), open_sqlite(tmp_path)
    before = one.state()
    assert one.state() == before
    with other.write() as connection:
        next_rev(connection)
    after = one.state()
    assert after != before
    with one.write() as connection:
        next_rev(connection)
    assert one.state() != after
    one.close()
    other.close()


def test_a_closed_database_is_an_error(tmp_path: Path) -> None:
    database = open_sqlite(tmp_path)
    database.close()
    with pytest.raises(StoreError):
        database.read("SELECT 1")


_READER = """
import sys
from pathlib import Path
from thoughtgate.stores.engines.sqlite import open_sqlite
database = open_sqlite(Path(sys.argv[1]))
print(database.read("SELECT value FROM counter")[0][0])
database.close()
"""


def test_a_second_connection_of_a_process_does_not_cost_it_its_locks(tmp_path: Path) -> None:
    def read_elsewhere() -> int:
        done = subprocess.run(
            [sys.executable, "-c", _READER, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        return int(done.stdout)

    first, second = open_sqlite(tmp_path), open_sqlite(tmp_path)
    for expected in (1, 2):
        with first.write() as connection:
            next_rev(connection)
        # Another process that believes itself alone takes the log away when it leaves.
        assert read_elsewhere() == expected
    second.close()
    first.close()


def test_whoever_opens_a_new_file_waits_for_the_one_that_is_setting_it_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    (tmp_path / FILE_NAME).chmod(0o600)
    other.execute("BEGIN IMMEDIATE")
    waited: list[float] = []

    def let_go(seconds: float) -> None:
        waited.append(seconds)
        other.execute("COMMIT")

    monkeypatch.setattr("thoughtgate.stores.engines.sqlite.time.sleep", let_go)
    open_sqlite(tmp_path).close()
    other.close()
    assert len(waited) == 1
