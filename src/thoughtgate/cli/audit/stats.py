"""``thoughtgate audit stats``: statistics of the record, with small charts for the terminal."""

import sqlite3
import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final

from thoughtgate.cli.audit.query import RunOption, ServerOption
from thoughtgate.cli.audit.source import find_place, open_ledger, shown_time, span
from thoughtgate.cli.options import (
    ConfigOption,
    JsonOption,
    RecordOption,
    SinceOption,
    UntilOption,
    examples,
)
from thoughtgate.cli.output import counted, printable, write_json
from thoughtgate.record.export import written_time
from thoughtgate.record.ledger_queries import (
    CallFilter,
    count_by,
    count_frames,
    count_messages,
    count_over_time,
    latencies,
    time_between,
)

STATS_EXAMPLES: Final = examples(
    "thoughtgate audit stats --since 1d",
    "thoughtgate audit stats --server github --json",
)

_STEPS_S: Final = (60, 300, 900, 3600, 4 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
_MAX_BARS: Final = 48
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_BAR: Final = 30
_PERCENTILES: Final = (50, 90, 99)


def stats_command(
    *,
    run: RunOption = "",
    server: ServerOption = "",
    since: SinceOption = "",
    until: UntilOption = "",
    record: RecordOption = None,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Count calls by decision, tool, server and time, and show how long they took."""
    start, end = span(since, until)
    wanted = CallFilter(run=run, server=server, since=start, until=end)
    with open_ledger(find_place(record, config)) as ledger:
        stats = collect(ledger.connection, wanted)
    if json_:
        write_json(as_json(stats))
    else:
        for line in charts(stats):
            sys.stdout.write(line + "\n")


def collect(connection: sqlite3.Connection, wanted: CallFilter) -> dict[str, Any]:
    """Query the ledger for everything that the charts show."""
    measured = latencies(connection, wanted)
    step = _step(time_between(connection, wanted))
    return {
        "calls": sum(count for _, count in count_by(connection, "decision", wanted)),
        "decisions": dict(count_by(connection, "decision", wanted)),
        "statuses": dict(count_by(connection, "status", wanted)),
        "servers": dict(count_by(connection, "server", wanted)),
        "tools": dict(count_by(connection, "tool", wanted)),
        "refusals": {
            kind: count for kind, count in count_by(connection, "error_kind", wanted) if kind
        },
        "approvals": {
            kind: count for kind, count in count_by(connection, "approval", wanted) if kind
        },
        "latency_ms": {f"p{share}": percentile(measured, share) for share in _PERCENTILES},
        "step_s": step,
        "over_time": [
            {"at": at, "decision": decision, "calls": count}
            for at, decision, count in count_over_time(connection, wanted, step)
        ],
        "messages": count_messages(connection, wanted),
        "frames_refused": count_frames(connection, wanted),
    }


def as_json(stats: dict[str, Any]) -> dict[str, Any]:
    """Return the statistics with times in the format of the record."""
    steps = [{**row, "at": written_time(row["at"])} for row in stats["over_time"]]
    return {**stats, "over_time": steps}


def percentile(ordered: Sequence[int], share: int) -> int | None:
    """Return the value below which the given percentage of the values lies."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]


def charts(stats: dict[str, Any]) -> Iterable[str]:
    """Yield the statistics as lines of text with bar charts."""
    yield f"{counted(stats['calls'], 'call')}, {counted(stats['messages'], 'other message')}"
    yield from _over_time(stats)
    for title in ("decisions", "statuses", "servers", "tools", "refusals", "approvals"):
        if stats[title]:
            yield ""
            yield title
            yield from _bars(stats[title])
    if stats["frames_refused"]:
        yield ""
        yield "frames refused"
        yield from _bars(stats["frames_refused"])
    shares = [
        f"{name} {value} ms" for name, value in stats["latency_ms"].items() if value is not None
    ]
    if not shares:
        return
    yield ""
    yield f"latency of answered calls: {', '.join(shares)}"


def _step(width: float) -> int:
    """Return the shortest interval, in seconds, that fits the whole time into the chart."""
    return next((step for step in _STEPS_S if width / step < _MAX_BARS), _STEPS_S[-1])


def _over_time(stats: dict[str, Any]) -> Iterable[str]:
    step = stats["step_s"]
    sums: dict[int, int] = {}
    for row in stats["over_time"]:
        slot = int(row["at"] // step)
        sums[slot] = sums.get(slot, 0) + row["calls"]
    if not sums:
        return
    first, last = min(sums), max(sums)
    shown = [sums.get(slot, 0) for slot in range(first, min(last, first + _MAX_BARS) + 1)]
    top = max(shown)
    line = "".join(_BLOCKS[-(-count * (len(_BLOCKS) - 1) // top)] for count in shown)
    yield f"{shown_time(first * step)}  {line}  {shown_time((last + 1) * step)}"
    yield f"one block is {step // 60} min; the highest is {counted(top, 'call')}"


def _bars(counts: dict[str, int]) -> Iterable[str]:
    top = max(counts.values())
    names = {name: printable(name or "-")[:40] for name in counts}
    width = max(len(name) for name in names.values())
    for name, count in counts.items():
        bar = "█" * max(1, count * _BAR // top)
        yield f"  {names[name]:<{width}}  {bar:<{_BAR}}  {count}"
