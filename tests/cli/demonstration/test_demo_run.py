"""The demo, run with its real processes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from thoughtgate.cli.demonstration import demo_run as demo
from thoughtgate.cli.demonstration import demo_script as script
from thoughtgate.errors import PeerGone


def test_every_call_has_the_expected_outcome(tmp_path: Path) -> None:
    result = demo.run_demo(tmp_path, os.environ, demo.decide_by_script)

    assert [(row.call, row.outcome) for row in result.rows] == [
        (step.title, step.expected) for step in script.STEPS
    ]
    assert result.is_sound, result.verification
    assert result.is_as_expected
    allowed = [row for row in result.rows if row.outcome in {script.FORWARDED, script.APPROVED}]
    assert result.reached == len(allowed)
    log = (tmp_path / "reached-the-server.jsonl").read_text()
    assert "budget" not in log


def test_a_call_that_is_not_in_the_script_is_denied() -> None:
    assert demo.decide_by_script({"arguments": {"name": "other"}})[0] is False
    assert demo.decide_by_script({"arguments": '{"name": "draft"}'})[0] is True
    assert demo.decide_by_script({"arguments": None})[0] is False


def test_an_unexpected_outcome_is_noticed() -> None:
    row = demo.Row("call", script.FORWARDED, "", "", script.DENIED)
    result = demo.DemoResult((row,), Path(), Path(), 0, is_sound=True, verification="")

    assert not result.is_as_expected


def test_a_part_that_ends_too_early_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "PROGRAM", ("/bin/false",))

    with pytest.raises(PeerGone, match="stopped"):
        demo.run_demo(tmp_path, os.environ, demo.decide_by_script)


def _answer(kind: str) -> dict[str, Any]:
    return {"error": {"code": -32008, "message": "no answer", "data": {"kind": kind}}}


def test_a_held_call_that_nobody_answers_is_shown_as_such() -> None:
    decision = {"gate": "rules", "rule_id": "r", "explain": {"summary": "ask"}}
    approval = {"outcome": "timeout", "decided_by": "", "reason": ""}

    outcome, reason = demo._call_row(_answer("approval_timeout"), decision, approval)

    assert outcome == script.UNANSWERED
    assert reason == "rule r: ask; timeout"
    assert json.dumps(reason)
