"""``thoughtgate stop``: refuse the calls of a server or a principal, or all calls, at every gate."""

import contextlib
import os
import sys
from pathlib import Path
from typing import Annotated, Final

from typer import Option

from thoughtgate.channels.terminal import identity
from thoughtgate.cli.options import (
    ConfigOption,
    JsonOption,
    command_app,
    examples,
    find_store,
    read_config,
)
from thoughtgate.cli.output import say, write_report
from thoughtgate.errors import ConfigError, UsageError, visible
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.policy.stops import ALL, PRINCIPAL, SERVER, StopOrder
from thoughtgate.status.agent_servers import agent_servers
from thoughtgate.status.overview import gather_gates
from thoughtgate.status.stop_actions import StopActions, order_object

app = command_app()

ServerOption = Annotated[str | None, Option("--server", metavar="ID", help="Only this server.")]
PrincipalOption = Annotated[
    str | None, Option("--principal", metavar="NAME", help="Only this caller.")
]
AllOption = Annotated[bool, Option("--all", help="All calls.")]
ListOption = Annotated[bool, Option("--list", help="Only list what is stopped.")]
ReasonOption = Annotated[
    str | None, Option(metavar="TEXT", help="Why; recorded and shown to people.")
]

ONE_OF: Final = "give one of --server, --principal and --all"


@app.command(
    epilog=examples(
        'thoughtgate stop --server github --reason "incident 12"',
        'thoughtgate stop --all --reason "an agent misbehaves"',
        "thoughtgate stop --list",
    )
)
def stop(
    *,
    server: ServerOption = None,
    principal: PrincipalOption = None,
    all_: AllOption = False,
    reason: ReasonOption = None,
    list_: ListOption = False,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Refuse calls within a second, at every gate that shares the store, until 'thoughtgate resume'.

    Calls that are already running are not interrupted. Held calls cannot be approved.
    """
    actions = StopActions(find_store(config))
    if list_:
        if server is not None or principal is not None or all_ or reason is not None:
            raise UsageError("--list takes no other option than -c and --json")
        _list(actions, json_=json_)
        return
    scope, name = chosen_target(server, principal, all_=all_)
    if not reason or not reason.strip():
        raise UsageError("give a reason, such as --reason 'incident 12'")
    order = actions.stop(scope, name, reason=reason.strip(), by=identity())
    back = "--all" if scope == ALL else f"--{scope} {name}"
    lines = [
        f"Stopped {visible(order.target)}: every gate that shares the store refuses the calls within a second.",
        f"Calls that are already running are not interrupted. To accept calls again: thoughtgate resume {visible(back)}",
    ]
    write_report(order_object(order), lines, as_json=json_)
    if scope == SERVER:
        _warn_of_unknown(name, config)


def _warn_of_unknown(server: str, config: str | None) -> None:
    """Warn if nothing on this machine has the server, because its name may be mistyped."""
    state = state_directory(os.environ)
    known = {one.server for one in agent_servers(Path(state))}
    known |= {str(one["id"]) for gate in gather_gates(state) for one in gate.get("servers") or ()}
    with contextlib.suppress(ConfigError):  # find_store has reported it
        known |= read_config(config).settings.servers.keys() - {"*"}
    if server not in known:
        listed = ", ".join(sorted(known)) or "none"
        say(
            f"warning: no config and no running gate on this machine has a server {server!r}"
            f" (known: {listed}); the order holds for any that gets this id"
        )


def chosen_target(server: str | None, principal: str | None, *, all_: bool) -> tuple[str, str]:
    """Return the scope and the name that the options choose.

    Raises:
        UsageError: they choose nothing, or more than one target.
    """
    given = [(SERVER, server), (PRINCIPAL, principal), (ALL, "" if all_ else None)]
    found = [(scope, name) for scope, name in given if name is not None]
    if len(found) != 1:
        raise UsageError(ONE_OF)
    return found[0]


def _list(actions: StopActions, *, json_: bool) -> None:
    orders = actions.listed()
    write_report([order_object(one) for one in orders], map(describe_order, orders), as_json=json_)
    if not orders and not json_:
        sys.stderr.write("Nothing is stopped.\n")


def describe_order(order: StopOrder) -> str:
    """Return an order as a line of text."""
    found = order_object(order)
    text = f"stopped: {order.target} since {found['at']} by {order.by}: {order.reason}"
    return visible(text)
