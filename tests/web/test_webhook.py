"""Decisions that another system sends: signed, recent, once, about the very call."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.approvals import a_store
from tests.support.consoles import LocalConsole, Page
from tests.web.conftest import Gate

from thoughtgate.channels.webhook_signature import DECISION, sign
from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import Approval
from thoughtgate.policy.redaction import Redactor

KEY = b"a key that both sides hold"
NONCE = "0123456789abcdef0123"
CONFIG = """\
schema: 1
default: forward
approval:
  hook: {channel: webhook, webhook: {url: "https://example.com/hook", secret_env: HOOK_KEY}}
"""


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    store = a_store(tmp_path)
    gate = Gate(store)
    gate.approvals.reload(
        {
            "hook": WorkflowSettings("hook", channel="webhook"),
            "default": WorkflowSettings("default"),
        },
        Redactor(),
        "v1",
    )
    yield gate
    store.close()


@pytest.fixture
def hooked(tmp_path: Path, gate: Gate) -> Iterator[LocalConsole]:
    del gate
    with LocalConsole(tmp_path, CONFIG, HOOK_KEY=KEY.decode()) as console:
        yield console


def decision(gate: Gate, ident: str, **changes: object) -> bytes:
    asked = gate.store.get(ident)
    assert isinstance(asked, Approval)
    said = {
        "id": ident,
        "digest": asked.digest,
        "decision": "approve",
        "by": "ann",
        "reason": "fine",
        **changes,
    }
    return json.dumps(said).encode()


def send(
    console: LocalConsole,
    body: bytes,
    *,
    key: bytes = KEY,
    purpose: str = DECISION,
    nonce: str = NONCE,
    at: float | None = None,
    over: bytes | None = None,
) -> Page:
    signed = sign(key, purpose, body if over is None else over, nonce, at or time.time())
    return console.stranger().send("POST", "/webhook/decision", body, signed.headers())


def test_a_signed_decision_counts_in_the_name_of_a_person(hooked: LocalConsole, gate: Gate) -> None:
    ident = gate.hold(workflow="hook")
    answer = send(hooked, decision(gate, ident))

    assert (answer.status, json.loads(answer.text)["status"]) == (200, "approved")
    assert gate.decided() == {"run.1": True}
    decided = gate.store.get(ident)
    assert isinstance(decided, Approval)
    assert [(vote.by, vote.reason) for vote in decided.votes] == [("webhook:ann", "fine")]


def test_an_unsigned_decision_is_refused_and_recorded(hooked: LocalConsole, gate: Gate) -> None:
    body = decision(gate, gate.hold(workflow="hook"))
    answer = hooked.stranger().send("POST", "/webhook/decision", body, {})

    assert answer.status == 401
    assert gate.decided() == {}
    assert ("webhook: unsigned", "/webhook/decision") in hooked.refusals


def test_a_wrong_signature_is_refused(hooked: LocalConsole, gate: Gate) -> None:
    body = decision(gate, gate.hold(workflow="hook"))

    assert send(hooked, body, key=b"another key").status == 401
    assert send(hooked, body, purpose="question").status == 401
    assert send(hooked, body, over=b"something else").status == 401
    assert gate.decided() == {}
    assert len(hooked.refusals) == 3


@pytest.mark.parametrize("off_s", [-400, 400])
def test_an_old_or_early_decision_is_refused(
    hooked: LocalConsole, gate: Gate, off_s: float
) -> None:
    body = decision(gate, gate.hold(workflow="hook"))

    assert send(hooked, body, at=time.time() + off_s).status == 401
    assert gate.decided() == {}


def test_a_replayed_decision_is_refused_and_recorded(hooked: LocalConsole, gate: Gate) -> None:
    body = decision(gate, gate.hold(workflow="hook"))
    assert send(hooked, body).status == 200
    answer = send(hooked, body)

    assert answer.status == 409
    assert ("webhook: replayed", "/webhook/decision") in hooked.refusals


def test_a_decision_about_another_call_is_refused(hooked: LocalConsole, gate: Gate) -> None:
    ident = gate.hold(workflow="hook")

    assert send(hooked, decision(gate, ident, digest="0" * 64)).status == 409
    assert gate.decided() == {}


def test_a_key_decides_only_for_its_own_workflow(hooked: LocalConsole, gate: Gate) -> None:
    ident = gate.hold(workflow="default")

    assert send(hooked, decision(gate, ident)).status == 401
    assert gate.decided() == {}


def test_nobody_learns_which_ids_exist(hooked: LocalConsole, gate: Gate) -> None:
    known = send(hooked, decision(gate, gate.hold(workflow="hook")), key=b"guess")
    unknown = send(
        hooked, b'{"id":"zzzzzz","digest":"0","decision":"approve","by":"x"}', key=b"guess"
    )

    assert (known.status, known.text) == (unknown.status, unknown.text)


@pytest.mark.parametrize(
    "changes",
    [
        {"decision": "maybe"},
        {"by": ""},
        {"by": "a\nb"},
        {"by": "x" * 300},
        {"id": 5},
        {"digest": None},
    ],
)
def test_a_decision_that_makes_no_sense_is_refused(
    hooked: LocalConsole, gate: Gate, changes: dict[str, object]
) -> None:
    answer = send(hooked, decision(gate, gate.hold(workflow="hook"), **changes))

    assert answer.status == 400
    assert gate.decided() == {}


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b"{" * 5000])
def test_what_is_no_decision_is_refused(hooked: LocalConsole, body: bytes) -> None:
    assert send(hooked, body).status == 400
    assert send(hooked, body, key=b"guess").status == 401


def test_a_huge_body_is_not_read(hooked: LocalConsole) -> None:
    assert send(hooked, b"x" * 100_000).status == 413


def test_a_late_decision_is_told_why(hooked: LocalConsole, gate: Gate) -> None:
    ident = gate.hold(workflow="hook")
    gate.approvals.withdraw("run.1", "the caller is gone", time.time())
    answer = send(hooked, decision(gate, ident))

    assert answer.status == 409
    assert "withdrawn" in answer.text
