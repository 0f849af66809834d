"""The kill matrix: each signal, to each process of a wrapped run, at each moment.

Whatever happens, the config comes back, no process stays, the record is sound, and every
call on it has an end or is named as unfinished.
"""

import contextlib
import itertools
import json
import os
import signal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from tests.support.waiting import wait_for
from tests.support.wraps import HOLD, Machine, WrappedAgent

SIGNALS: Final = ("SIGTERM", "SIGINT", "SIGKILL")
VICTIMS: Final = ("wrap", "agent", "shim", "server")
MOMENTS: Final = ("start", "idle", "call", "approval")


class Case(NamedTuple):
    """One cell of the matrix."""

    signal: str
    victim: str
    moment: str

    def __str__(self) -> str:
        return "-".join(self)


CASES: Final = [Case(*cell) for cell in itertools.product(SIGNALS, VICTIMS, MOMENTS)]


def _marked(case: Case) -> Any:
    """Leave two of three cases to the long tests, so that each pair of columns is still met."""
    turn = VICTIMS.index(case.victim) + MOMENTS.index(case.moment)
    is_short = case.signal == SIGNALS[turn % len(SIGNALS)]
    return pytest.param(case, marks=() if is_short else pytest.mark.long, id=str(case))


@pytest.mark.requirement("S000-NFR-003", "S000-F-020", "S000-F-019")
@pytest.mark.parametrize("case", [_marked(case) for case in CASES])
def test_a_signal_leaves_no_trace_but_the_record(tmp_path: Path, case: Case) -> None:
    machine = Machine(tmp_path, HOLD)
    original = machine.write_sample("--start-delay", "0.2" if case.moment == "start" else "0")
    with machine.wrap() as run:
        victim = _lead_up(case, run)
        os.kill(victim, getattr(signal, case.signal))
        if case.victim in {"wrap", "agent"}:
            run.wait()
        else:
            wait_for(lambda: not _lives(victim), what=f"the end of the {case.victim}")
            run.finish()
        run.assert_nothing_left()
        # After a SIGKILL the guardian's `unwrap` may be seen between its fork and its exec.
        wait_for(lambda: machine.config.read_bytes() == original, what="the config to come back")
        wait_for(lambda: not machine.left_in(machine.project), what="a clean directory")
    seen = machine.run("doctor")
    assert seen.returncode == 0, seen.stdout
    _check_record(case, machine)


def _lead_up(case: Case, run: WrappedAgent) -> int:
    """Bring a run to the moment of a case and return the process to be hit."""
    if case.victim == "wrap" and case.moment == "start":
        # The files are being rewritten; the agent does not run yet.
        wraps = run.machine.state / "wraps"
        wait_for(lambda: list(wraps.glob("*.json")), what="the journal")
        return run.peer.pid
    run.wait_until_ready()
    if case.victim == "agent" and case.moment == "start":
        return run.agent_pid
    said = run.order("open", greet=case.moment != "start")["said"]
    shim = int(said["sample"]["pid"])
    if case.moment == "call":
        run.tell_call("slow", {"seconds": 60})
        run.machine.wait_for_event("tool_call_decision")
    elif case.moment == "approval":
        run.tell_call("delete_note", {"name": "draft"})
        run.machine.wait_for_event("approval_requested")
    if case.victim == "server":
        return run.pid_of_server()
    return {"wrap": run.peer.pid, "agent": run.agent_pid, "shim": shim}[case.victim]


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


def _check_record(case: Case, machine: Machine) -> None:
    if not machine.record.exists():
        assert (case.victim, case.moment) == ("wrap", "start")
        return
    machine.assert_record_is_sound()
    unfinished = machine.unfinished_calls()
    if case.victim == "wrap" and case.signal == "SIGKILL":
        listed = json.loads(machine.run("audit", "query", "--json").stdout)
        named = {one["call_id"] for one in listed if not one["status"]}
        assert unfinished <= named
        return
    assert unfinished == set()
    ends = [one["run"] for one in machine.events("run_end")]
    assert len(ends) == 1
    for call in machine.events("tool_call_start"):
        assert _end_of(machine, call["call"]["call_id"]) in {"CANCELLED", "ERROR"}
    if case.moment == "approval":
        (decided,) = machine.events("approval_decided")
        assert decided["approval"]["outcome"] == "withdrawn"


def _end_of(machine: Machine, call_id: str) -> str:
    with contextlib.suppress(StopIteration):
        return next(
            str(one["status"])
            for one in machine.events("tool_call_end")
            if one["call"]["call_id"] == call_id
        )
    return "no end"
