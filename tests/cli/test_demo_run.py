"""The demo, performed with its real processes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from thoughtgate.cli import demo_run as demo
from thoughtgate.cli import demo_script as script
from thoughtgate.errors import PeerGone


def test_every_call_meets_the_verdict_that_it_is_there_to_show(tmp_path: Path) -> None:
    outcome = demo.run_demo(tmp_path, os.environ, demo.answer_by_script)

    assert [(row.call, row.verdict) for row in outcome.rows] == [
        (scene.title, scene.expected) for scene in script.SCENES
    ]
    assert outcome.is_sound, outcome.verification
    assert outcome.is_as_expected
    allowed = [row for row in outcome.rows if row.verdict in {script.FORWARDED, script.APPROVED}]
    assert outcome.reached == len(allowed)
    log = (tmp_path / "reached-the-server.jsonl").read_text()
    assert "budget" not in log


def test_an_answer_that_is_not_in_the_script_is_no() -> None:
    assert demo.answer_by_script({"arguments": {"name": "other"}})[0] is False
    assert demo.answer_by_script({"arguments": '{"name": "draft"}'})[0] is True
    assert demo.answer_by_script({"arguments": None})[0] is False


def test_another_verdict_is_noticed() -> None:
    row = demo.Row("call", script.FORWARDED, "", "", script.DENIED)
    outcome = demo.Outcome((row,), Path(), Path(), 0, is_sound=True, verification="")

    assert not outcome.is_as_expected


def test_a_part_that_ends_too_early_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "PROGRAM", ("/bin/false",))

    with pytest.raises(PeerGone, match="stopped"):
        demo.run_demo(tmp_path, os.environ, demo.answer_by_script)


def _answer(kind: str) -> dict[str, Any]:
    return {"error": {"code": -32008, "message": "no answer", "data": {"kind": kind}}}


def test_a_held_call_that_nobody_answers_is_shown_as_such() -> None:
    decision = {"gate": "rules", "rule_id": "r", "explain": {"summary": "ask"}}
    approval = {"outcome": "timeout", "decided_by": "", "reason": ""}

    verdict, why = demo._call_row(_answer("approval_timeout"), decision, approval)

    assert verdict == script.UNANSWERED
    assert why == "rule r: ask; timeout"
    assert json.dumps(why)
