"""The lines of one call are found by time, in a record of any size."""

from pathlib import Path

import pytest
from tests.support.audit_cli import sample_events
from tests.support.consoles import write_events
from tests.support.records import T0, call

from thoughtgate.core.record_events import Record
from thoughtgate.errors import StoreError
from thoughtgate.record.call_lines import find_call_lines
from thoughtgate.record.reader import read_record


def row(ident: str, *times: float) -> dict[str, object]:
    return {"call_id": ident, **{f"{number}_at": at for number, at in enumerate(times)}}


@pytest.mark.parametrize("wanted", [0, 1, 1500, 2998, 2999])
def test_the_same_lines_are_found_as_by_reading_everything(tmp_path: Path, wanted: int) -> None:
    events: list[Record] = []
    for number in range(3000):
        events += call(number)
    path = write_events(tmp_path, *events)
    assert path.stat().st_size > 1024 * 1024
    ident = events[3 * wanted].body["call"]["call_id"]
    found = find_call_lines(path, row(ident, T0 + wanted), 100)

    everything = [
        one for one in read_record(path) if one.event.get("call", {}).get("call_id") == ident
    ]
    assert [one.event for one in found] == [one.event for one in everything]
    assert found


def test_events_that_are_far_apart_are_all_found(tmp_path: Path) -> None:
    path = write_events(tmp_path, *sample_events())
    found = find_call_lines(path, row("run-1.2", T0 + 2, T0 + 7, T0 + 8), 100)

    assert len(found) == 5
    assert len(find_call_lines(path, row("run-1.2", T0 + 2, T0 + 7, T0 + 8), 2)) == 2
    assert find_call_lines(path, row("run-1.2"), 100) == []


def test_a_missing_record_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        find_call_lines(tmp_path / "none.jsonl", row("x", T0), 1)
