"""``thoughtgate demo``: see calls being forwarded, hidden, denied, limited and held."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer import Exit, Option

from thoughtgate.cli.demonstration.demo_play import Play
from thoughtgate.cli.demonstration.demo_run import DemoResult, decide_by_script, run_demo
from thoughtgate.cli.demonstration.demo_script import FILTERED
from thoughtgate.cli.options import JsonOption, command_app, examples
from thoughtgate.cli.output import is_without_colour, write_json
from thoughtgate.cli.tables import table_lines
from thoughtgate.errors import EXIT_FAILURE

app = command_app()

_EXAMPLES = examples("thoughtgate demo", "thoughtgate demo --play", "thoughtgate demo --json")

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
        Option(
            metavar="DIR",
            help="Directory for the config and the record. Default: a new temporary one.",
        ),
    ] = None,
    ask: Annotated[bool, Option("--ask", help="Decide about the two held calls yourself.")] = False,
    play: Annotated[
        bool, Option("--play", help="Go through a tutorial: you drive the agent, step by step.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Run a sample server behind the real gate and let a scripted agent call its tools.

    The demo writes only to its own directory and asks you nothing unless you pass --ask or
    --play. The exit code is 0 if every call had the expected outcome.
    """
    directory = folder or Path(tempfile.mkdtemp(prefix="thoughtgate-demo-"))
    directory.mkdir(parents=True, exist_ok=True)
    if play:
        Play(directory, os.environ, print).run()
        return
    result = run_demo(directory, os.environ, _ask_person if ask else decide_by_script)
    if json_:
        write_json(_as_json(result))
    else:
        _print_result(result)
    if not result.is_as_expected and not ask:
        unexpected = [row.call for row in result.rows if row.outcome != row.expected]
        sys.stderr.write(f"Error: unexpected result: {', '.join(unexpected) or 'the record'}.\n")
        raise Exit(EXIT_FAILURE)


def _ask_person(approval: dict[str, Any]) -> tuple[bool, str]:
    call = f"{approval['server']}/{approval['tool']} {approval['arguments']}"
    approved = typer.confirm(f"The agent wants to call {call}. Allow it?", err=True)
    return approved, "decided in the demo"


def _as_json(result: DemoResult) -> dict[str, Any]:
    return {
        "calls": [row._asdict() for row in result.rows],
        "reached_the_server": result.reached,
        "record": str(result.record),
        "record_is_sound": result.is_sound,
        "config": str(result.config),
        "as_expected": result.is_as_expected,
    }


def _print_result(result: DemoResult) -> None:
    from rich.console import Console  # not needed for --json
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, no_color=is_without_colour())
    console.print("What the agent tried, and what happened:\n")
    columns = ("call", "outcome", "reason", "response to the agent")
    if sys.stdout.isatty():  # the reasons are sentences, so they are wrapped where a person reads
        table = Table(box=None, pad_edge=False, header_style="")
        for heading in columns:
            table.add_column(heading.upper(), overflow="fold")
        for row in result.rows:
            outcome = Text(row.outcome, _COLOURS.get(row.outcome, "red"))
            table.add_row(Text(row.call), outcome, Text(row.reason), Text(row.response))
        console.print(table)
    else:
        rows = [dict(zip(columns, row[: len(columns)], strict=True)) for row in result.rows]
        sys.stdout.writelines(f"{line}\n" for line in table_lines(columns, rows))
    console.print()
    tried = sum(row.outcome != FILTERED for row in result.rows)
    console.print(f"The agent made {tried} calls; {result.reached} of them reached the server.")
    console.print(Text(f"Record:    {result.record}"), soft_wrap=True)
    console.print(Text(f"Verified:  {result.verification}"), soft_wrap=True)
    console.print(Text(f"Config:    {result.config}"), soft_wrap=True)
    console.print("Next: read docs/getting-started.md, or run 'thoughtgate init'.")
