"""``thoughtgate status``: running gates, pending approvals and the latest calls."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Option

from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples, find_store
from thoughtgate.cli.output import write_json
from thoughtgate.errors import visible
from thoughtgate.status.limit_counts import describe_count
from thoughtgate.status.overview import gather_status
from thoughtgate.status.shared_gates import RUNNING

app = command_app()

STYLES: Final = {
    **dict.fromkeys(("running", "OK"), "green"),
    **dict.fromkeys(("starting", "waiting", "stopping", "HOLD", "THROTTLE"), "yellow"),
    **dict.fromkeys(("failed", "gone", "ERROR", "TIMEOUT", "BLOCK"), "red"),
    "OPEN": "cyan",
    "halted": "grey50",
}
"""The colours of states, decisions and results."""

TITLES: Final = {"ts": "when", "latency_ms": "ms", "expires_at": "expires"}
"""The titles of columns that are not called like their member."""


@app.command(
    epilog=examples(
        "thoughtgate status",
        "thoughtgate status --json --calls 50",
        "thoughtgate status -c team.yaml",
    )
)
def status(
    *,
    config: ConfigOption = None,
    json_: JsonOption = False,
    calls: Annotated[
        int, Option(metavar="N", min=0, max=1000, help="Number of calls to show.")
    ] = 10,
) -> None:
    """Show running gates, their servers, pending approvals and the latest calls.

    If the config names a PostgreSQL store, this includes all gates that share it.
    """
    found = gather_status(os.environ, calls, find_store(config))
    if json_:
        write_json(found)
        return
    console = Console(highlight=False)
    _show_gates(console, found["gates"])
    if "store" in found:
        _show_store(console, found["store"])
    _show_approvals(console, found["approvals"])
    _show_limits(console, found["limits"])
    _show_calls(console, found["calls"])


def _show_gates(console: Console, gates: list[dict[str, Any]]) -> None:
    if not gates:
        console.print("No gate is running.")
    for gate in gates:
        where = gate.get("policy") or f"config {gate.get('config')}"
        chosen = f", namespace {gate['active']}" if gate.get("active") else ""
        console.print(
            Text(f"{gate['kind']} (pid {gate['pid']}) since {gate['started_at']}, {where}{chosen}"),
            soft_wrap=True,
        )
        for problem in (gate.get("problem"), gate.get("config_failure")):
            if problem:
                console.print(Text(f"  problem: {problem}", style="red"))
        if gate.get("servers"):
            rows = [describe_server(server) for server in gate["servers"]]
            console.print(_table(("server", "status", "tools", "calls", "pid", "note"), rows))


def _show_store(console: Console, store: dict[str, Any]) -> None:
    console.print()
    if store.get("problem"):
        console.print(Text(f"problem: {visible(store['problem'])}", style="red"), soft_wrap=True)
        return
    if not store["gates"]:
        console.print("No gate uses the shared store.")
        return
    rows = [describe_shared(gate) for gate in store["gates"]]
    columns = ("gate", "host", "pid", "status", "version", "held", "address", "note")
    console.print(_table(columns, rows))


def describe_shared(gate: Mapping[str, Any]) -> dict[str, Any]:
    """Return a gate that shares the store, with a note on what it holds and how it differs."""
    notes = []
    if gate["status"] != RUNNING:
        notes.append(f"died or cannot reach the store, since {gate['expires_at']}")
    if gate.get("degraded"):
        notes.append(f"degraded: {', '.join(map(str, gate['degraded']))}")
    notes += [f"another {what} than the others" for what in gate["differs"]]
    if gate["holds"]:
        notes.append(f"holds {', '.join(gate['holds'])}")
    name = " ".join(str(gate[part]) for part in ("kind", "server") if gate.get(part))
    return {**gate, "gate": name, "address": gate.get("url"), "note": "; ".join(notes)}


def _show_approvals(console: Console, approvals: list[dict[str, Any]]) -> None:
    console.print()
    if not approvals:
        console.print("There are no pending approval requests.")
        return
    rows = [{**one, "approval": one["id"]} for one in approvals]
    console.print(_table(("approval", "server", "tool", "principal", "expires_at"), rows))
    console.print("Answer with: thoughtgate approvals approve ID, or thoughtgate approvals deny ID")


def _show_limits(console: Console, limits: list[dict[str, Any]]) -> None:
    """Show the limits that several gates or workers count together."""
    if limits:
        console.print()
    for count in limits:
        text = visible(f"limit {count['limit']}: {describe_count(count)}")
        console.print(Text(text), soft_wrap=True)


def _show_calls(console: Console, calls: list[dict[str, Any]]) -> None:
    console.print()
    if calls:
        columns = ("ts", "server", "tool", "decision", "status", "latency_ms")
        console.print(_table(columns, calls))
    else:
        console.print("There are no calls in the record.")


def _table(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(TITLES.get(name, name), overflow="fold")
    for row in rows:
        table.add_row(*(render_cell(row.get(name), "-") for name in columns))
    return table


def render_cell(value: Any, nothing: str = "") -> Text:
    """Return a value as text; agents and servers choose names, so control characters are replaced."""
    text = nothing if value is None else str(value)
    return Text(visible(text), style=STYLES.get(text, ""))


def describe_server(server: Mapping[str, Any]) -> dict[str, Any]:
    """Return a server with a note that says why it does not run, or else its first warnings."""
    note = server.get("reason") or "; ".join(server.get("warnings", ())[:2])
    return {**server, "server": server["id"], "note": note}
