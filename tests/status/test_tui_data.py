"""What the terminal interface acts through."""

from pathlib import Path

import pytest

from thoughtgate.errors import PeerGone, UsageError
from thoughtgate.status.tui_data import ServerKey, TuiSource


def test_what_an_agent_runs_cannot_answer_approvals(tmp_path: Path) -> None:
    inside = TuiSource({"THOUGHTGATE_STATE_DIR": str(tmp_path), "THOUGHTGATE_ACTIVE": "1"})

    with pytest.raises(UsageError, match="cannot approve its own calls"):
        inside.decide("abc", approve=True)


def test_an_unknown_approval_and_an_absent_gate_are_said(tmp_path: Path) -> None:
    source = TuiSource({"THOUGHTGATE_STATE_DIR": str(tmp_path)})

    with pytest.raises(UsageError, match="abc"):
        source.decide("abc", approve=True)
    with pytest.raises(PeerGone):
        source.act("start", ServerKey(1, "one"))
    assert source.look()["gates"] == []
