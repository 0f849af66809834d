"""``thoughtgate status``: running gates, pending approvals and the latest calls."""

import os
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Option

from thoughtgate.cli.options import JsonOption, command_app, examples
from thoughtgate.cli.output import printable, write_json
from thoughtgate.status.overview import gather_status

app = command_app()

_STYLES = {
    "running": "green",
    "starting": "yellow",
    "waiting": "yellow",
    "failed": "red",
    "OK": "green",
    "ERROR": "red",
    "TIMEOUT": "red",
    "BLOCK": "red",
    "THROTTLE": "yellow",
    "HOLD": "yellow",
}


@app.command(epilog=examples("thoughtgate status", "thoughtgate status --json --calls 50"))
def status(
    *,
    json_: JsonOption = False,
    calls: Annotated[
        int, Option(metavar="N", min=0, max=1000, help="Number of calls to show.")
    ] = 10,
) -> None:
    """Show running gates, their servers, pending approvals and the latest calls."""
    found = gather_status(os.environ, calls)
    if json_:
        write_json(found)
        return
    console = Console(highlight=False)
    _show_gates(console, found["gates"])
    _show_approvals(console, found["approvals"])
    _show_calls(console, found["calls"])


def _show_gates(console: Console, gates: list[dict[str, Any]]) -> None:
    if not gates:
        console.print("No gate is running.")
    for gate in gates:
        where = f"config {gate['config']}" if gate.get("config") else "starter policy"
        chosen = f", namespace {gate['active']}" if gate.get("active") else ""
        console.print(
            Text(f"{gate['kind']} (pid {gate['pid']}) since {gate['started_at']}, {where}{chosen}"),
            soft_wrap=True,
        )
        for problem in (gate.get("problem"), gate.get("config_failure")):
            if problem:
                console.print(Text(f"  problem: {problem}", style="red"))
        if gate.get("servers"):
            table = _table("server", "status", "tools", "calls", "pid", "note")
            for server in gate["servers"]:
                note = server.get("reason") or "; ".join(server.get("warnings", ())[:2])
                _row(
                    table,
                    server["id"],
                    server["status"],
                    server["tools"],
                    server["calls"],
                    server.get("pid"),
                    note,
                )
            console.print(table)


def _show_approvals(console: Console, approvals: list[dict[str, Any]]) -> None:
    console.print()
    if not approvals:
        console.print("There are no pending approval requests.")
        return
    table = _table("approval", "server", "tool", "principal", "expires")
    for one in approvals:
        _row(table, one["id"], one["server"], one["tool"], one["principal"], one["expires_at"])
    console.print(table)
    console.print("Answer with: thoughtgate approvals approve ID, or thoughtgate approvals deny ID")


def _show_calls(console: Console, calls: list[dict[str, Any]]) -> None:
    console.print()
    if not calls:
        console.print("There are no calls in the record.")
        return
    table = _table("when", "server", "tool", "decision", "status", "ms")
    for call in calls:
        _row(
            table,
            call["ts"],
            call["server"],
            call["tool"],
            call["decision"],
            call["status"],
            call["latency_ms"],
        )
    console.print(table)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _row(table: Table, *values: Any) -> None:
    """Add a row; agents and servers choose names, so control characters are replaced."""
    cells = []
    for value in values:
        text = "-" if value is None else str(value)
        cells.append(Text(printable(text), style=_STYLES.get(text, "")))
    table.add_row(*cells)
