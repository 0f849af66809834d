"""Definitions that nobody has accepted, and decisions about them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stores.test_pins import KEY, pin, question
from tests.support.approvals import NOW

from thoughtgate.core.approval import Refusal, Reviewer
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.status.definition_changes import DefinitionChanges, waiting_definitions
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.stores.pins import ACCEPTED

ANN = Reviewer("console:ann")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ApprovalStore]:
    made = open_store(str(tmp_path))
    made.pins().add(KEY, [pin("read", "one", ACCEPTED), pin("read", "two")], [], NOW)
    yield made
    made.close()


def test_a_change_is_shown_and_accepted(store: ApprovalStore, tmp_path: Path) -> None:
    changes = DefinitionChanges(store)
    (server,) = changes.servers()
    assert (server.server, server.question) == ("files", "")
    assert server.changes[0].weight == "mild"
    assert "[-one-] {+two+}" in "\n".join(server.changes[0].lines)
    found = waiting_definitions(StoreLocation(tmp_path))
    assert found == [{"server": "files", "kind": "tool", "name": "read"}]
    assert isinstance(changes.decide(KEY, "other", ACCEPTED, ANN, NOW), Refusal)
    decided = changes.decide(KEY, server.digest, ACCEPTED, ANN, NOW)
    assert not isinstance(decided, Refusal)
    assert changes.servers() == []


def test_a_pending_question_is_answered_there(store: ApprovalStore) -> None:
    store.ask_standing(question("set"), NOW)
    changes = DefinitionChanges(store)
    (server,) = changes.servers()
    assert server.question == "aaaaaa"
    refused = changes.decide(KEY, server.digest, ACCEPTED, ANN, NOW)
    assert isinstance(refused, Refusal)
    assert refused.kind == "asked"


def test_only_approvers_decide(store: ApprovalStore) -> None:
    store.ask_standing(question("set")._replace(approvers=("bob",)), NOW)
    store.withdraw("aaaaaa", "gone", NOW)
    changes = DefinitionChanges(store)
    (server,) = changes.servers()
    refused = changes.decide(KEY, server.digest, ACCEPTED, ANN, NOW)
    assert isinstance(refused, Refusal)
    assert refused.kind == "not_allowed"


def test_without_a_store_nothing_waits(tmp_path: Path) -> None:
    assert waiting_definitions(StoreLocation(tmp_path / "none")) == []
