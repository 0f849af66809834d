"""What the queue keeps of a call: for reviewers, in the store and on the record."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.approvals import CALL, NOW, a_desk, a_store, a_yes, an_approval, held

from thoughtgate.core.grant import SESSION, TOOL, Remember
from thoughtgate.gate.approvals.queue import MAX_SHOWN
from thoughtgate.stores.approvals import ApprovalStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ApprovalStore]:
    opened = a_store(tmp_path)
    yield opened
    opened.close()


@pytest.mark.promise("params-are-bound")
def test_reviewers_see_what_else_a_request_carries(store: ApprovalStore) -> None:
    extra = {"cwd": "/etc", "password": "hunter2", "text": "x" * MAX_SHOWN}
    queue = a_desk(store)
    queue.ask("run.1", held(CALL._replace(extra=extra)), "default", NOW)
    asked = store.listed()[0]
    shown = json.loads(asked.extra)
    assert shown["cwd"] == "/etc"
    assert "hunter2" not in asked.extra
    assert asked.folded
    assert asked.digest != an_approval().digest


def test_a_plain_call_has_no_extra(store: ApprovalStore) -> None:
    a_desk(store).ask("run.1", held(), "default", NOW)
    assert store.listed()[0].extra == ""


@pytest.mark.promise("names-are-masked")
def test_a_secret_in_a_name_is_masked_for_reviewers_and_in_the_store(store: ApprovalStore) -> None:
    secret = "hunter2hunter2hunter2"
    name = f"https://host/?credential={secret}"
    queue = a_desk(store)
    queue.ask("run.1", held(CALL._replace(kind="resource", name=name)), "default", NOW)
    queue.ask("run.2", held(CALL._replace(kind="resource", name=f"{name}3")), "default", NOW)
    one, other = store.listed()
    assert secret not in one.tool
    assert one.tool != other.tool


@pytest.mark.promise("grants-end-with-the-definition")
def test_the_record_names_the_grants_that_ended(store: ApprovalStore) -> None:
    queue = a_desk(store)
    queue.ask("run.1", held(CALL._replace(definition="d1")), "default", NOW)
    (first,) = store.listed()
    store.vote(first.id, [a_yes()], NOW + 1, remember=Remember(SESSION, TOOL), grant_id="g1")
    queue.ask("run.2", held(CALL._replace(definition="d1")), "default", NOW + 2)
    assert queue.facts("run.2")["grant"] == "g1"
    queue.ask("run.3", held(CALL._replace(definition="d2")), "default", NOW + 3)
    assert queue.facts("run.3")["ended_grants"] == ["g1"]
