"""The two ways to put an agent's servers behind the gate for the time of a run.

``Rewriting`` changes the agent's config files and restores them. ``Injecting`` gives the agent
governed entries when it starts and touches no file. ``run`` uses both in the same way: enter,
``write``, start the agent with ``command`` and ``variables``, exit.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import NamedTuple, Self

from thoughtgate.agents.catalog import Way
from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.injection.injection import Injection, governed
from thoughtgate.agents.injection.ways import inject
from thoughtgate.agents.rewrite import Rewrite
from thoughtgate.agents.wrapped_configs import WrappedConfigs
from thoughtgate.errors import Problem
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.wrap.injected_files import (
    RunKey,
    base_key,
    folder_of,
    remove_files,
    write_files,
)
from thoughtgate.wrap.rewritten_entry import run_key


class Outcome(NamedTuple):
    """Which servers the agent gets, and how."""

    configured: tuple[str, ...]
    """The servers that are behind the gate."""
    outside: tuple[tuple[str, str], ...]
    """Servers that the agent may start without the gate, each with the reason."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Servers that the agent does not get in this run, each with the reason."""
    skipped: tuple[str, ...] = ()
    """Servers whose entries already contained a shim, which is left out in this run."""
    files: tuple[str, ...] = ()
    """The config files that are rewritten."""
    written: Mapping[Path, bytes] = MappingProxyType({})
    """What they contain now, by their real paths."""


def rewritten(plan: Plan, done: Rewrite) -> Outcome:
    """Return the outcome of rewriting an agent's files."""
    ungoverned = [(entry.id, entry.note or "remote server") for entry in done.ungoverned]
    return Outcome(
        tuple(sorted({entry.id for entry in done.governed})),
        (*dict.fromkeys(ungoverned), *((one.place, one.reason) for one in plan.outside)),
        skipped=tuple(dict.fromkeys(entry.id for entry in done.governed if entry.skipped)),
        files=tuple(str(one.file.path) for one in done.files),
        written={one.file.real: one.content for one in done.files},
    )


def injected(plan: Plan, injection: Injection) -> Outcome:
    """Return the outcome of giving servers to an agent at its start."""
    shims = {entry.id for entry in plan.entries if entry.skipped}
    return Outcome(
        tuple(sorted(injection.governed)),
        tuple((one.place, one.reason) for one in (*injection.outside, *plan.outside)),
        tuple((one.place, one.reason) for one in injection.left_out),
        tuple(name for name in injection.governed if name in shims),
    )


class Rewriting:
    """Changes the agent's config files, under locks and with a journal."""

    way: Way = "rewrite"

    def __init__(
        self, plan: Plan, environ: Mapping[str, str], *, started_at: str, restore: bool
    ) -> None:
        self._claim = RunKey(run_key(plan), environ)
        self.key = self._claim.key
        self.command = (*plan.search.launcher, *plan.search.argv)
        self.variables: Mapping[str, str] = {}
        self._configs = WrappedConfigs(
            plan,
            state=Path(state_directory(environ)),
            key=self.key,
            started_at=started_at,
            restore_on_exit=restore,
        )

    @property
    def plan(self) -> Plan:
        """The plan from the last time that the files were read."""
        return self._configs.plan

    @property
    def runs(self) -> Mapping[Path, str]:
        """The run file that the entries of each rewritten file name, by the file's real path.

        In a file that is shared, this is the run file of the wrap that rewrote the file first.
        """
        return self._configs.runs

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What the user should know about the files."""
        return tuple(self._configs.warnings)

    @property
    def left(self) -> tuple[Problem, ...]:
        """What the user should know about the restored files."""
        return self._configs.left

    def rewrite_added(self, make: Callable[[Plan], Rewrite]) -> tuple[Plan, Outcome] | None:
        """Also rewrite servers that were added during the run; None if that has to wait."""
        found = self._configs.rewrite_added(make)
        return (found[0], rewritten(*found)) if found else None

    def __enter__(self) -> Self:
        try:
            self._configs.__enter__()
        except BaseException:
            self._claim.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._configs.__exit__(kind, error, trace)
        finally:
            self._claim.release()

    def outcome(self, plan: Plan, done: Rewrite) -> Outcome:
        """Return which servers the agent gets if the files are rewritten."""
        return rewritten(plan, done)

    def write(self, make: Callable[[Plan], Rewrite]) -> Outcome:
        """Rewrite the files; ``make`` is called again if one changes meanwhile."""
        done = self._configs.write(make)
        return self.outcome(self.plan, done)


class Injecting:
    """Gives the agent governed entries at its start."""

    way: Way = "inject"
    left: tuple[Problem, ...] = ()
    runs: Mapping[Path, str] = MappingProxyType({})
    rewrite_added = None
    """Not possible: the agent has got its servers when it started, and no file is rewritten."""

    def __init__(self, plan: Plan, environ: Mapping[str, str]) -> None:
        self.plan = plan
        self.warnings: tuple[str, ...] = ()
        self._claim = RunKey(base_key(plan), environ)
        self.key = self._claim.key
        self.command = (*plan.search.launcher, *plan.search.argv)
        self.variables: Mapping[str, str] = {}
        self._folder = folder_of(self.key, environ)
        self._injection: Injection

    def __enter__(self) -> Self:
        try:
            self.plan.require()
        except BaseException:
            self._claim.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        remove_files(self._folder)
        self._claim.release()

    def outcome(self, plan: Plan, done: Rewrite) -> Outcome:
        """Return which servers the agent gets, and keep how it is started."""
        found = governed(plan, done, plan.search.argv, self._folder)
        self._injection = inject(found)
        return injected(plan, self._injection)

    def write(self, make: Callable[[Plan], Rewrite]) -> Outcome:
        """Write the private files, and change the agent's command line and environment."""
        outcome = self.outcome(self.plan, make(self.plan))
        write_files(self._folder, self._injection.files)
        self.command = (*self.plan.search.launcher, *self._injection.command)
        self.variables = self._injection.variables
        self.warnings = self._injection.warnings
        return outcome


Strategy = Rewriting | Injecting
