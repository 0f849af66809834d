"""``thoughtgate doctor``: find problems and show how to fix them."""

import contextlib
import os
import sqlite3
import sys
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple

from typer import Exit

from thoughtgate.agents.catalog import AGENTS, usual_way
from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.discovery import NOTHING, discover
from thoughtgate.agents.entries import KeyPath, ServerEntry
from thoughtgate.agents.entry_environment import sets_environment
from thoughtgate.agents.entry_shapes import argv_of
from thoughtgate.agents.installs.installed_configs import InstalledConfigs
from thoughtgate.agents.installs.survey import BROKEN, INSTALLED, NOT_GOVERNED
from thoughtgate.agents.journal import find_journals
from thoughtgate.agents.left_configs import is_live
from thoughtgate.agents.locks import state_lock
from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples, read_config
from thoughtgate.cli.output import counted, write_report
from thoughtgate.errors import EXIT_CONFIG, ConfigError, Conflict, StoreError, UsageError, visible
from thoughtgate.gate.config_requirements import missing_requirements
from thoughtgate.gate.open_governor import record_place
from thoughtgate.gate.run_file import has_ended, read_run_file, runs_directory
from thoughtgate.gate.state_directory import account_home, ensure_directory, state_directory
from thoughtgate.process.own_command import own_command, runs_from_cache
from thoughtgate.record.file import is_written, traffic_path
from thoughtgate.record.stream import STREAMS
from thoughtgate.status.agent_servers import agent_servers, by_agent
from thoughtgate.stores.record_heads import find_head
from thoughtgate.version import __version__
from thoughtgate.wrap.injected_files import stale_folders
from thoughtgate.wrap.run import ACTIVE

app = command_app()

_EXAMPLES = examples("thoughtgate doctor", "thoughtgate doctor --json")


class Finding(NamedTuple):
    """The result of one check."""

    check: str
    ok: bool
    message: str
    fix: str = ""
    """The command that fixes the problem."""


@app.command(epilog=_EXAMPLES)
def doctor(*, config: ConfigOption = None, json_: JsonOption = False) -> None:
    """Check this installation, list problems and show how to fix them.

    The exit code is 0 if there are no problems, 1 if there are.
    """
    # Agents share files, so the same problem may be found twice.
    findings = list(dict.fromkeys(_check(config)))
    as_dicts = [finding._asdict() for finding in findings]
    write_report(as_dicts, map(_line, findings), as_json=json_)
    if not all(finding.ok for finding in findings):
        raise Exit(EXIT_CONFIG)


def _line(finding: Finding) -> str:
    mark = "ok   " if finding.ok else "ERROR"
    hint = f"  ->  {finding.fix}" if finding.fix else ""
    return f"{mark}  {finding.check}: {finding.message}{hint}"


def _check(config: str | None) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("program", ok=True, message=f"thoughtgate {__version__} on Python {version}")
    yield Finding("command", ok=True, message=" ".join(own_command()))
    if runs_from_cache():
        message = "this installation is in a cache and may vanish; do not put it into a config"
        yield Finding("command", ok=True, message=message, fix="uv tool install thoughtgate")
    if os.environ.get(ACTIVE):
        message = "this shell runs inside a wrapped agent; thoughtgate status shows its servers"
        yield Finding("agent", ok=True, message=message)
    state = state_directory(os.environ)
    try:
        ensure_directory(state)
    except StoreError as error:
        yield Finding("state", ok=False, message=str(error), fix="export THOUGHTGATE_STATE_DIR=...")
        return
    yield Finding("state", ok=True, message=state)
    own = state_directory({"HOME": account_home()})
    if own != state:
        message = (
            f"gates that an agent starts use {own} unless their entry says --state-dir {state}"
        )
        yield Finding("state", ok=True, message=message)
    yield from _check_config(config, state)
    yield from _check_wraps(Path(state))
    yield from _check_injected()
    yield from _check_ways()
    yield from _check_entries()
    yield from _check_agents(Path(state))
    yield from _check_run_files()
    yield from _check_stores(Path(state))


def _check_config(config: str | None, state: str) -> Iterator[Finding]:
    try:
        loaded = read_config(config)
    except ConfigError as error:
        named = f" -c {config}" if config else ""
        for problem in error.problems:
            fix = f"edit the file, then: thoughtgate validate-config{named}"
            yield Finding("config", ok=False, message=str(problem), fix=fix)
        return
    yield Finding("config", ok=True, message=loaded.summary)
    for warning in loaded.warnings if loaded.files else ():
        yield Finding("config", ok=True, message=f"warning: {warning}")
    for problem in missing_requirements(loaded.settings, os.environ):
        yield Finding("environment", ok=False, message=str(problem))
    yield from _check_record(record_place(loaded, state), Path(state))


def _check_record(place: str, state: Path) -> Iterator[Finding]:
    """Compare the ends of the record's files with what gates are known to have written."""
    is_whole = True
    for file in () if place in STREAMS else (Path(place), traffic_path(Path(place))):
        head = find_head(state, file)
        if head is not None and not is_written(file, head.number, head.size, head.chain):
            is_whole = False
            message = f"{file}: lines that a gate wrote are missing at the end"
            yield Finding("record", ok=False, message=message, fix="thoughtgate audit verify")
    if is_whole:
        yield Finding("record", ok=True, message=place)


def _check_wraps(state: Path) -> Iterator[Finding]:
    try:
        # Under the lock, so that a wrap that starts or ends now is not taken for a killed one.
        with state_lock(state):
            journals, problems = find_journals(state)
            live = {one.key for one in journals if not has_ended(one.pid) and is_live(one)}
    except Conflict as error:
        yield Finding("wraps", ok=False, message=str(error))
        return
    for problem in problems:
        yield Finding("wraps", ok=False, message=str(problem), fix="thoughtgate unwrap")
    for journal in journals:
        files = ", ".join(str(record.path) for record in journal.files)
        if journal.key in live:
            yield Finding("wraps", ok=True, message=f"process {journal.pid} has wrapped {files}")
        else:
            message = f"process {journal.pid} was killed and did not restore {files}"
            yield Finding("wraps", ok=False, message=message, fix="thoughtgate unwrap")
    if not journals and not problems:
        yield Finding("wraps", ok=True, message="no agent config is left wrapped")


def _check_injected() -> Iterator[Finding]:
    """Find private files that killed wraps left behind."""
    for folder in stale_folders(os.environ):
        message = f"{folder} is left over from a wrap that was killed"
        yield Finding("wraps", ok=False, message=message, fix="thoughtgate unwrap")


def _check_ways() -> Iterator[Finding]:
    """Say how wrap governs each agent that has config files here."""
    for kind, agent in AGENTS.items():
        search = Search(kind, os.environ, Path.cwd(), Path.home(), platform=sys.platform)
        if discover(search).files:
            way = usual_way(kind)
            how = (
                "gives it governed servers at its start"
                if way == "inject"
                else "rewrites its config"
            )
            other = f"; it rewrites its config {agent.rewritten}" if agent.rewritten else ""
            yield Finding("agents", ok=True, message=f"{agent.name}: wrap {how}{other}")


def _check_entries() -> Iterator[Finding]:
    """Check that the configs of all agents can be read, and check every entry in them."""
    wrapped = {
        (record.real, entry.path)
        for journal in find_journals(Path(state_directory(os.environ)))[0]
        for record in journal.files
        for entry in record.entries
    }
    checked = set()  # several agents read the same file
    for kind in AGENTS:
        search = Search(kind, os.environ, Path.cwd(), Path.home(), platform=sys.platform)
        plan = discover(search)
        if not plan.files and not plan.warnings:
            continue
        for problem in dict.fromkeys((*plan.problems, *plan.warnings)):
            is_wrong = problem in plan.problems and not problem.message.startswith(NOTHING)
            yield Finding("agents", ok=not is_wrong, message=f"{plan.agent.name}: {problem}")
        if plan.entries:
            servers = ", ".join(
                f"{visible(one.id)} {_governed(one, wrapped)}" for one in plan.entries
            )
            yield Finding("agents", ok=True, message=f"{plan.agent.name}: {servers}")
        for entry in plan.entries:
            place = (entry.layer.real, entry.path)
            if place not in checked:
                checked.add(place)
                yield from _check_entry(entry, wrapped)


def _governed(entry: ServerEntry, wrapped: Container[tuple[Path, KeyPath]]) -> str:
    if (entry.layer.real, entry.path) in wrapped:
        return "(wrapped)"
    if entry.status == "managed":
        return "(left wrapped)"
    if entry.skipped:
        return "(behind a shim)"
    return f"({entry.status})" if entry.status in {"disabled", "remote"} else "(not governed)"


def _check_entry(entry: ServerEntry, wrapped: Container[tuple[Path, KeyPath]]) -> Iterator[Finding]:
    """Check an entry with a shim: nothing may replace the shim, and its program must exist."""
    where = f"{'.'.join(entry.path)} in {entry.layer.path}"
    if entry.skipped and sets_environment(entry.raw, filled=True):
        message = f"{where} sets variables that can replace or redirect its shim"
        fix = "remove them, or start the agent with thoughtgate wrap"
        yield Finding("shims", ok=False, message=message, fix=fix)
    if entry.status == "managed" and (entry.layer.real, entry.path) not in wrapped:
        message = f"{where} starts the shim of a wrap that is unknown here"
        fix = f"thoughtgate unwrap --config-path {entry.layer.path}"
        yield Finding("shims", ok=False, message=message, fix=fix)
    words = argv_of(entry.raw)
    is_shim = bool(entry.skipped) or entry.status == "managed"
    # For a name without a path, nobody knows where the agent looks for the program.
    is_missing = (
        bool(words) and Path(str(words[0])).is_absolute() and not os.access(words[0], os.X_OK)
    )
    if is_shim and is_missing:
        message = f"{where} starts {words[0]}, which is not there or cannot be run"
        fix = "thoughtgate unwrap, or correct the command"
        yield Finding("shims", ok=False, message=message, fix=fix)


def _check_agents(state: Path) -> Iterator[Finding]:
    """Find installed shims that do not start, and servers that agents start without the gate."""
    for problem in InstalledConfigs(state).problems:
        yield Finding("agents", ok=False, message=str(problem))
    for name, servers in by_agent(agent_servers(state)):
        for one in servers:
            if one.status == BROKEN or (one.note and one.status == INSTALLED):
                message = f"{one.server} in {one.file}: {one.note}"
                ok = one.status == INSTALLED
                yield Finding("agents", ok=ok, message=message, fix="thoughtgate install")
        installed = sum(one.status == INSTALLED for one in servers)
        if installed:
            message = f"{name} has {counted(installed, 'server')} behind the gate for good"
            yield Finding("agents", ok=True, message=message)
        free = [one for one in servers if one.status == NOT_GOVERNED]
        if free:
            ok = not free[0].has_installation
            named = ", ".join(dict.fromkeys(one.server for one in free))
            message = f"{name} starts these servers without the gate: {named}"
            fix = "thoughtgate install" + ", or thoughtgate wrap" * ok
            yield Finding("agents", ok=ok, message=message, fix=fix)


def _check_run_files() -> Iterator[Finding]:
    """Find run files of services that have exited; a shim that uses one cannot start."""
    for path in sorted(Path(runs_directory(os.environ)).glob("*.json")):
        try:
            if has_ended(read_run_file(str(path)).pid):
                message = f"{path} belongs to a governance service that has exited"
                yield Finding("runs", ok=False, message=message, fix="thoughtgate unwrap")
        except UsageError as error:
            yield Finding("runs", ok=False, message=str(error), fix=f"rm {path}")


def _check_stores(state: Path) -> Iterator[Finding]:
    for path in sorted(state.glob("*.db")):
        try:
            if not path.is_file():  # opening a pipe would wait for its writer
                raise sqlite3.OperationalError("not a regular file")
            # Read-only, so that checking a store never creates or changes it.
            with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as base:
                answer = base.execute("PRAGMA quick_check").fetchone()[0]
        except sqlite3.Error as error:
            answer = str(error)
        if answer == "ok":
            yield Finding("store", ok=True, message=str(path))
        else:
            message = f"{path} is damaged: {answer}"
            yield Finding("store", ok=False, message=message, fix=f"mv {path} {path}.damaged")
