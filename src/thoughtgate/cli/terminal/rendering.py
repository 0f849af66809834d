"""The texts of the terminal interface: the rows of its tables, and the overview.

Agents and servers choose names, so everything shown has its control characters replaced.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from thoughtgate.channels.terminal import render_countdown
from thoughtgate.cli.output import counted
from thoughtgate.cli.status import STYLES, describe_stop, render_cell
from thoughtgate.errors import visible
from thoughtgate.record.call_rows import parse_time
from thoughtgate.status.server_logins import login_command
from thoughtgate.status.server_status import ServerStatus
from thoughtgate.status.shared_gates import RUNNING, describe_shared
from thoughtgate.web.approvals.arguments import gist
from thoughtgate.web.templating import WORDS, shown_duration

COLUMNS: Final = {
    "inbox": ("id", "left", "server", "tool", "by", "arguments"),
    "calls": ("ago", "server", "tool", "verdict", "result", "ms", "why"),
    "servers": ("server", "state", "gate", "tools", "calls", "failed", "p95 ms", "note"),
    "gates": ("gate", "host", "pid", "state", "version", "held", "note"),
}

RANKED: Final = {
    "denials": "Denied by rule",
    "refusals": "Errors by kind",
    "tools": "Tools",
    "principals": "Callers",
}
RANKS: Final = 4
"""Names per ranking, so that four of them fit a screen of 24 lines."""
BAR: Final = 8
"""Characters of the longest bar."""

SPARKS: Final = "▁▂▃▄▅▆▇█"

_STYLES: Final = {
    **STYLES,
    **dict.fromkeys(("allowed", "ok", "approved"), "green"),
    **dict.fromkeys(("held", "limited", "needs login"), "yellow"),
    **dict.fromkeys(("denied", "failed", "timeout"), "red"),
}


def inbox_rows(approvals: Iterable[Mapping[str, Any]], now: float) -> dict[str, Sequence[Text]]:
    """Return the approval requests by id."""
    return {one["id"]: _cells(_inbox_row(one, now)) for one in approvals}


def _inbox_row(approval: Mapping[str, Any], now: float) -> tuple[Any, ...]:
    return (
        approval["id"],
        render_countdown((parse_time(approval["expires_at"]) or now) - now),
        approval["server"],
        approval["tool"],
        approval.get("client") or approval["principal"],
        brief_arguments(approval),
    )


def brief_arguments(approval: Mapping[str, Any]) -> str:
    """Return the beginning of a held request's arguments, the most telling ones first."""
    extra = approval.get("extra")
    carried = {**approval["arguments"], **({"(extra)": extra} if extra else {})}
    return gist(json.dumps(carried, ensure_ascii=False)) if carried else "no arguments"


def call_rows(calls: Iterable[Mapping[str, Any]], now: float) -> dict[str, Sequence[Text]]:
    """Return recorded calls by id."""
    return {one["call_id"]: _cells(_call_row(one, now)) for one in calls}


def _call_row(call: Mapping[str, Any], now: float) -> tuple[Any, ...]:
    at = call["started_at"] or call["decided_at"] or call["ended_at"]
    verdict = _word(call["decision"])
    # The verdict on a held call is the person's decision.
    answered = _word(call["approval"]) if verdict == "held" else ""
    # A refused call has no result, except with the development profile, where it was made.
    is_made = verdict not in {"denied", "limited"} or call["enforced"] == 0
    result = (_word(call["status"]) or "open") if is_made else ""
    return (
        shown_duration(now - at) if at else "",
        call["server"],
        call["tool"],
        answered or verdict,
        result,
        call["latency_ms"],
        call["error_kind"] or call["error_class"] or (call["rule"] if verdict == "denied" else ""),
    )


def server_rows(servers: Iterable[ServerStatus]) -> dict[str, Sequence[Text]]:
    """Return servers by gate and name; a server with several gates has several rows."""
    rows = {}
    for server in servers:
        totals = server.totals
        counts = (totals.calls, totals.failed, totals.p95)
        for gate in server.gates:
            where, note = f"{gate.kind} {gate.gate}", gate.note or gate.cause
            row = (server.name, gate.state, where, gate.tools, *counts, note)
            rows[f"{gate.gate} {server.name}"] = _cells(row)
        if not server.gates:
            rows[f"0 {server.name}"] = _cells((server.name, server.state, "", None, *counts, ""))
    return rows


def gate_rows(status: Mapping[str, Any], now: float) -> dict[str, Sequence[Text]]:
    """Return the gates of this machine, or all that share the store."""
    shared = (status.get("store") or {}).get("gates", [])
    told = [describe_shared(one) for one in shared] or [_local_gate(one) for one in status["gates"]]
    rows = {}
    for one in told:
        left = parse_time(one.get("started_at") or "")
        since = f"for {shown_duration(now - left)}" if left and one["status"] == RUNNING else ""
        note = "; ".join(part for part in (one.get("note"), one["address"], since) if part)
        facts = (one["gate"], one.get("host"), one.get("pid"), one["status"])
        row = (*facts, one.get("version"), one.get("held"), note)
        rows[f"{one.get('host')} {one.get('pid')} {one['gate']}"] = _cells(row)
    return rows


def _local_gate(gate: Mapping[str, Any]) -> dict[str, Any]:
    """Return a gate of this machine as a row of the table."""
    name = " ".join(str(gate[part]) for part in ("kind", "server") if gate.get(part))
    return {**gate, "gate": name, "status": RUNNING, "address": gate.get("url")}


def summary(status: Mapping[str, Any]) -> str:
    """Return the line at the top: what is stopped, or how much there is of everything."""
    stopped = ", ".join(describe_stop(order) for order in status.get("stopped", ()))
    if stopped:
        return visible(f"STOPPED {stopped}")
    store, shared = status.get("store"), ""
    if store is not None:
        shared = f" ({len(store.get('gates', ()))} share the store)"
    gates = counted(len(status["gates"]), "gate")
    return f"{gates}{shared}, {counted(len(status['approvals']), 'approval')} pending"


def overview(status: Mapping[str, Any], now: float) -> Group:
    """Return the overview: what needs attention, and the calls of the last day."""
    parts: list[Any] = [*_attention(status, now), Text("")]
    stats = status.get("stats") or {}
    if not stats.get("calls"):
        return Group(*parts, Text("No calls on record in the last day."))
    return Group(*parts, *_totals(stats), Text(""), _rankings(stats))


def _attention(status: Mapping[str, Any], now: float) -> Iterator[Text]:
    """Yield what waits for a person, or what is wrong; a line for each."""
    waiting = status["approvals"]
    for problem in ((status.get("store") or {}).get("problem"), status.get("record_problem")):
        if problem:
            yield _line("problem", visible(problem), "red")
    for order in status.get("stopped", ()):
        yield _line("stopped", visible(describe_stop(order)), "red")
    if waiting:
        first = min(parse_time(one["expires_at"]) or now for one in waiting)
        told = f"{counted(len(waiting), 'approval')} pending, the next expires in"
        yield _line("inbox", f"{told} {render_countdown(first - now)}; press 2", "yellow")
    else:
        yield _line("inbox", "no approval is pending", "")
    yield _line("servers", *_servers(status["servers"]))
    for name in status.get("needed_logins", ()):
        command = login_command(name, status["gates"])
        yield _line("login", visible(f"{name} needs a login; run: {command}"), "yellow")
    changed = status.get("definitions")
    if changed:
        told = f"{counted(len(changed), 'definition')} changed; run: thoughtgate tools diff"
        yield _line("tools", told, "yellow")
    for gate in status["gates"]:
        for problem in (gate.get("problem"), gate.get("config_failure")):
            if problem:
                yield _line("gate", visible(f"{gate['kind']} {gate['pid']}: {problem}"), "red")


def _servers(servers: Sequence[ServerStatus]) -> tuple[str, str]:
    if not servers:
        return "none; start a gate with thoughtgate wrap, install or serve", ""
    counts: dict[str, list[str]] = {}
    for one in servers:
        counts.setdefault(one.state, []).append(one.name)
    told = (
        f"{len(names)} {state}"
        + (f" ({', '.join(names[:3])})" if state in {"failed", "needs login"} else "")
        for state, names in counts.items()
    )
    return visible(", ".join(told)), "red" if "failed" in counts else ""


def _totals(stats: Mapping[str, Any]) -> Iterator[Text]:
    verdicts = [f"{number} {_word(name)}" for name, number in stats["decisions"].items() if name]
    allowed = stats["decisions"].get("ALLOW", 0)
    share = f" ({100 * stats['failed'] / allowed:.1f} %)" if allowed else ""
    failed = f"{stats['failed']} failed{share}"
    yield _line("last day", ", ".join([counted(stats["calls"], "call"), *verdicts, failed]), "")
    times = [f"{name} {ms} ms" for name, ms in stats["latency_ms"].items() if ms is not None]
    if times:
        yield _line("latency", ", ".join(times), "")
    answers = stats["approval_s"].get("p50")
    if answers is not None:
        yield _line("answers", f"half of them within {shown_duration(answers)}", "")
    yield _line("over time", _sparks(stats), "cyan")


def _sparks(stats: Mapping[str, Any]) -> str:
    """Return the calls over time as a line of bars, up to the last step that has calls."""
    steps: dict[float, int] = {}
    for at, _, number in stats["over_time"]:
        steps[at] = steps.get(at, 0) + number
    if not steps:
        return ""
    most, step = max(steps.values()), stats["step_s"]
    start = stats.get("since") or min(steps)
    number = round((max(steps) - start) / step) + 1
    counts = (steps.get(start + at * step, 0) for at in range(number))
    top = len(SPARKS) - 1
    return "".join(SPARKS[-(-count * top // most)] for count in counts)


def _rankings(stats: Mapping[str, Any]) -> Table:
    grid = Table.grid(expand=True, padding=(0, 2))
    shown = [_ranking(title, stats.get(name) or {}) for name, title in RANKED.items()]
    for _ in range(2):
        grid.add_column(ratio=1)
    for left, right in zip(shown[::2], shown[1::2], strict=True):
        grid.add_row(left, right)
    return grid


def _ranking(title: str, counts: Mapping[str, int]) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, width=BAR)
    table.add_row(Text(title, "bold"))
    ranked = list(counts.items())[:RANKS]
    most = max((number for _, number in ranked), default=1)
    for name, number in ranked:
        bar = "█" * max(1, round(BAR * number / most))
        table.add_row(Text(visible(name or "unknown")), Text(str(number)), Text(bar, "cyan"))
    if not ranked:
        table.add_row(Text("none", "grey50"))
    return table


def _line(name: str, text: str, style: str) -> Text:
    return Text.assemble((f"{name:<10} ", "bold"), (text, style))


def _word(word: str | None) -> str:
    return WORDS.get(word, word.lower()) if word else ""


def _cells(row: Iterable[Any]) -> Sequence[Text]:
    cells = map(render_cell, row)
    return [Text(cell.plain, _STYLES.get(cell.plain, "")) for cell in cells]
