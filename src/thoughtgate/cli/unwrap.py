"""``thoughtgate unwrap``: restore agent configs that a killed wrap left changed."""

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from typer import Exit, Option

from thoughtgate.agents.journal import Journal, find_journals
from thoughtgate.agents.left_configs import is_live, remove_entries, restore_orphan
from thoughtgate.agents.locks import state_lock
from thoughtgate.agents.restoration import RestoreOutcome
from thoughtgate.cli.options import JsonOption, command_app, examples
from thoughtgate.cli.output import say, write_json
from thoughtgate.errors import EXIT_FAILURE, Conflict
from thoughtgate.gate.run_file import (
    has_ended,
    keys_in_use,
    remove_dead_runs,
    runs_directory,
)
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.wrap.injected_files import remove_stale_files
from thoughtgate.wrap.remote_servers import remove_orphans

app = command_app()

_EXAMPLES = examples("thoughtgate unwrap", "thoughtgate unwrap --config-path ~/.cursor/mcp.json")


@app.command(epilog=_EXAMPLES)
def unwrap(
    *,
    config_path: Annotated[
        Path | None, Option(metavar="FILE", help="Restore only this config file of an agent.")
    ] = None,
    key: Annotated[str | None, Option(hidden=True)] = None,
    quiet: Annotated[
        bool, Option("--quiet", help="Print nothing if there is nothing to restore.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Restore agent configs that a killed wrap left changed.

    Without options, this undoes every wrap that is no longer running. Changes that you or
    the agent made to a file in the meantime are kept; only the gate's own entries are
    reverted. With --config-path, a file is repaired even if its journal is lost.
    """
    state = Path(state_directory(os.environ))
    with state_lock(state):
        journals, unreadable = find_journals(state)
        outcomes = [_undo(one) for one in journals if _is_selected(one, config_path, key)]
        # No journal knows the file, so only the gate's own entries are removed from it.
        if config_path is not None and not any(outcome.restored for outcome in outcomes):
            outcomes.append(remove_entries(config_path.absolute()))
    remove_stale_files(os.environ)
    remove_dead_runs(runs_directory(os.environ))
    remove_orphans(os.environ, keys_in_use(os.environ))
    is_done = any(outcome.restored or outcome.problems for outcome in outcomes)
    nothing = "" if is_done or quiet else "no agent config is wrapped"
    report_restored(outcomes, unreadable, nothing, as_json=json_)


def _is_selected(journal: Journal, config_path: Path | None, key: str | None) -> bool:
    if key is not None:
        return journal.key == key
    if config_path is None:
        return has_ended(journal.pid) or not is_live(journal)
    wanted = os.path.realpath(config_path)
    return any(os.path.realpath(record.path) == wanted for record in journal.files)


def _undo(journal: Journal) -> RestoreOutcome:
    try:
        return restore_orphan(journal, ended=has_ended(journal.pid))
    except Conflict as error:
        raise Conflict(f"{error}; end that wrap (process {journal.pid}) instead") from None


def report_restored(
    outcomes: Iterable[RestoreOutcome], unreadable: Sequence[object], nothing: str, *, as_json: bool
) -> None:
    """Print which agent configs were restored, and exit with a failure if there were problems.

    ``nothing`` says why there was nothing to restore.
    """
    report = {
        "restored": [str(path) for outcome in outcomes for path in outcome.restored],
        "warnings": [str(one) for outcome in outcomes for one in outcome.warnings],
        "problems": [str(one) for outcome in outcomes for one in outcome.problems]
        + [str(one) for one in unreadable],
    }
    if as_json:
        write_json(report)
    for path in report["restored"]:
        say(f"restored {path}")
    for text in report["warnings"]:
        say(f"warning: {text}")
    for text in report["problems"]:
        sys.stderr.write(f"Error: {text}\n")
    if nothing and not unreadable and not as_json:
        say(f"nothing to restore: {nothing}")
    if report["problems"]:
        raise Exit(EXIT_FAILURE)
