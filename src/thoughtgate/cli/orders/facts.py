"""``thoughtgate facts``: show and clear what is known about the data that agents have seen."""

import sys
from typing import Annotated

from typer import Argument, Option

from thoughtgate.cli.options import (
    ConfigOption,
    JsonOption,
    command_app,
    examples,
    find_store,
    require_choice,
)
from thoughtgate.cli.output import write_report
from thoughtgate.errors import Conflict, visible
from thoughtgate.policy.facts import ESTABLISHED
from thoughtgate.status.stop_actions import clear_facts, read_facts

app = command_app(
    "Show and clear the facts of agents: whether they have seen untrusted or private data.",
    examples("thoughtgate facts list", "thoughtgate facts clear local"),
)


@app.command("list", epilog=examples("thoughtgate facts list", "thoughtgate facts list --json"))
def list_facts(*, config: ConfigOption = None, json_: JsonOption = False) -> None:
    """List the facts that hold, by principal."""
    found = read_facts(find_store(config))
    write_report(found, map(describe_fact, found), as_json=json_)
    if not found and not json_:
        sys.stderr.write("No facts are established.\n")


@app.command(epilog=examples("thoughtgate facts clear local --fact untrusted"))
def clear(
    principal: Annotated[str, Argument(metavar="PRINCIPAL", help="As the list shows it.")],
    *,
    fact: Annotated[
        list[str] | None, Option(metavar="FACT", help="untrusted or private; by default both.")
    ] = None,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Let facts of a principal end now, at every gate that shares the store.

    Do this after the agent has started a new conversation: it still knows what it has seen.
    """
    for one in fact or ():
        require_choice("--fact", one, ESTABLISHED)
    count = clear_facts(find_store(config), principal, fact or ())
    if not count:
        raise Conflict(f"no such fact holds for {visible(principal)}; see: thoughtgate facts list")
    lines = [f"Cleared {count} {'fact' if count == 1 else 'facts'} of {visible(principal)}."]
    write_report({"principal": principal, "cleared": count}, lines, as_json=json_)


def describe_fact(found: dict[str, str]) -> str:
    """Return a fact as a line of text."""
    who = "every principal" if found["principal"] == "*" else found["principal"]
    cause = f", from {found['cause']}" if found["cause"] else ""
    return visible(f"{who}: {found['fact']} until {found['expires_at']}{cause}")
