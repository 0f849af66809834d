"""``thoughtgate status``: running gates, pending approvals and the latest calls."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from rich.text import Text
from typer import Exit, Option

from thoughtgate.agents.installs.survey import BROKEN, NOT_GOVERNED, ServerState
from thoughtgate.cli.options import (
    ConfigOption,
    JsonOption,
    WatchOption,
    command_app,
    examples,
    find_store,
)
from thoughtgate.cli.output import watch_report
from thoughtgate.cli.tables import paint, shown_time, table_lines
from thoughtgate.errors import EXIT_FAILURE, visible
from thoughtgate.status.agent_servers import agent_servers, by_agent
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
"""The titles of columns that differ from the names of their members."""


@app.command(
    epilog=examples(
        "thoughtgate status",
        "thoughtgate status --watch",
        "thoughtgate status --json --calls 50",
        "thoughtgate status -c team.yaml",
    )
)
def status(
    *,
    watch: WatchOption = False,
    config: ConfigOption = None,
    json_: JsonOption = False,
    calls: Annotated[
        int, Option(metavar="N", min=0, max=1000, help="Number of calls to show.")
    ] = 10,
) -> None:
    """Show running gates, their servers, pending approvals and the latest calls.

    If the config names a PostgreSQL store, this includes all gates that share it.
    """
    # Outside ``read``, for the exit code after the last look.
    found: dict[str, Any] = {}

    def read() -> tuple[Any, Iterator[str]]:
        found.clear()
        found.update(gather_status(os.environ, calls, find_store(config)))
        servers = agent_servers(Path(found["state"]))
        found["agents"] = [one.as_json() for one in servers]
        return found, _lines(found, servers)

    watch_report(read, as_json=json_, watch=watch)
    if "problem" in found.get("store", {}):
        raise Exit(EXIT_FAILURE)


def _lines(found: Mapping[str, Any], servers: Sequence[ServerState]) -> Iterator[str]:
    for order in found.get("stopped", ()):
        yield paint(visible(f"STOPPED {describe_stop(order)}"), "bold red")
    yield from _gate_lines(found["gates"], "" if "store" not in found else " on this machine")
    store = found.get("store", {})
    if store:
        yield from _store_lines(store)
    # If the store cannot be read, nothing is known about pending requests.
    if "problem" not in store:
        yield from _approval_lines(found["approvals"])
    yield from _definition_lines(found["definitions"])
    yield from _login_lines(found)
    yield from _limit_lines(found["limits"])
    yield from _fact_lines(found.get("facts", []))
    yield from _call_lines(found["calls"])
    yield from _agent_lines(servers)


def describe_stop(order: Mapping[str, Any]) -> str:
    """Return a stop order as a line of text."""
    target = "all calls" if order["scope"] == "all" else f"{order['scope']} {order['name']}"
    return f"{target} by {order['by']} since {shown_time(order['at'])}: {order['reason']}"


def _gate_lines(gates: list[dict[str, Any]], where: str) -> Iterator[str]:
    if not gates:
        yield f"No gate is running{where}."
    for gate in gates:
        policy = gate.get("policy") or f"config {gate.get('config')}"
        chosen = f", namespace {gate['active']}" if gate.get("active") else ""
        since = shown_time(gate["started_at"])
        yield visible(f"{gate['kind']} (pid {gate['pid']}) since {since}, {policy}{chosen}")
        for problem in (gate.get("problem"), gate.get("config_failure")):
            if problem:
                yield paint(visible(f"  problem: {problem}"), "red")
        if gate.get("needs_restart"):
            late = ", ".join(map(str, gate["needs_restart"]))
            yield paint(visible(f"  after a restart: {late}"), "yellow")
        rows = [describe_server(server) for server in gate.get("servers") or ()]
        yield from table_lines(("server", "status", "tools", "calls", "pid", "note"), rows, STYLES)


def _store_lines(store: dict[str, Any]) -> Iterator[str]:
    yield ""
    if store.get("problem"):
        yield paint(f"problem: {visible(store['problem'])}", "red")
        return
    if not store["gates"]:
        yield "No gate uses the shared store."
        return
    rows = [describe_shared(gate) for gate in store["gates"]]
    columns = ("gate", "host", "pid", "status", "version", "held", "address", "note")
    yield from table_lines(columns, rows, STYLES)


def _approval_lines(approvals: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    if not approvals:
        yield "There are no pending approval requests."
        return
    rows = [
        {**one, "approval": one["id"], "expires": shown_time(one["expires_at"])}
        for one in approvals
    ]
    yield from table_lines(("approval", "server", "tool", "principal", "expires"), rows)
    yield "Answer with: thoughtgate approvals approve ID, or thoughtgate approvals deny ID"


def _definition_lines(definitions: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the changed definitions that nobody has accepted."""
    if definitions:
        yield ""
        yield from table_lines(("server", "kind", "name"), definitions)
        yield "Definitions changed; see: thoughtgate tools diff"


def _login_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Yield who is signed in to remote servers, and which need a login."""
    if found["logins"] or found["needed_logins"]:
        yield ""
    for login in found["logins"]:
        yield visible(f"login {describe_login(login)}")
    for server in found["needed_logins"]:
        text = f"server {server} needs a login; run: {login_command(server, found['gates'])}"
        yield paint(visible(text), "red")


def _limit_lines(limits: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the limits that several gates or workers count together."""
    if limits:
        yield ""
    for count in limits:
        yield visible(f"limit {count['limit']}: {describe_count(count)}")


def _fact_lines(facts: list[dict[str, Any]]) -> Iterator[str]:
    """Yield what is known about the data that agents have seen."""
    if facts:
        yield ""
    for one in facts:
        until = shown_time(one["expires_at"])
        yield visible(f"fact {one['fact']} of {one['principal']} until {until}")


def _call_lines(calls: list[dict[str, Any]]) -> Iterator[str]:
    yield ""
    if not calls:
        yield "There are no calls in the record."
    rows = [{**one, "time": shown_time(one["ts"]), "ms": one["latency_ms"]} for one in calls]
    yield from table_lines(("time", "server", "tool", "decision", "status", "ms"), rows, STYLES)


def _agent_lines(servers: Sequence[ServerState]) -> Iterator[str]:
    """Name the servers that agents start without the gate, and those whose shim does not start."""
    for name, found in by_agent(servers):
        for state, words in ((NOT_GOVERNED, "without the gate"), (BROKEN, "with a broken shim")):
            named = dict.fromkeys(one.server for one in found if one.status == state)
            if named:
                fix = "thoughtgate install, or thoughtgate wrap"
                text = f"{name} starts {words}: {', '.join(named)} ({fix})"
                yield paint(visible(text), "yellow")


def render_cell(value: Any) -> Text:
    """Return a value as text without control characters: agents and servers choose names."""
    text = "" if value is None else str(value)
    return Text(visible(text), style=STYLES.get(text, ""))
