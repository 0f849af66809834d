"""``thoughtgate facts``: show and clear what is known about the data that agents have seen."""

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
from thoughtgate.cli.output import counted, watch_report, write_report
from thoughtgate.cli.tables import shown_time, table_lines
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
    rows = [
        {
            **one,
            "principal": "every principal" if one["principal"] == "*" else one["principal"],
            "until": shown_time(one["expires_at"]),
        }
        for one in found
    ]
    watch_report(
        lambda: (found, table_lines(("principal", "fact", "until", "cause"), rows)),
        as_json=json_,
        nothing="No facts are established.",
    )


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
    """Clear the facts of a principal, at every gate that shares the store.

    Do this only after the agent has started a new conversation: until then, it still knows what
    it has seen.
    """
    for one in fact or ():
        require_choice("--fact", one, ESTABLISHED)
    count = clear_facts(find_store(config), principal, fact or ())
    if not count:
        raise Conflict(f"no such fact holds for {visible(principal)}; see: thoughtgate facts list")
    lines = [f"Cleared {counted(count, 'fact')} of {visible(principal)}."]
    write_report({"principal": principal, "cleared": count}, lines, as_json=json_)
