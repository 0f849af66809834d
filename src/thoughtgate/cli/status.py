"""``thoughtgate status``: running gates, pending approvals and the latest calls."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Exit, Option

from thoughtgate.agents.installs.survey import BROKEN, NOT_GOVERNED, ServerState
from thoughtgate.cli.installs.agent_servers import agent_servers, by_agent
from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples, find_store
from thoughtgate.cli.output import write_json
from thoughtgate.errors import EXIT_FAILURE, visible
from thoughtgate.status.limit_counts import describe_count
from thoughtgate.status.overview import describe_server, gather_status
from thoughtgate.status.server_logins import describe_login, login_command
from thoughtgate.status.shared_gates import describe_shared

app = command_app()

STYLES: Final = {
    **dict.fromkeys(("running", "up", "OK"), "green"),
    **dict.fromkeys(("starting", "waiting", "stopping", "degraded", "HOLD", "THROTTLE"), "yellow"),
    **dict.fromkeys(
        ("failed", "down", "lost", "failed_to_start", "gone", "ERROR", "TIMEOUT", "BLOCK"), "red"
    ),
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
    servers = agent_servers(Path(found["state"]))
    found["agents"] = [one.as_json() for one in servers]
    if json_:
        write_json(found)
    else:
        console = Console(highlight=False)
        _show(console, found)
        _show_agents(console, servers)
    if "problem" in found.get("store", {}):
        raise Exit(EXIT_FAILURE)


def _show(console: Console, found: Mapping[str, Any]) -> None:
    for order in found.get("stopped", ()):
        text = f"STOPPED {describe_stop(order)}"
        console.print(Text(visible(text), style="bold red"), soft_wrap=True)
    _show_gates(console, found["gates"], "" if "store" not in found else " on this machine")
    store = found.get("store", {})
    if store:
        _show_store(console, store)
    if "problem" not in store:
        _show_approvals(console, found["approvals"])
    _show_definitions(console, found["definitions"])
    _show_logins(console, found)
    _show_limits(console, found["limits"])
    _show_facts(console, found.get("facts", []))
    _show_calls(console, found["calls"])


def describe_stop(order: Mapping[str, Any]) -> str:
    """Return a stop order as a line of text."""
    target = "all calls" if order["scope"] == "all" else f"{order['scope']} {order['name']}"
    return f"{target} by {order['by']} since {order['at']}: {order['reason']}"


def _show_facts(console: Console, facts: list[dict[str, Any]]) -> None:
    """Show what is known about the data that agents have seen."""
    if facts:
        console.print()
    for one in facts:
        text = f"fact {one['fact']} of {one['principal']} until {one['expires_at']}"
        console.print(Text(visible(text)), soft_wrap=True)


def _show_gates(console: Console, gates: list[dict[str, Any]], where: str) -> None:
    if not gates:
        console.print(f"No gate is running{where}.")
    for gate in gates:
        policy = gate.get("policy") or f"config {gate.get('config')}"
        chosen = f", namespace {gate['active']}" if gate.get("active") else ""
        console.print(
            Text(
                f"{gate['kind']} (pid {gate['pid']}) since {gate['started_at']}, {policy}{chosen}"
            ),
            soft_wrap=True,
        )
        for problem in (gate.get("problem"), gate.get("config_failure")):
            if problem:
                console.print(Text(f"  problem: {problem}", style="red"))
        if gate.get("needs_restart"):
            late = ", ".join(map(str, gate["needs_restart"]))
            console.print(Text(visible(f"  after a restart: {late}"), style="yellow"))
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


def _show_approvals(console: Console, approvals: list[dict[str, Any]]) -> None:
    console.print()
    if not approvals:
        console.print("There are no pending approval requests.")
        return
    rows = [{**one, "approval": one["id"]} for one in approvals]
    console.print(_table(("approval", "server", "tool", "principal", "expires_at"), rows))
    console.print("Answer with: thoughtgate approvals approve ID, or thoughtgate approvals deny ID")


def _show_definitions(console: Console, definitions: list[dict[str, Any]]) -> None:
    """Show what servers changed and nobody has accepted."""
    if definitions:
        console.print()
        console.print(_table(("server", "kind", "name"), definitions))
        console.print("Definitions changed; see: thoughtgate tools diff")


def _show_logins(console: Console, found: Mapping[str, Any]) -> None:
    """Show who is signed in to remote servers, and which need a login."""
    if found["logins"] or found["needed_logins"]:
        console.print()
    for login in found["logins"]:
        console.print(Text(visible(f"login {describe_login(login)}")), soft_wrap=True)
    for server in found["needed_logins"]:
        text = f"server {server} needs a login; run: {login_command(server, found['gates'])}"
        console.print(Text(visible(text), style="red"), soft_wrap=True)


def _show_limits(console: Console, limits: list[dict[str, Any]]) -> None:
    """Show the limits that several gates or workers count together."""
    if limits:
        console.print()
    for count in limits:
        text = visible(f"limit {count['limit']}: {describe_count(count)}")
        console.print(Text(text), soft_wrap=True)


def _show_agents(console: Console, servers: Sequence[ServerState]) -> None:
    """Name the servers that agents start without the gate, and those whose shim does not start."""
    for name, found in by_agent(servers):
        for status, words in ((NOT_GOVERNED, "without the gate"), (BROKEN, "with a broken shim")):
            named = dict.fromkeys(one.server for one in found if one.status == status)
            if named:
                fix = "thoughtgate install, or thoughtgate wrap"
                text = f"{name} starts {words}: {', '.join(named)} ({fix})"
                console.print(Text(visible(text), style="yellow"), soft_wrap=True)


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
