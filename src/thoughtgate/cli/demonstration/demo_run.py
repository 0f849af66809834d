"""Run the demo: a scripted agent calls a real server through the real shim.

Everything runs as it does for a user: processes connected by pipes, the config in a file,
approvals answered with ``thoughtgate approvals``, the record checked with ``thoughtgate audit
verify``. The results come from the record and from the server's own log.
"""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeAlias

from thoughtgate.cli.demonstration import demo_script as script
from thoughtgate.errors import PeerGone
from thoughtgate.gate.state_directory import OWN_PREFIXES

Decide: TypeAlias = Callable[[dict[str, Any]], tuple[bool, str]]
"""Takes a pending approval; returns whether to approve the call, and the reason."""

PROGRAM: Final = (sys.executable, "-m", "thoughtgate.cli.entry")
"""The ``thoughtgate`` command in the current interpreter, wherever it is installed."""

POLL_S: Final = 0.3
"""How long to wait for output of the agent before checking whether a call is held."""

DEMO_TIMEOUT_S: Final = 45.0
"""The whole demo takes a few seconds; if it takes this long, something hangs."""

_COMMAND_TIMEOUT_S: Final = 20.0

_OUTCOMES: Final = {
    "not_exposed": script.HIDDEN,
    "rate_limited": script.LIMITED,
    "approval_rejected": script.DENIED_BY_PERSON,
    "approval_timeout": script.UNANSWERED,
    "approval_withdrawn": script.UNANSWERED,
}


class Row(NamedTuple):
    """One line of the table."""

    call: str
    outcome: str
    reason: str
    response: str
    """What the agent received."""
    expected: str
    """The outcome that the script expects."""


class DemoResult(NamedTuple):
    """The results of all steps, and where to find the files."""

    rows: tuple[Row, ...]
    record: Path
    config: Path
    reached: int
    """Number of tool calls in the server's own log."""
    is_sound: bool
    verification: str

    @property
    def is_as_expected(self) -> bool:
        """Whether the record is sound and every outcome is the expected one."""
        return self.is_sound and all(row.outcome == row.expected for row in self.rows)


def decide_by_script(approval: dict[str, Any]) -> tuple[bool, str]:
    """Return the decision that the script contains; deny calls that are not in it."""
    shown = approval.get("arguments")
    arguments = json.loads(shown) if isinstance(shown, str) else shown
    name = arguments.get("name") if isinstance(arguments, dict) else None
    return script.DECISIONS.get(str(name), (False, "not in the script"))


def play_environment(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the demo's processes, which have their own state directory."""
    # The user's own settings must not change what the demo shows.
    kept = {name: value for name, value in environ.items() if not name.startswith(OWN_PREFIXES)}
    state = str(folder.absolute() / "state")
    return {**kept, "THOUGHTGATE_STATE_DIR": state, "THOUGHTGATE_AGENT_ID": "demo-agent"}


def run_demo(folder: Path, environ: Mapping[str, str], decide: Decide) -> DemoResult:
    """Run the script in a directory and return the results.

    Raises:
        PeerGone: one of the processes exited too early or did not answer.
    """
    config, record = folder / "thoughtgate.yaml", folder / "record.jsonl"
    messages, log = folder / "script.json", folder / "reached-the-server.jsonl"
    config.write_text(script.CONFIG, "utf-8")
    (folder / "demo.cedar").write_text(script.CEDAR, "utf-8")
    messages.write_text(json.dumps([step.message for step in script.STEPS]), "utf-8")
    environment = play_environment(folder, environ)
    python = (sys.executable, "-m")
    server = [*python, "thoughtgate.testing.sample_server", "--log", str(log)]
    gate = [*PROGRAM, "shim", "--server-id", script.SERVER, "-c", str(config)]
    gate += [
        "--state-dir",
        environment["THOUGHTGATE_STATE_DIR"],
        "--audit",
        str(record),
        "--",
        *server,
    ]
    # The agent runs as a separate program, because the package may not import test support.
    agent = [*python, "thoughtgate.testing.scripted_agent", str(messages), "--", *gate]
    answers = _run_agent(agent, environment, decide)
    records = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
    rows = tuple(_rows(answers, records))
    check = _run(["audit", "verify", str(record)], environment)
    report = (check.stdout.strip() or check.stderr.strip()).splitlines()
    verification = report[0] if report else ""
    return DemoResult(rows, record, config, _calls_in(log), check.returncode == 0, verification)


def _run_agent(
    agent: list[str], environment: dict[str, str], decide: Decide
) -> list[dict[str, Any]]:
    with subprocess.Popen(agent, env=environment, stdout=subprocess.PIPE, text=True) as process:
        timer = threading.Timer(DEMO_TIMEOUT_S, process.kill)
        timer.start()
        try:
            answers = list(_answers_of(process.stdout, environment, decide))
        finally:
            timer.cancel()
    if process.returncode or len(answers) != len(script.STEPS):
        raise PeerGone("the demo stopped before it was finished; the messages above say why")
    return answers


def _answers_of(
    output: IO[str] | None, environment: dict[str, str], decide: Decide
) -> Iterator[dict[str, Any]]:
    """Yield the answers that the agent reports; while there are none, decide about held calls."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=read_lines, args=(output, lines), daemon=True).start()
    decided: set[str] = set()
    while True:
        try:
            line = lines.get(timeout=POLL_S)
        except queue.Empty:
            _decide_pending(environment, decide, decided)
            continue
        if line is None:
            return
        yield json.loads(line)


def read_lines(output: IO[str] | None, lines: "queue.SimpleQueue[str | None]") -> None:
    """Put the lines of a process's output into a queue, and None at the end; runs in a thread."""
    for line in output or ():
        lines.put(line)
    lines.put(None)


def _decide_pending(environment: dict[str, str], decide: Decide, decided: set[str]) -> None:
    listed = _run(["approvals", "list", "--json"], environment)
    if listed.returncode:
        return
    for approval in json.loads(listed.stdout):
        if approval["id"] in decided or approval["status"] != "pending":
            continue
        decided.add(approval["id"])
        approved, reason = decide(approval)
        command = "approve" if approved else "deny"
        _run(["approvals", command, approval["id"], "--reason", reason], environment)


def _run(arguments: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_COMMAND_TIMEOUT_S,
        check=False,
    )


def _calls_in(log: Path) -> int:
    lines = [json.loads(line)["line"] for line in log.read_text("utf-8").splitlines()]
    return sum('"tools/call"' in line for line in lines)


def _rows(answers: list[dict[str, Any]], records: list[dict[str, Any]]) -> Iterator[Row]:
    """Match each step with its answer and its events; the agent sends one message at a time."""
    decisions = iter([record for record in records if record["type"] == "tool_call_decision"])
    decided = {
        record["call"]["call_id"]: record["approval"]
        for record in records
        if record["type"] == "approval_decided"
    }
    for step, reported in zip(script.STEPS, answers, strict=True):
        answer = reported["answer"]
        if step.message.get("method") == "tools/list":
            outcome, reason = _list_row(records)
        elif "raw" in step.message:
            outcome, reason = _frame_row(records)
        else:
            record = next(decisions)
            approval = decided.get(record["call"]["call_id"])
            outcome, reason = _call_row(answer, record["decision"], approval)
        yield Row(step.title, outcome, reason, _response(answer), step.expected)


def _list_row(records: list[dict[str, Any]]) -> tuple[str, str]:
    facts = next(record["list"] for record in records if record["type"] == "tools_list")
    hidden = ", ".join(facts["hidden"])
    shown = f"{facts['returned']} of {facts['offered']} shown"
    return script.FILTERED if hidden else script.FORWARDED, f"{shown}; hidden: {hidden}"


def _frame_row(records: list[dict[str, Any]]) -> tuple[str, str]:
    for record in records:
        if record["type"] == "frame_refused":
            return script.REJECTED, f"framing: {record['frame']['check'].replace('_', ' ')}"
    return script.FORWARDED, ""


def _call_row(
    answer: dict[str, Any], decision: dict[str, Any], approval: dict[str, Any] | None
) -> tuple[str, str]:
    gate = {"limits": "limit", "rules": "rule"}.get(decision["gate"], decision["gate"])
    reason = " ".join(part for part in (gate, decision["rule_id"]) if part)
    summary = decision["explain"]["summary"]
    reason = f"{reason}: {summary}" if summary else reason
    if approval is not None:
        by = f" by {approval['decided_by']}" if approval["decided_by"] else ""
        why = f", {approval['reason']}" if approval["reason"] else ""
        reason = f"{reason}; {approval['outcome']}{by}{why}"
    error = answer.get("error")
    if error is None:
        return (script.FORWARDED if approval is None else script.APPROVED), reason
    return _OUTCOMES.get(error.get("data", {}).get("kind", ""), script.DENIED), reason


def _response(answer: dict[str, Any]) -> str:
    error = answer.get("error")
    if error is not None:
        return f"{error['code']} {error['message']}"
    result = answer["result"]
    if "tools" in result:
        return f"{len(result['tools'])} tools"
    return str(result["content"][0]["text"])
