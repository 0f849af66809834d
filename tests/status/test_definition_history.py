"""What servers said about their tools over time."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from thoughtgate.status.definition_history import DefinitionHistory, was_first_seen
from thoughtgate.stores.open_database import open_database
from thoughtgate.stores.pins import ACCEPTED, FIRST_SEEN, HELD, Pin, PinStore


def pin(name: str, text: str, status: str = ACCEPTED, by: str = FIRST_SEEN) -> Pin:
    return Pin("files#1", "tool", name, f"of {text}", status, text, (), 0.0, by)


@pytest.fixture
def pins(tmp_path: Path) -> Iterator[PinStore]:
    with closing(open_database(tmp_path)) as database:
        store = PinStore(database)
        store.add("files#1", [pin("read", '{"a":"one"}'), pin("drop", "{}")], ("tools/list",), 1.0)
        yield store


def test_a_changed_definition_is_compared_with_the_one_before(pins: PinStore) -> None:
    pins.add(
        "files#1",
        [pin("read", '{"a":"two ghp_0123456789abcdef0123456789abcdef0123"}', HELD, "")],
        (),
        2.0,
    )
    history = DefinitionHistory(pins)

    assert history.tools("files")["tool", "read"].status == HELD
    [found] = history.about("files", "tool", "read")
    assert found.status == HELD
    assert [change.status for change in found.changes] == [HELD, ACCEPTED]
    assert "two" in "".join(found.changes[0].lines)
    assert found.changes[1].lines == []
    assert "ghp_" not in found.text + "".join(found.changes[0].lines)

    pins.decide(pins.waiting(), ACCEPTED, "console:ann", 3.0)
    [found] = history.about("files", "tool", "read")
    assert (found.status, found.changes[0].by) == (ACCEPTED, "console:ann")


def test_recent_definitions_are_those_of_a_server_since_a_time(pins: PinStore) -> None:
    history = DefinitionHistory(pins)
    pins.add("mail#2", [pin("send", "{}")._replace(server="mail#2")], (), 5.0)

    assert [one.name for one in history.recent(0.0)] == ["send", "drop", "read"]
    assert [one.name for one in history.recent(4.0)] == ["send"]
    assert [one.name for one in history.recent(0.0, "files")] == ["drop", "read"]
    assert all(was_first_seen(one) for one in history.recent(0.0))
    assert history.names() == ["files", "mail"]
    assert history.about("files", "tool", "absent") == []
