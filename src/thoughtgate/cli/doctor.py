"""``thoughtgate doctor``: say what is wrong and how to mend it."""

import contextlib
import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import typer

from thoughtgate import __version__
from thoughtgate.agents.journal import find_journals
from thoughtgate.agents.wrapped_configs import is_live
from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples
from thoughtgate.errors import EXIT_CONFIG, ConfigError, StoreError, UsageError
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.gate.config_requirements import missing_requirements
from thoughtgate.gate.open_governor import record_place
from thoughtgate.gate.run_file import has_ended, read_run_file, runs_directory
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.wrap.rewritten_entry import shim_command
from thoughtgate.wrap.run import ACTIVE

app = command_app()

_EXAMPLES = examples("thoughtgate doctor", "thoughtgate doctor --json")


class Finding(NamedTuple):
    """One thing that was looked at."""

    check: str
    ok: bool
    message: str
    mend: str = ""
    """The command that mends it."""


@app.command(epilog=_EXAMPLES)
def doctor(*, config: ConfigOption = None, json_: JsonOption = False) -> None:
    """Say what is wrong with this installation and how to mend it.

    Exits 0 when all is well, 1 when something needs mending.
    """
    findings = list(_look(config))
    if json_:
        print(json.dumps([finding._asdict() for finding in findings], indent=2))
    else:
        for finding in findings:
            mark = "ok   " if finding.ok else "WRONG"
            hint = f"  ->  {finding.mend}" if finding.mend else ""
            print(f"{mark}  {finding.check}: {finding.message}{hint}")
    if not all(finding.ok for finding in findings):
        raise typer.Exit(EXIT_CONFIG)


def _look(config: str | None) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("program", ok=True, message=f"thoughtgate {__version__} on Python {version}")
    yield Finding("command", ok=True, message=" ".join(shim_command()))
    if os.environ.get(ACTIVE):
        yield Finding("inside", ok=True, message="a wrapped agent; its servers are governed")
    state = state_directory(os.environ)
    try:
        ensure_directory(state)
    except StoreError as error:
        yield Finding(
            "state", ok=False, message=str(error), mend="export THOUGHTGATE_STATE_DIR=..."
        )
        return
    yield Finding("state", ok=True, message=state)
    yield from _look_at_config(config, state)
    yield from _look_at_wraps(Path(state))
    yield from _look_at_runs()
    yield from _look_at_stores(Path(state))


def _look_at_config(config: str | None, state: str) -> Iterator[Finding]:
    try:
        loaded = load_configuration(config, os.environ, str(Path.cwd()))
    except ConfigError as error:
        mend = (
            f"thoughtgate validate-config -c {config}" if config else "thoughtgate validate-config"
        )
        for problem in error.problems:
            yield Finding("config", ok=False, message=str(problem), mend=mend)
        return
    yield Finding(
        "config", ok=True, message=loaded.path or "none: the built-in starter policy applies"
    )
    for warning in loaded.warnings if loaded.path else ():
        yield Finding("config", ok=True, message=f"warning: {warning}")
    for problem in missing_requirements(loaded.settings, os.environ):
        yield Finding("surroundings", ok=False, message=str(problem))
    yield Finding("record", ok=True, message=record_place(loaded, state))


def _look_at_wraps(state: Path) -> Iterator[Finding]:
    journals, problems = find_journals(state)
    for problem in problems:
        yield Finding("wraps", ok=False, message=str(problem), mend="thoughtgate unwrap")
    for journal in journals:
        files = ", ".join(str(record.path) for record in journal.files)
        if is_live(journal):
            yield Finding("wraps", ok=True, message=f"process {journal.pid} governs {files}")
        else:
            message = f"process {journal.pid} is gone and left wrapped: {files}"
            yield Finding("wraps", ok=False, message=message, mend="thoughtgate unwrap")
    if not journals and not problems:
        yield Finding("wraps", ok=True, message="no config file is left wrapped")


def _look_at_runs() -> Iterator[Finding]:
    """Look for run files of services that are gone; a shim that finds one cannot start."""
    for path in sorted(Path(runs_directory(os.environ)).glob("*.json")):
        try:
            if has_ended(read_run_file(str(path)).pid):
                message = f"{path} is left of a service that has ended"
                yield Finding("runs", ok=False, message=message, mend="thoughtgate unwrap")
        except UsageError as error:
            yield Finding("runs", ok=False, message=str(error), mend=f"rm {path}")


def _look_at_stores(state: Path) -> Iterator[Finding]:
    for path in sorted(state.glob("*.db")):
        try:
            with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as base:
                answer = base.execute("PRAGMA quick_check").fetchone()[0]
        except sqlite3.Error as error:
            answer = str(error)
        if answer == "ok":
            yield Finding("store", ok=True, message=str(path))
        else:
            message = f"{path} is damaged: {answer}"
            yield Finding("store", ok=False, message=message, mend=f"mv {path} {path}.damaged")
