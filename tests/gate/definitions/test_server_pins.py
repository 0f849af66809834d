"""The definitions of one server, compared with the store."""

from tests.stores.test_pins import KEY, pin

from thoughtgate.gate.definitions.server_pins import ServerPins
from thoughtgate.stores.pins import ACCEPTED


def test_what_the_server_says_now_counts() -> None:
    found = ServerPins(KEY)
    old, new = pin("read", "one", ACCEPTED), pin("read", "two")
    found.load([old, new])
    found.seen = {("tool", "read"): new.digest}
    assert found.doubted() == [new]
    doubt = found.standing()["tool", "read"]
    assert doubt is not None
    assert doubt.note.startswith("the definition changed (mild): a text has other words")
    assert "hidden-characters" in doubt.note
    assert found.facts(new)["changes"] == ["wording"]
    found.seen = {("tool", "read"): old.digest}
    assert found.standing() == {("tool", "read"): None}
    assert found.taken_back() == [("tool", "read")]


def test_what_the_store_no_longer_has_is_listed_again() -> None:
    found = ServerPins(KEY)
    found.seen = {("tool", "read"): "other"}
    assert found.standing() == {}
    assert found.seen == {}


def test_a_held_resource_is_known_before_it_is_listed() -> None:
    found = ServerPins(KEY)
    found.load([pin("file:///x", "one")._replace(kind="resource")])
    assert found.standing()["resource", "file:///x"] is not None
