"""The heads of record files in the store."""

from pathlib import Path

from thoughtgate.stores.engines.sqlite import FILE_NAME, open_sqlite
from thoughtgate.stores.record_heads import (
    RecordHead,
    find_head,
    head_name,
    load_head,
    save_head,
)

HEAD = RecordHead("/state/audit.jsonl", 2, 500, "ab" * 32, "run", "shim", 7)


def test_the_latest_head_of_each_record_is_kept(tmp_path: Path) -> None:
    database = open_sqlite(tmp_path)
    assert load_head(database, HEAD.record) is None
    other = HEAD._replace(record="/state/audit.traffic.jsonl")
    later = HEAD._replace(size=900, seq=9)
    rotated = HEAD._replace(number=3, size=100)
    for head in (HEAD, other, later, HEAD):
        save_head(database, head)
    assert load_head(database, HEAD.record) == later
    assert load_head(database, other.record) == other
    save_head(database, rotated)
    save_head(database, later)
    assert load_head(database, HEAD.record) == rotated
    save_head(database, HEAD, replace=True)
    assert load_head(database, HEAD.record) == HEAD
    database.close()


def test_a_head_is_found_by_the_path_of_its_record(tmp_path: Path) -> None:
    record = tmp_path / "audit.jsonl"
    assert find_head(tmp_path, record) is None
    database = open_sqlite(tmp_path)
    save_head(database, HEAD._replace(record=head_name(record)))
    database.close()
    assert find_head(tmp_path, tmp_path / "x" / ".." / "audit.jsonl") is not None
    assert find_head(tmp_path, tmp_path / "other.jsonl") is None


def test_a_store_that_cannot_be_read_knows_no_head(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"not a database" * 100)
    assert find_head(tmp_path, tmp_path / "audit.jsonl") is None
