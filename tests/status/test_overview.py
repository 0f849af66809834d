"""Gathering what runs and what happens."""

import json
from pathlib import Path

from thoughtgate.gate.running_gates import announce
from thoughtgate.status.overview import describe_gate, gather_status, pending_approvals


def test_a_gate_without_a_socket_is_told_as_it_announced_itself(tmp_path: Path) -> None:
    presence = announce(str(tmp_path), "wrap", agent="claude")
    assert presence is not None

    told = gather_status({"THOUGHTGATE_STATE_DIR": str(tmp_path)}, 5)

    [gate] = told["gates"]
    assert (gate["kind"], gate["agent"]) == ("wrap", "claude")
    assert "owner" not in gate
    assert json.dumps(told)
    presence.withdraw()


def test_a_socket_that_nobody_answers_at_is_a_problem_of_that_gate(tmp_path: Path) -> None:
    (tmp_path / "gates").mkdir()
    (tmp_path / "gates" / "5.sock").touch()

    told = describe_gate(str(tmp_path), {"pid": 5, "kind": "serve", "owner": "x"})

    assert "does not answer" in told["problem"]


def test_nothing_is_created_where_nothing_is(tmp_path: Path) -> None:
    assert pending_approvals(str(tmp_path / "absent")) == []
    assert not (tmp_path / "absent").exists()
