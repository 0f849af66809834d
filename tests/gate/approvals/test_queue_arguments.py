"""What reviewers see of a held call: all of it, in parts where it is long."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.approvals import CALL, NOW, a_desk, a_store, held

from thoughtgate.core.approval import PENDING
from thoughtgate.gate.approvals.queue import MAX_SHOWN, show_json
from thoughtgate.policy.redaction import Redactor
from thoughtgate.stores.approvals import ApprovalStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ApprovalStore]:
    opened = a_store(tmp_path)
    yield opened
    opened.close()


def test_long_values_are_folded_and_people_are_told() -> None:
    arguments = {"text": "x" * MAX_SHOWN, "deep": {"list": ["y" * 5000, 1]}}
    text, whole = show_json(arguments, Redactor())
    shown = json.loads(text)
    assert json.loads(whole) == arguments
    assert len(text) < MAX_SHOWN
    assert shown["text"].endswith(f"({MAX_SHOWN} characters)")
    assert shown["deep"]["list"][1] == 1


def test_arguments_too_long_even_when_folded_are_only_measured() -> None:
    arguments = {str(n): n for n in range(20_000)}
    text, whole = show_json(arguments, Redactor())
    assert json.loads(whole) == arguments
    assert f"{len(whole):,} characters" in json.loads(text)["…"]


@pytest.mark.promise("approver-sees-every-character")
def test_every_character_of_long_arguments_is_stored_and_none_is_kept_in_memory(
    store: ApprovalStore,
) -> None:
    desk = a_desk(store)
    arguments = {
        "text": "é\n" * MAX_SHOWN,
        "password": "hunter2",
        **{str(n): n for n in range(9999)},
    }
    assert desk.ask("run.1", held(CALL._replace(arguments=arguments)), "default", NOW) is None
    (asked,) = store.listed(PENDING)

    assert asked.folded
    assert len(asked.arguments) <= MAX_SHOWN
    assert len(desk._held["run.1"].arguments) <= MAX_SHOWN
    shown = json.loads("".join(store.whole_arguments(asked)))
    assert shown == {**arguments, "password": "[secret, 7 characters]"}


@pytest.mark.promise("approver-sees-every-character")
def test_long_extra_params_are_stored_whole_too(store: ApprovalStore) -> None:
    desk = a_desk(store)
    call = CALL._replace(extra={"cwd": "x" * (MAX_SHOWN + 1)})
    assert desk.ask("run.1", held(call), "default", NOW) is None
    (asked,) = store.listed(PENDING)
    assert asked.folded
    assert json.dumps(call.extra, separators=(",", ":")) in "".join(store.whole_arguments(asked))
