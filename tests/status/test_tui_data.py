"""What the terminal interface acts through."""

import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.approvals import an_approval
from tests.support.audit_cli import sample_record

from thoughtgate.errors import PeerGone, UsageError
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.open_governor import RECORD_FILE
from thoughtgate.status.tui_data import ServerKey, TuiSource
from thoughtgate.stores.open_database import StoreLocation


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


def test_calls_of_the_record_are_counted_and_what_helps_to_decide_is_shown(tmp_path: Path) -> None:
    sample_record(tmp_path).rename(tmp_path / RECORD_FILE)
    source = TuiSource({"THOUGHTGATE_STATE_DIR": str(tmp_path)})
    with closing(open_store(StoreLocation(tmp_path))) as store:
        at = time.time()
        store.ask(an_approval(id="first1", created_at=at, expires_at=at + 300), at)
        store.ask(an_approval(id="second", call_id="run.2", created_at=at, expires_at=at + 300), at)

    assert "denied" in source.decide("first1", approve=False, digest=an_approval().digest)
    seen = source.look()
    text, pages = source.call_page("second", 0)
    source.close()

    assert len(seen["calls"]) == 3
    assert [one["id"] for one in seen["approvals"]] == ["second"]
    assert pages == 1
    assert '"path": "/tmp/x"' in text
    assert "definition unknown" in text
    assert "approved 0 and denied 1 times" in text
    assert "the same call: denied by terminal:" in text
