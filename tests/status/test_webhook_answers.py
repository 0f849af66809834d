"""Signed decisions at the desk; over HTTP they are tested in ``tests/web/test_webhook.py``."""

import json
import time
from pathlib import Path

import pytest
from tests.support.approvals import a_desk, a_store, held

from thoughtgate.channels.webhook_signature import DECISION, sign
from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import Approval, Refusal
from thoughtgate.status.approval_actions import ApprovalActions
from thoughtgate.status.webhook_answers import UNKNOWN, WebhookAnswers

KEY = b"key"


@pytest.fixture
def desk(tmp_path: Path) -> ApprovalActions:
    store = a_store(tmp_path)
    workflows = {"default": WorkflowSettings("default", required=2)}
    assert a_desk(store, workflows).ask("run.1", held(), "default", time.time()) is None
    return ApprovalActions(store)


def decide(
    hook: WebhookAnswers, desk: ApprovalActions, nonce: str, by: str = "ann"
) -> Approval | Refusal:
    asked = desk.get("a1")
    assert isinstance(asked, Approval)
    body = json.dumps(
        {"id": "a1", "digest": asked.digest, "decision": "approve", "by": by}
    ).encode()
    return hook.decide(body, sign(KEY, DECISION, body, nonce, time.time()).headers())


def test_a_second_look_at_the_same_message_counts_nothing(desk: ApprovalActions) -> None:
    hook = WebhookAnswers(desk, {"default": KEY})
    counted = decide(hook, desk, "n" * 20)
    assert isinstance(counted, Approval)
    assert counted.status == "pending"

    assert decide(hook, desk, "n" * 20) == Refusal("refused", "replayed")
    assert isinstance(decide(hook, desk, "m" * 20, "bob"), Approval)
    desk.close()


def test_a_workflow_without_a_key_takes_no_decisions(desk: ApprovalActions) -> None:
    assert decide(WebhookAnswers(desk, {}), desk, "n" * 20) == Refusal("unsigned", UNKNOWN)
    desk.close()
