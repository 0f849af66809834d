"""What is known about a request's tool, and how similar requests were answered."""

from pathlib import Path

from tests.support.approvals import a_store
from tests.web.conftest import Gate

from thoughtgate.core.approval import Approval, Vote
from thoughtgate.core.definitions.pinned import Definition
from thoughtgate.status.request_context import find_earlier, find_tool
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.pins import ACCEPTED, FIRST_SEEN, HELD, Pin


def asked(gate: Gate, *args: object) -> Approval:
    found = gate.store.get(gate.hold(*args))  # type: ignore[arg-type]
    assert isinstance(found, Approval)
    return found


def pin(store: ApprovalStore, digest: str, status: str, text: str, server: str = "files#1") -> None:
    by = FIRST_SEEN if status == ACCEPTED else ""
    made = Pin(server, "tool", "delete_file", digest, status, text, (), 0.0, by)
    assert isinstance(made.definition, Definition)
    store.pins().add(server, [made], [], 5.0)


def test_the_definition_of_the_call_is_shown_with_its_status(tmp_path: Path) -> None:
    gate = Gate(a_store(tmp_path))
    request = asked(gate)
    assert find_tool(gate.store, request).status == "unknown"  # type: ignore[union-attr]

    pin(
        gate.store, "d1", ACCEPTED, '{"description":"Deletes","annotations":{"readOnlyHint":false}}'
    )
    found = find_tool(gate.store, request)
    assert found is not None
    assert (found.status, found.description, found.by) == ("pinned", "Deletes", FIRST_SEEN)
    assert found.annotations == (("readOnlyHint", "no"),)


def test_a_changed_and_a_new_definition_are_told_apart(tmp_path: Path) -> None:
    gate = Gate(a_store(tmp_path))
    request = asked(gate)
    pin(gate.store, "d0", ACCEPTED, '{"description":"Deletes one file"}')
    pin(gate.store, "d1", HELD, '{"description":"Deletes every file"}')
    found = find_tool(gate.store, request)
    assert found is not None
    assert found.status == "changed"
    assert any("every" in line for line in found.difference)

    other = Gate(a_store(tmp_path / "other"))
    request = asked(other)
    pin(other.store, "d1", HELD, "{}")
    assert find_tool(other.store, request).status == "new"  # type: ignore[union-attr]


def test_a_server_of_another_name_is_not_asked(tmp_path: Path) -> None:
    gate = Gate(a_store(tmp_path))
    request = asked(gate)
    pin(gate.store, "d1", ACCEPTED, "{}", server="files2#1")
    pin(gate.store, "d1", ACCEPTED, "{}", server="files#x#1")

    assert find_tool(gate.store, request).status == "unknown"  # type: ignore[union-attr]


def test_only_the_same_call_counts_as_the_same(tmp_path: Path) -> None:
    gate = Gate(a_store(tmp_path))
    first = asked(gate, "delete_file", {"path": "/a"})
    gate.store.vote(first.id, [Vote("terminal:ann", approve=True, at=1.0)], 1.0)
    other = asked(gate, "delete_file", {"path": "/b"})
    gate.store.vote(other.id, [Vote("terminal:ann", approve=False, at=1.0)], 1.0)
    asked(gate, "other_tool", {"path": "/a"})

    found = find_earlier(gate.store, asked(gate, "delete_file", {"path": "/a"}))
    assert [one.id for one in found.same] == [first.id]
    assert (found.approved, found.denied) == (1, 1)
