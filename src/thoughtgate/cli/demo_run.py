"""The demo: a real server behind the real shim, a scripted agent before it, a person beside.

Everything runs as it does for a user: processes on pipes, the config from a file, the
approvals answered by ``thoughtgate approvals``, the record checked by ``thoughtgate audit
verify``. What is shown is read from the record and from the server's own log.
"""

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, TypeAlias

from thoughtgate.cli import demo_script as script
from thoughtgate.errors import PeerGone
from thoughtgate.gate.state_directory import OWN_PREFIXES

Answer: TypeAlias = Callable[[dict[str, Any]], tuple[bool, str]]
"""From a pending approval to yes or no, and a reason."""

PROGRAM: Final = (sys.executable, "-m", "thoughtgate.cli.entry")
"""The command itself, in the interpreter that runs now, wherever it is installed."""

QUIET_S: Final = 0.3
"""Silence of the agent after which somebody looks whether a call is held."""

PATIENCE_S: Final = 45.0
"""The whole demo takes seconds; after this, something hangs."""

_COMMAND_S: Final = 20.0

_WORDS: Final = {
    "not_exposed": script.HIDDEN,
    "rate_limited": script.LIMITED,
    "approval_rejected": script.REFUSED,
    "approval_timeout": script.UNANSWERED,
    "approval_withdrawn": script.UNANSWERED,
}


class Row(NamedTuple):
    """One line of the table."""

    call: str
    verdict: str
    why: str
    told: str
    """What the agent was told."""
    expected: str


class Outcome(NamedTuple):
    """What the demo showed."""

    rows: tuple[Row, ...]
    record: Path
    config: Path
    reached: int
    """Tool calls that arrived at the server, by its own log."""
    is_sound: bool
    verification: str

    @property
    def is_as_expected(self) -> bool:
        """Every verdict is the one that the script is there to show."""
        return self.is_sound and all(row.verdict == row.expected for row in self.rows)


def answer_by_script(approval: dict[str, Any]) -> tuple[bool, str]:
    """Answer as the play says."""
    shown = approval.get("arguments")
    arguments = json.loads(shown) if isinstance(shown, str) else shown
    name = arguments.get("name") if isinstance(arguments, dict) else None
    return script.ANSWERS.get(str(name), (False, "not in the script"))


def run_demo(folder: Path, environ: Mapping[str, str], answer: Answer) -> Outcome:
    """Perform the play in a folder and return what happened.

    Raises:
        PeerGone: a part ended too early or did not answer.
    """
    files = _write_files(folder)
    environment = {
        name: value for name, value in environ.items() if not name.startswith(OWN_PREFIXES)
    }
    environment["THOUGHTGATE_STATE_DIR"] = str(folder / "state")
    environment["THOUGHTGATE_AGENT_ID"] = "demo-agent"
    answers = _perform(files, environment, answer)
    records = [json.loads(line) for line in files.record.read_text("utf-8").splitlines()]
    rows = tuple(_rows(answers, records))
    check = _run(["audit", "verify", str(files.record)], environment)
    said = (check.stdout.strip() or check.stderr.strip()).splitlines()
    return Outcome(
        rows,
        files.record,
        files.config,
        _calls_in(files.reached),
        check.returncode == 0,
        said[0] if said else "",
    )


class _Files(NamedTuple):
    config: Path
    script: Path
    record: Path
    reached: Path


def _write_files(folder: Path) -> _Files:
    files = _Files(
        folder / "thoughtgate.yaml",
        folder / "script.json",
        folder / "record.jsonl",
        folder / "reached-the-server.jsonl",
    )
    files.config.write_text(script.CONFIG, "utf-8")
    (folder / "demo.cedar").write_text(script.CEDAR, "utf-8")
    files.script.write_text(json.dumps([scene.step for scene in script.SCENES]), "utf-8")
    return files


def _perform(files: _Files, environment: dict[str, str], answer: Answer) -> list[dict[str, Any]]:
    python = (sys.executable, "-m")
    server = [*python, "thoughtgate.testing.sample_server", "--log", str(files.reached)]
    gate = [*PROGRAM, "shim", "--server-id", script.SERVER, "-c", str(files.config)]
    gate += ["--audit", str(files.record), "--", *server]
    agent = [*python, "thoughtgate.testing.scripted_agent", str(files.script), "--", *gate]
    # The agent is a program of its own: no room imports what is there for tests.
    with subprocess.Popen(agent, env=environment, stdout=subprocess.PIPE, text=True) as process:
        timer = threading.Timer(PATIENCE_S, process.kill)
        timer.start()
        try:
            answers = list(_answers_of(process.stdout, environment, answer))
        finally:
            timer.cancel()
    if process.returncode or len(answers) != len(script.SCENES):
        raise PeerGone("the demo stopped before its end; what is above says why")
    return answers


def _answers_of(
    output: IO[str] | None, environment: dict[str, str], answer: Answer
) -> Iterator[dict[str, Any]]:
    """Yield what the agent reports; when it falls silent, look for calls that are held."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    threading.Thread(target=_read_lines, args=(output, lines), daemon=True).start()
    asked: set[str] = set()
    while True:
        try:
            line = lines.get(timeout=QUIET_S)
        except queue.Empty:
            _answer_pending(environment, answer, asked)
            continue
        if line is None:
            return
        yield json.loads(line)


def _read_lines(output: IO[str] | None, lines: "queue.SimpleQueue[str | None]") -> None:
    for line in output or ():
        lines.put(line)
    lines.put(None)


def _answer_pending(environment: dict[str, str], answer: Answer, asked: set[str]) -> None:
    listed = _run(["approvals", "list", "--json"], environment)
    if listed.returncode:
        return
    for approval in json.loads(listed.stdout):
        if approval["id"] in asked or approval["status"] != "pending":
            continue
        asked.add(approval["id"])
        approved, reason = answer(approval)
        word = "approve" if approved else "deny"
        _run(["approvals", word, approval["id"], "--reason", reason], environment)


def _run(arguments: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=_COMMAND_S,
        check=False,
    )


def _calls_in(log: Path) -> int:
    lines = [json.loads(line)["line"] for line in log.read_text("utf-8").splitlines()]
    return sum('"tools/call"' in line for line in lines)


def _rows(answers: list[dict[str, Any]], records: list[dict[str, Any]]) -> Iterator[Row]:
    """Join each scene to its answer and to its records; the agent does one thing at a time."""
    decisions = iter([record for record in records if record["type"] == "tool_call_decision"])
    decided = {
        record["call"]["call_id"]: record["approval"]
        for record in records
        if record["type"] == "approval_decided"
    }
    for scene, played in zip(script.SCENES, answers, strict=True):
        told = _told(played["answer"])
        if scene.step.get("method") == "tools/list":
            verdict, why = _list_row(records)
        elif "raw" in scene.step:
            verdict, why = _frame_row(records)
        else:
            record = next(decisions)
            approval = decided.get(record["call"]["call_id"])
            verdict, why = _call_row(played["answer"], record["decision"], approval)
        yield Row(scene.title, verdict, why, told, scene.expected)


def _list_row(records: list[dict[str, Any]]) -> tuple[str, str]:
    facts = next(record["list"] for record in records if record["type"] == "tools_list")
    hidden = ", ".join(facts["hidden"])
    shown = f"{facts['returned']} of {facts['offered']} shown"
    return script.FILTERED if hidden else script.FORWARDED, f"{shown}; hidden: {hidden}"


def _frame_row(records: list[dict[str, Any]]) -> tuple[str, str]:
    for record in records:
        if record["type"] == "frame_refused":
            return script.UNREADABLE, f"framing: {record['frame']['check'].replace('_', ' ')}"
    return script.FORWARDED, ""


def _call_row(
    answer: dict[str, Any], decision: dict[str, Any], approval: dict[str, Any] | None
) -> tuple[str, str]:
    gate = {"limits": "limit", "rules": "rule"}.get(decision["gate"], decision["gate"])
    why = " ".join(part for part in (gate, decision["rule_id"]) if part)
    summary = decision["explain"]["summary"]
    why = f"{why}: {summary}" if summary else why
    if approval is not None:
        by = f" by {approval['decided_by']}" if approval["decided_by"] else ""
        reason = f", {approval['reason']}" if approval["reason"] else ""
        why = f"{why}; {approval['outcome']}{by}{reason}"
    error = answer.get("error")
    if error is None:
        return (script.FORWARDED if approval is None else script.APPROVED), why
    return _WORDS.get(error.get("data", {}).get("kind", ""), script.DENIED), why


def _told(answer: dict[str, Any]) -> str:
    error = answer.get("error")
    if error is not None:
        return f"{error['code']} {error['message']}"
    result = answer["result"]
    if "tools" in result:
        return f"{len(result['tools'])} tools"
    return str(result["content"][0]["text"])
