"""Running the audit and policy commands in process, on a record made for the test."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.support.records import (
    RUN,
    T0,
    answered,
    asked,
    blocked,
    call,
    decided,
    ended,
    started,
)

from thoughtgate.cli.app import run
from thoughtgate.core.envelope import Envelope
from thoughtgate.core.record_events import TOOLS_LIST, Record, frame_refused, message_seen
from thoughtgate.core.run_summary import SUCCEEDED, RunSummary, run_ended, run_started
from thoughtgate.policy.policy import Policy
from thoughtgate.record.writer import RecordWriter


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> Done:
    """Run the command line in this process."""
    code = run(list(arguments))
    captured = capsys.readouterr()
    return Done(code, captured.out, captured.err)


def sample_events() -> list[Record]:
    """A run with one of everything."""
    lists = {"method": "tools/list", "offered": 9, "returned": 7, "hidden": ["x"], "enforced": True}
    records = [
        run_started(T0, Policy(version="v1")),
        message_seen(T0, "files", "1", "agent_to_server", "request", "initialize", 90),
        Record(TOOLS_LIST, T0, "files", "1", {"list": lists}),
        *call(1),
        started("run-1.2", T0 + 2, tool="delete_file", preview='{"path":"/tmp/é"}'),
        decided("run-1.2", T0 + 2, tool="delete_file", action="HOLD"),
        asked("run-1.2", T0 + 2, tool="delete_file"),
        answered("run-1.2", T0 + 7, tool="delete_file"),
        ended("run-1.2", T0 + 8, tool="delete_file", latency_ms=6000),
        started("run-1.3", T0 + 3, tool="wipe", preview="{}"),
        decided("run-1.3", T0 + 3, tool="wipe", action="BLOCK", kind="GOVERNANCE_DENIED"),
        ended("run-1.3", T0 + 3, tool="wipe", status="ERROR", error=blocked()),
        frame_refused(
            T0 + 4, "files", "1", direction="agent_to_server", check="batch", kind="k", size=9
        ),
        Record("agent_connected", T0, "", "2", {"agent": {"method": "bearer", "identity": "kim"}}),
        Record(
            "agent_auth_rejected",
            T0,
            "",
            "0",
            {"agent": {"method": "bearer", "reason": "token wrong"}},
        ),
        Record("server_exited", T0, "files", "1", {"server": {"state": "exited"}}),
    ]
    tally = RunSummary()
    for record in records:
        tally.count(record)
    return [*records, run_ended(T0 + 9, T0, SUCCEEDED, tally)]


def sample_record(directory: Path) -> Path:
    """Write the sample run to a file."""
    path = directory / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    writer.write(sample_events())
    writer.close()
    return path
