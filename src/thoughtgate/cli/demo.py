"""``thoughtgate demo``: see calls forwarded, hidden, denied, limited and held, in a minute."""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from thoughtgate.cli.demo_run import Outcome, answer_by_script, run_demo
from thoughtgate.cli.demo_script import FILTERED
from thoughtgate.cli.options import JsonOption, command_app, examples, is_without_colour
from thoughtgate.errors import EXIT_FAILURE

app = command_app()

_EXAMPLES = examples("thoughtgate demo", "thoughtgate demo --ask", "thoughtgate demo --json")

PIPE_WIDTH: Final = 130
"""Columns when the output is no terminal."""

_COLOURS: Final = {
    "forwarded": "green",
    "held, approved": "green",
    "filtered": "cyan",
    "hidden": "cyan",
    "limited": "yellow",
}


@app.command(epilog=_EXAMPLES)
def demo(
    *,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder", metavar="DIR", help="Where to put config and record.", show_default=False
        ),
    ] = None,
    ask: Annotated[bool, typer.Option("--ask", help="Answer the two held calls yourself.")] = False,
    json_: JsonOption = False,
) -> None:
    """Run a sample server behind the real gate and let a scripted agent call its tools.

    Nothing outside a new folder is touched, and nobody has to answer anything. The exit code
    is 0 when every call met the verdict that it is there to show.
    """
    place = folder or Path(tempfile.mkdtemp(prefix="thoughtgate-demo-"))
    place.mkdir(parents=True, exist_ok=True)
    outcome = run_demo(place, os.environ, _ask_person if ask else answer_by_script)
    if json_:
        sys.stdout.write(json.dumps(_as_json(outcome), indent=2) + "\n")
    else:
        _tell(outcome)
    if not outcome.is_as_expected and not ask:
        sys.stderr.write("Error: a verdict is not the one that this demo is there to show.\n")
        raise typer.Exit(EXIT_FAILURE)


def _ask_person(approval: dict[str, Any]) -> tuple[bool, str]:
    call = f"{approval['server']}/{approval['tool']} {approval['arguments']}"
    approved = typer.confirm(f"The agent wants to call {call}. Allow it?", err=True)
    return approved, "answered in the demo"


def _as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "calls": [row._asdict() for row in outcome.rows],
        "reached_the_server": outcome.reached,
        "record": str(outcome.record),
        "record_is_sound": outcome.is_sound,
        "config": str(outcome.config),
        "as_expected": outcome.is_as_expected,
    }


def _tell(outcome: Outcome) -> None:
    from rich.box import SIMPLE_HEAD  # only people need tables
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # A pipe has no width; the table is made for people all the same.
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    console = Console(highlight=False, width=width, no_color=is_without_colour())
    console.print("What the agent tried, and what became of it:")
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("call", "verdict", "why", "what the agent was told"):
        table.add_column(heading, overflow="fold")
    for row in outcome.rows:
        colour = _COLOURS.get(row.verdict, "red")
        table.add_row(Text(row.call), Text(row.verdict, colour), Text(row.why), Text(row.told))
    console.print(table)
    tried = sum(row.verdict != FILTERED for row in outcome.rows)
    console.print(f"{tried} calls were tried; {outcome.reached} reached the server, by its log.")
    console.print(Text(f"The record:  {outcome.record}"), soft_wrap=True)
    console.print(Text(f"Is it whole: {outcome.verification}"), soft_wrap=True)
    console.print(Text(f"The config:  {outcome.config}"), soft_wrap=True)
    console.print("Next: docs/getting-started.md, or 'thoughtgate init' and 'thoughtgate shim'.")
