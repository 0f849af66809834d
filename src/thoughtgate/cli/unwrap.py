"""``thoughtgate unwrap``: put back the agent configs that a killed wrap left rewritten."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from thoughtgate.agents.guard import is_live, mend, salvage
from thoughtgate.agents.journal import Journal, find_journals
from thoughtgate.agents.restoration import Outcome
from thoughtgate.errors import Conflict
from thoughtgate.runtime.state import state_directory
from thoughtgate.runtime.wrap import shim_command

HELP = """Put back the agent configs that a killed wrap left rewritten.

Without options, every wrap that is no longer running is undone.

Examples:

  thoughtgate unwrap

  thoughtgate unwrap --config-path ~/.cursor/mcp.json
"""

app = typer.Typer(add_completion=False)


@app.command(help=HELP)
def unwrap(
    config_path: Annotated[
        Path | None, typer.Option(help="Put back this config file of an agent, and no other.")
    ] = None,
    key: Annotated[str | None, typer.Option(hidden=True)] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing when all is well.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as JSON.")] = False,
) -> None:
    """Undo what the journals say, and take our entries out of a named file."""
    journals, problems = find_journals(Path(state_directory(os.environ)))
    chosen = [one for one in journals if _is_meant(one, config_path, key)]
    outcomes = [_undo(journal) for journal in chosen]
    if config_path is not None and not any(outcome.restored for outcome in outcomes):
        outcomes.append(salvage(config_path.absolute(), tuple(shim_command()[:1])))
    restored = [str(path) for outcome in outcomes for path in outcome.restored]
    warnings = [str(one) for outcome in outcomes for one in outcome.warnings]
    failed = [str(one) for outcome in outcomes for one in outcome.problems]
    failed += [str(one) for one in problems]
    if as_json:
        told = {"restored": restored, "warnings": warnings, "problems": failed}
        print(json.dumps(told, indent=2))
    else:
        _tell(restored, warnings, failed, quiet=quiet)
    if failed:
        raise typer.Exit(2)


def _is_meant(journal: Journal, config_path: Path | None, key: str | None) -> bool:
    if key is not None:
        return journal.key == key
    if config_path is None:
        return not is_live(journal)
    wanted = os.path.realpath(config_path)
    return any(os.path.realpath(record.path) == wanted for record in journal.files)


def _undo(journal: Journal) -> Outcome:
    try:
        return mend(journal)
    except Conflict as error:
        raise Conflict(f"{error}; end that wrap (process {journal.pid}) instead") from None


def _tell(restored: list[str], warnings: list[str], failed: list[str], *, quiet: bool) -> None:
    for path in restored:
        sys.stderr.write(f"thoughtgate: put back {path}\n")
    for text in warnings:
        sys.stderr.write(f"thoughtgate: warning: {text}\n")
    for text in failed:
        sys.stderr.write(f"Error: {text}\n")
    if not (restored or failed or quiet):
        sys.stderr.write("thoughtgate: nothing is wrapped, nothing to put back\n")
