"""``thoughtgate audit stats``: statistics of the record, with small charts for the terminal."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from thoughtgate.cli.audit.query import RunOption, ServerOption
from thoughtgate.cli.audit.source import find_place, open_ledger, span
from thoughtgate.cli.options import (
    ConfigOption,
    JsonOption,
    RecordOption,
    SinceOption,
    UntilOption,
    examples,
)
from thoughtgate.cli.output import counted, write_report
from thoughtgate.cli.tables import shown_time
from thoughtgate.errors import visible
from thoughtgate.record.export import written_time
from thoughtgate.record.ledger_queries import CallFilter, time_between
from thoughtgate.status.call_statistics import collect_statistics

STATS_EXAMPLES: Final = examples(
    "thoughtgate audit stats --since 1d", "thoughtgate audit stats --server github --json"
)

_STEPS_S: Final = (60, 300, 900, 3600, 4 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
_MAX_BARS: Final = 48
_CHARTS: Final = (
    *("decisions", "statuses", "servers", "tools", "refusals", "denials"),
    *("approvals", "approvers", "frames_refused"),
)
_BLOCKS: Final = " ▁▂▃▄▅▆▇█"
_BAR: Final = 30


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
        step = _step(time_between(ledger.connection, wanted))
        stats = collect_statistics(ledger.connection, wanted, step)
    write_report(_as_json(stats), charts(stats), as_json=json_)


def _as_json(stats: dict[str, Any]) -> dict[str, Any]:
    """Return the statistics with times in the format of the record."""
    steps = [
        {"at": written_time(at), "decision": decision, "calls": count}
        for at, decision, count in stats["over_time"]
    ]
    return {**stats, "over_time": steps}


def charts(stats: dict[str, Any]) -> Iterable[str]:
    """Yield the statistics as lines of text with bar charts."""
    yield f"{counted(stats['calls'], 'call')}, {counted(stats['messages'], 'other message')}"
    yield from _over_time(stats)
    for name in _CHARTS:
        if stats[name]:
            yield ""
            yield name.replace("_", " ")
            yield from _bars(stats[name])
    shares = [
        f"{name} {value} ms" for name, value in stats["latency_ms"].items() if value is not None
    ]
    if shares:
        yield ""
        yield f"latency of answered calls: {', '.join(shares)}"


def _step(width: float) -> int:
    """Return the shortest interval, in seconds, that fits the whole time into the chart."""
    return next((step for step in _STEPS_S if width / step < _MAX_BARS), _STEPS_S[-1])


def _over_time(stats: dict[str, Any]) -> Iterable[str]:
    step = stats["step_s"]
    sums = Counter[int]()
    for at, _, count in stats["over_time"]:
        sums[int(at // step)] += count
    if not sums:
        return
    first, last = min(sums), max(sums)
    shown = [sums[slot] for slot in range(first, min(last, first + _MAX_BARS) + 1)]
    top = max(shown)
    line = "".join(_BLOCKS[-(-count * (len(_BLOCKS) - 1) // top)] for count in shown)
    yield f"{shown_time(first * step)}  {line}  {shown_time((last + 1) * step)}"
    yield f"one block is {step // 60} min; the highest is {counted(top, 'call')}"


def _bars(counts: dict[str, int]) -> Iterable[str]:
    top = max(counts.values())
    names = {name: visible(name or "-")[:40] for name in counts}
    width = max(len(name) for name in names.values())
    for name, count in counts.items():
        bar = "█" * max(1, count * _BAR // top)
        yield f"  {names[name]:<{width}}  {bar:<{_BAR}}  {count}"
