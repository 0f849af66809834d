"""``install`` and ``uninstall``: standalone shims that stay in agents' configs.

Composes the command lines of the shims and keeps what they need in the state directory: the
variables and the URLs of entries, in private files. ``agents.installs`` writes the config files. No
run and no governance service is involved.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.config_paths import Search, git_root
from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.entry_environment import ENTRY_OPTION
from thoughtgate.agents.expansion import has_reference
from thoughtgate.agents.installs.installed_configs import InstalledConfigs
from thoughtgate.agents.journal import Journal
from thoughtgate.agents.restoration import RestoreOutcome
from thoughtgate.agents.rewrite import FileRewrite, Rewrite, rewrite
from thoughtgate.config.settings import Settings
from thoughtgate.errors import ConfigError, Conflict, Problem
from thoughtgate.gate.installs.entry_variables import DIRECTORY as ENTRIES
from thoughtgate.gate.installs.entry_variables import write_entry
from thoughtgate.process.own_command import own_command
from thoughtgate.wrap.remote_servers import Remotes
from thoughtgate.wrap.remotes_file import DIRECTORY as REMOTES
from thoughtgate.wrap.remotes_file import INSTALLED
from thoughtgate.wrap.server_variables import ServerVariables, key_of_entry

_ATTEMPTS: Final = 5
"""How often files may change between reading and writing before an installation gives up."""

_PROXY_VARIABLES: Final = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})

_GIT_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class InstallOptions:
    """The options of an installation's shims, and which entries get a shim."""

    state: str
    """The absolute path of the state directory."""
    settings: Settings
    config: str = ""
    """The absolute path of ThoughtGate's own config file; empty for the default places."""
    profile: str = ""
    remote: bool = True
    """Also put remote servers behind the gate, if they can be reached without the agent."""

    @property
    def words(self) -> list[str]:
        """The options on the command line of every shim."""
        words = ["-c", self.config] if self.config else []
        words += ["--state-dir", self.state]
        return [*words, *(["--profile", self.profile] if self.profile else [])]


@dataclass(slots=True)
class AgentReport:
    """What an installation did, or would do, for one agent."""

    agent: str
    files: list[dict[str, Any]] = field(default_factory=list)
    """Each with its path, the servers behind the gate, and whether it changed."""
    changes: tuple[FileRewrite, ...] = ()
    """The files that differ from what they contained."""
    ungoverned: list[tuple[str, str]] = field(default_factory=list)
    """What the agent may start without the gate, with the reason."""
    not_started: list[str] = field(default_factory=list)
    """The servers that must not start, because their variables are not known."""
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Return the report as ``install --json`` prints it."""
        return {
            "agent": self.agent,
            "files": self.files,
            "not_governed": [{"server": name, "reason": why} for name, why in self.ungoverned],
            "not_started": self.not_started,
            "warnings": self.warnings,
            "problems": self.problems,
        }


class EntryCommands:
    """The command lines for the entries of one plan, with what has to be kept for them."""

    def __init__(self, plan: Plan, environ: Mapping[str, str], options: InstallOptions) -> None:
        self._plan = plan
        self._options = options
        self.variables = ServerVariables(plan, environ, one_run=False)
        self.remotes: dict[str, Remotes] = {}
        """By the key of an entry."""
        self.reasons: dict[str, str] = {}
        """By the key of a remote entry: why it stays with the agent."""
        # Only these: other values of the environment belong to this shell, and a secret must not
        # be stored in a file.
        self._environ = {
            name: value for name, value in environ.items() if name.lower() in _PROXY_VARIABLES
        }

    def rewrite(self) -> Rewrite:
        """Put every entry behind a standalone shim.

        Raises:
            ConfigError: a file cannot be edited safely.
        """
        done = rewrite(self._plan, own_command(), self._shim, self._proxy)
        noted = [
            replace(entry, note=entry.note or self.reasons.get(key_of_entry(entry), ""))
            for entry in done.ungoverned
        ]
        return replace(done, ungoverned=tuple(noted))

    def save(self) -> None:
        """Write the files that the command lines name."""
        for key, content in self.variables.contents.items():
            write_entry(self._options.state, key, content)
        for key, remotes in self.remotes.items():
            remotes.save(self._remotes_path(key))

    def _shim(self, entry: ServerEntry) -> list[str]:
        words = ["shim", "--server-id", entry.id, *self._options.words]
        if entry.skipped:
            words += ["--skip", str(entry.skipped)]
        if chosen := self.variables.key_of(entry):
            words += [ENTRY_OPTION, chosen]
        return [*words, "--"]

    def _proxy(self, entry: ServerEntry) -> tuple[str, list[str]] | None:
        key = key_of_entry(entry)
        remotes, reason = self._reach(entry)
        if remotes is None:
            self.reasons[key] = reason
            return None
        self.remotes[key] = remotes
        own, place = own_command(), str(self._remotes_path(key))
        name = str(remotes.name_of(entry))
        # The shim in front of the proxy records; a second record would count each call twice.
        proxy = ["proxy", "--stdio", "-c", place, "--server", name, "--audit", os.devnull]
        proxy += ["--state-dir", self._options.state]
        return own[0], [*own[1:], *self._shim(entry), *own, *proxy]

    def _reach(self, entry: ServerEntry) -> tuple[Remotes | None, str]:
        """Return how a proxy reaches a remote entry in every run, or why it cannot."""
        if not self._options.remote:
            return None, "remote server"
        texts = [entry.url, *map(str, entry.headers.values())]
        if any(has_reference(text, self._plan.agent.syntax) for text in texts):
            return None, "refers to variables, which only the agent has; use thoughtgate wrap"
        alone = replace(self._plan, entries=(entry,))
        remotes = Remotes(alone, self._environ, self._options.settings, self._options.config)
        if remotes.name_of(entry) is None:
            return None, "only the agent can reach it; use thoughtgate wrap"
        if needed := remotes.needed_variables():
            return None, f"needs the variable {needed[0]} at each start; use thoughtgate wrap"
        return remotes, ""

    def _remotes_path(self, key: str) -> Path:
        return Path(self._options.state, REMOTES, f"{INSTALLED}{key}.json")


def preview_agent(
    configs: InstalledConfigs, search: Search, environ: Mapping[str, str], options: InstallOptions
) -> AgentReport:
    """Return what ``install_agent`` would do; nothing is written."""
    report = AgentReport(search.agent_type)
    with _reporting(report):
        plan = configs.plan(search)
        commands = EntryCommands(plan, environ, options)
        _describe(report, configs, plan, commands, commands.rewrite())
    return report


def install_agent(
    configs: InstalledConfigs,
    search: Search,
    environ: Mapping[str, str],
    options: InstallOptions,
    started_at: str,
) -> AgentReport:
    """Put a shim in front of every server of an agent; repeat it for servers that were added later.

    Problems are in the report: an agent whose files cannot be written does not stop the others.
    """
    report = AgentReport(search.agent_type)
    with _reporting(report):
        # Locking restores what killed wraps left, so the plan is made again with the locks held.
        _lock(configs, configs.plan(search), report)
        for _ in range(_ATTEMPTS):
            plan = configs.plan(search)
            _lock(configs, plan, report)
            plan.require()
            _refuse_wrapped(plan)
            commands = EntryCommands(plan, environ, options)
            done = commands.rewrite()
            # The command lines work only with these files, so they come first.
            commands.save()
            _describe(report, configs, plan, commands, done)
            if all(configs.write(one, search.agent_type, started_at) for one in done.files):
                configs.drop_empty(plan, done.files)
                break
        else:
            raise Conflict("the config files keep changing; close the agent and try again")
    configs.unlock()
    if report.problems:
        written = {str(one.files[0].path) for one in configs.journals.values()}
        report.files = [one for one in report.files if one["path"] in written]
    return report


def uninstall(
    configs: InstalledConfigs, journals: Iterable[Journal], agents: Iterable[str], state: str
) -> list[RestoreOutcome]:
    """Restore installed files; a file that other agents use too stays installed for those.

    Args:
        configs: the installed files.
        journals: the journals of the files to restore.
        agents: the agents to restore them for; empty for all.
        state: the state directory.
    """
    chosen = frozenset(agents)
    outcomes = []
    for journal in journals:
        others = frozenset(journal.agent_type.split(",")) - chosen
        if chosen and others:
            configs.keep_for(journal, others)
            message = f"stays behind the gate for {', '.join(sorted(others))}"
            kept = Problem("", message, str(journal.files[0].path))
            outcomes.append(RestoreOutcome(warnings=(kept,)))
            continue
        try:
            outcomes.append(configs.remove(journal))
        except Conflict as error:
            problem = Problem("", str(error), str(journal.files[0].path))
            outcomes.append(RestoreOutcome(problems=(problem,)))
    remove_unused(configs, state)
    return outcomes


def remove_unused(configs: InstalledConfigs, state: str) -> None:
    """Remove the private files that no installed command line names."""
    if configs.problems:  # a journal that cannot be read may name any of them
        return
    words = {word for head in configs.heads() for word in head}
    for path in Path(state, ENTRIES).glob("*"):
        # Also the temporary files of a process that was killed.
        if path.name.removesuffix(".json") not in words:
            path.unlink(missing_ok=True)
    for path in Path(state, REMOTES).glob(f"{INSTALLED}*.json"):
        if str(path) not in words:
            path.unlink(missing_ok=True)


def is_tracked(path: Path) -> bool:
    """Tell whether git tracks a file, so that its changes would be committed."""
    import subprocess  # only for files in a work tree

    if git_root(path.parent) is None:
        return False
    # A repository's config can name programs that git would start.
    safe = ["-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"]
    command = ["git", *safe, "ls-files", "--error-unmatch", "--", path.name]
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            command, cwd=path.parent, capture_output=True, timeout=_GIT_TIMEOUT_S, check=False
        )
        return done.returncode == 0
    return False


@contextlib.contextmanager
def _reporting(report: AgentReport) -> Iterator[None]:
    """Turn exceptions into problems of a report, so that one agent does not stop the others."""
    try:
        yield
    except ConfigError as error:
        report.problems += map(str, error.problems)
    except Conflict as error:
        report.problems.append(str(error))
    except OSError as error:
        report.problems.append(
            f"{error.filename or 'a file'}: cannot be written: {error.strerror or error}"
        )


def _lock(configs: InstalledConfigs, plan: Plan, report: AgentReport) -> None:
    """Lock the files of a plan that can change."""
    entries = (entry for entry in plan.entries if entry.status != "unsupported")
    files = {entry.layer.real for entry in entries if entry.layer.writable}
    report.warnings += map(str, configs.lock(files))


def _refuse_wrapped(plan: Plan) -> None:
    """Refuse entries that a wrap left and no journal describes."""
    left = plan.with_status("managed")
    if left:
        path = left[0].layer.path
        raise Conflict(
            f"{path}: {'.'.join(left[0].path)} is still wrapped; "
            f"restore it with: thoughtgate unwrap --config-path {path}"
        )


def _describe(
    report: AgentReport,
    configs: InstalledConfigs,
    plan: Plan,
    commands: EntryCommands,
    done: Rewrite,
) -> None:
    """Fill in what a rewrite changes and leaves out."""
    plan.require()
    changes = [configs.current(one) for one in done.files]
    report.changes = tuple(one for one in changes if one.file.content != one.content)
    changed = {one.file.real for one in report.changes}
    report.files = [
        {
            "path": str(one.file.path),
            "servers": sorted({record.server_id for record in one.records}),
            "changed": one.file.real in changed,
        }
        for one in done.files
    ]
    report.warnings += [str(one) for one in plan.warnings if str(one) not in report.warnings]
    entries = [(entry.id, entry.note or "remote server") for entry in done.ungoverned]
    outside = [(one.place, one.reason) for one in plan.outside]
    report.ungoverned = list(dict.fromkeys([*entries, *outside]))
    report.not_started = commands.variables.refused
