"""What the record costs: CPU per event written, a million events ingested, questions answered."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench.figure import Figure

from thoughtgate.core.envelope import Envelope, Run
from thoughtgate.core.record_events import CALL_DECISION, CALL_START, Record, call_ended
from thoughtgate.record.ledger import Ledger, ledger_path
from thoughtgate.record.ledger_queries import CallFilter, count_by, find_call, find_calls
from thoughtgate.record.reader import verify_record
from thoughtgate.record.writer import RecordWriter

TOOLS = ("read_file", "write_file", "search_code", "delete_branch", "run_query", "send_mail")
SERVERS = ("files", "github", "mail")
T0 = 1_760_000_000.0
WRITE_US = 10.0
INGEST_S = 60.0
QUERY_MS = 100.0


def one_call(number: int) -> list[Record]:
    """A call of ordinary size: start, decision, end."""
    at, tool, server = T0 + number / 50, TOOLS[number % 6], SERVERS[number % 3]
    short = {
        "call_id": f"run.{number}",
        "server_name": server,
        "tool_name": tool,
        "args_hash": f"{number:064x}",
    }
    preview = f'{{"path":"/srv/project/src/module_{number % 977}.py","query":"item {number}"}}'
    blocked = number % 10 == 0
    start = {
        **short,
        "kind": "tool",
        "method": "tools/call",
        "transport": "mcp_stdio",
        "principal": "local",
        "bytes_in": 180,
        "preview": {"truncated": False, "args_preview": preview},
        "seq": number,
    }
    decision = {
        "action": "BLOCK" if blocked else "ALLOW",
        "gate": "rules",
        "rule_id": f"rules[{number % 7}]",
        "severity": "info",
        "explain": {"summary": "a rule says so", "reason_code": "FORWARD"},
        "policy": {"policy_id": "config", "policy_version": "0123456789abcdef", "policy_hash": "0"},
        "enforced": True,
    }
    error = {"class": "policy_block", "kind": "governance_denied", "message": "denied"}
    return [
        Record(CALL_START, at, server, "1", {"call": start}),
        Record(CALL_DECISION, at, server, "1", {"call": short, "decision": decision}),
        call_ended(
            at + 0.01,
            server,
            "1",
            call_id=f"run.{number}",
            tool=tool,
            status="ERROR" if blocked else "OK",
            latency_ms=number % 90,
            size=512,
            error=error if blocked else None,
        ),
    ]


def cpu_per_event(directory: Path, calls: int = 20_000, rounds: int = 5) -> float:
    """Microseconds of CPU for one event in batches of three; the best of some rounds."""
    batches = [one_call(number) for number in range(calls)]
    best = float("inf")
    for turn in range(rounds):
        writer = RecordWriter(directory / f"cost-{turn}.jsonl", Envelope(Run("run")))
        since = time.process_time()
        for batch in batches:
            writer.write(batch)
        best = min(best, time.process_time() - since)
        writer.close()
    return best / (calls * 3) * 1e6


def timed(job: Callable[[], Any]) -> float:
    """Seconds that a job takes."""
    since = time.perf_counter()
    job()
    return time.perf_counter() - since


def queries(ledger: Ledger, calls: int) -> dict[str, float]:
    """Median milliseconds of each question."""
    ask = ledger.connection
    middle = T0 + calls / 100
    questions: dict[str, Callable[[], object]] = {
        "newest 50": lambda: find_calls(ask, CallFilter()),
        "tool and decision": lambda: find_calls(
            ask, CallFilter(tool="delete_branch", decision="BLOCK")
        ),
        "server in a time": lambda: find_calls(
            ask, CallFilter(server="mail", since=middle, until=middle + 600)
        ),
        "text": lambda: find_calls(ask, CallFilter(text=f"item {calls // 2}")),
        "text that is nowhere": lambda: find_calls(ask, CallFilter(text="nowhere")),
        "run": lambda: find_calls(ask, CallFilter(run="run")),
        "one call": lambda: find_call(ask, f"run.{calls // 3}"),
        "blocked by tool": lambda: count_by(ask, "tool", CallFilter(decision="BLOCK")),
    }
    return {
        name: statistics.median(timed(question) for _ in range(5)) * 1000
        for name, question in questions.items()
    }


def measure(*, quick: bool) -> Iterable[Figure]:
    """Write, ingest, verify and ask; a quick run has a tenth of the events."""
    calls = (100_000 if quick else 1_000_000) // 3
    scale = 1_000_000 / (calls * 3)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        cost = cpu_per_event(directory)
        yield Figure("CPU per event written", cost, "µs", WRITE_US, note="batches of three")
        record = directory / "audit.jsonl"
        writer = RecordWriter(record, Envelope(Run("run")), keep=1000)
        for number in range(calls):
            writer.write(one_call(number))
        writer.close()
        ledger = Ledger(ledger_path(record))
        ingest = timed(lambda: ledger.ingest(record)) * scale
        yield Figure("a million events into the ledger", ingest, "s", INGEST_S)
        again = timed(lambda: ledger.ingest(record)) * 1000
        yield Figure("ledger brought up to date, nothing new", again, "ms")
        verify = timed(lambda: verify_record(record)) * scale
        yield Figure("a million events verified", verify, "s")
        for question, took_ms in queries(ledger, calls).items():
            yield Figure(f"query: {question}", took_ms, "ms", QUERY_MS)
        ledger.close()
