"""The two ways to put an agent's servers behind the gate for the time of a run.

``Rewriting`` changes the agent's config files and restores them. ``Injecting`` gives the agent
governed entries at its start and touches no file. Both are used in the same way, so that ``run``
does not differ: enter, ``write``, start the agent with ``command`` and ``variables``, leave.
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
    """What the agent may start without the gate, each with the reason."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Servers that the agent does not get in this run, each with the reason."""
    skipped: tuple[str, ...] = ()
    """Servers whose entries run a shim that somebody else configured."""
    files: tuple[str, ...] = ()
    """The config files that are rewritten."""
    written: Mapping[Path, bytes] = MappingProxyType({})
    """What they contain now, by their real paths."""


def rewritten(plan: Plan, done: Rewrite) -> Outcome:
    """Return the outcome of rewriting an agent's files."""
    free = [(entry.id, entry.note or "remote server") for entry in done.ungoverned]
    return Outcome(
        tuple(sorted({entry.id for entry in done.governed})),
        (*dict.fromkeys(free), *((one.place, one.reason) for one in plan.outside)),
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
        """What was found when the files were read last."""
        return self._configs.plan

    @property
    def runs(self) -> Mapping[Path, str]:
        """The runs that rewritten files name, by their real paths; other wraps may have named them."""
        return self._configs.runs

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What the user should know about the files."""
        return tuple(self._configs.warnings)

    @property
    def left(self) -> tuple[Problem, ...]:
        """What the user should know about the restored files."""
        return self._configs.left

    def take_in(self, make: Callable[[Plan], Rewrite]) -> tuple[Plan, Outcome] | None:
        """Rewrite servers that were added during the run too; None if that has to wait."""
        taken = self._configs.take_in(make)
        return (taken[0], rewritten(*taken)) if taken else None

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
    take_in = None
    """The agent has got its servers, and reads no more from its files."""

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
