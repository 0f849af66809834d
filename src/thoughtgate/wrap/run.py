"""``wrap``: runs an agent with every MCP server in its config behind the gate.

This module owns the order of the steps. The config is read and the plan made before anything is
created; then come the locks, the record, the service, the governed entries and the agent. At the
end, in every case, the shims are stopped, the files restored or removed and the record closed. If
this process is killed, a guardian process ends the agent and cleans up. ``strategy`` contains the
two ways to give the agent its governed entries.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop

from thoughtgate.agents.catalog import Way
from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.rewrite import Rewrite
from thoughtgate.channels.channel import Channel
from thoughtgate.config.console_settings import describe_link, login_page_at
from thoughtgate.config.secrets import secret_names
from thoughtgate.core.envelope import render_time
from thoughtgate.core.record_events import Record
from thoughtgate.errors import EXIT_FAILURE, ConfigError, Problem, UsageError
from thoughtgate.gate.background import finish, spawn
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.control_socket import ControlServer
from thoughtgate.gate.governor import LOOK_EVERY_S, Governor
from thoughtgate.gate.open_governor import open_governor
from thoughtgate.gate.reload import Reloader
from thoughtgate.gate.run_file import (
    RunFile,
    keys_in_use,
    remove_run_file,
    run_path,
    write_run_file,
)
from thoughtgate.gate.running_gates import DIRECTORY, describe_governed
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.process.ancestry import read_process
from thoughtgate.process.guardian import Guardian
from thoughtgate.process.memory import settle_memory
from thoughtgate.process.orphans import adopt_orphans, reap_orphans
from thoughtgate.process.own_command import own_command
from thoughtgate.service.http_api import GovernanceHandler
from thoughtgate.service.service import Governance
from thoughtgate.transports.asgi import App, AsgiHandler
from thoughtgate.transports.loopback_server import open_listener, serve
from thoughtgate.wrap.added_servers import AddedServers
from thoughtgate.wrap.agent_process import AgentProcess
from thoughtgate.wrap.injected_files import is_first_time
from thoughtgate.wrap.remote_servers import Remotes, remove_orphans
from thoughtgate.wrap.remotes_file import remotes_path
from thoughtgate.wrap.rewritten_entry import is_our_entry, make_rewrite
from thoughtgate.wrap.server_report import ServerReport
from thoughtgate.wrap.server_variables import ServerVariables
from thoughtgate.wrap.strategy import Injecting, Outcome, Rewriting, Strategy
from thoughtgate.wrap.window import Window

SHIM_GRACE_S: Final = 10.0
"""Total time for all shims to stop their servers (F-019)."""

INTERRUPT_S: Final = 2.0
"""Two Ctrl-C within this time stop ``wrap``; a single one is left to the agent."""

REAP_EVERY_S: Final = 0.25
"""How long a process that the agent left behind may remain a zombie."""

ACTIVE: Final = "THOUGHTGATE_ACTIVE"
"""The variable that tells an agent's descendants that they are inside a wrap."""

_HANDLED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class WrapOptions:
    """The options on the command line."""

    port: int = 0
    restore: bool = True
    strict: bool = False
    """Refuse to start if a server would run ungoverned; fail if one never reports."""
    remote: bool = True
    """Also put remote servers behind the gate, if they can be reached without the agent."""
    way: Way = "rewrite"


@dataclass(frozen=True, slots=True)
class WrapReport:
    """The data for the closing summary."""

    exit_code: int
    counts: dict[str, int]
    files: tuple[str, ...] = ()
    """The config files that were rewritten."""
    governed: tuple[str, ...] = ()
    """The servers whose shims reported to the service."""
    silent: tuple[str, ...] = ()
    """The servers whose shims never reported: not started, or not started through the gate."""
    added_outside: tuple[tuple[str, str], ...] = ()
    """Servers that were added during the run and are not governed, each with the reason."""


@dataclass(frozen=True, slots=True)
class WrapHooks:
    """The functions that the caller of ``wrap`` provides."""

    environ: Mapping[str, str]
    say: Callable[[str], None]
    """Prints a line for the user."""
    reload: Callable[[], Loaded]
    """Reads ThoughtGate's own configuration again."""
    console: Callable[[Governance, int], tuple[App, str]] | None = None
    """Creates the console for a service on a port; returns it with the URL to open."""
    observe: Callable[[Record], None] | None = None
    """Receives every event, for metrics."""
    reports_verdicts: bool = False
    """Whether ``observe`` reports verdicts to the operator, so that shims need not."""
    metrics: Callable[[], bytes] | None = None
    channels: Sequence[Channel] = ()
    """Channels that only this caller can open, such as the terminal's bell."""


class Wrap:
    """One wrapped run of one agent."""

    def __init__(self, plan: Plan, loaded: Loaded, options: WrapOptions, around: WrapHooks) -> None:
        self._plan = plan
        self._loaded = loaded
        self._options = options
        self._around = around
        self._say = around.say
        self._state = state_directory(around.environ)
        self._stop = asyncio.Event()
        self._signal = 0
        self._agent: AgentProcess | None = None
        self._watch: Reloader | None = None
        self._added: AddedServers | None = None
        self._make: Callable[[Plan], Rewrite]
        self._strategy: Strategy
        self._key: str
        self._run_path: str
        self._run_file: RunFile

    def run(self) -> WrapReport:
        """Run the agent to its end.

        Raises:
            ConfigError: the agent's files cannot be governed; nothing was started.
            Conflict: another ``wrap`` uses the files, or they are already managed.
            UsageError: this is a ``wrap`` within a ``wrap``, or the agent cannot be started.
        """
        ensure_directory(self._state)
        self._strategy = self._choose_strategy()
        self._key = self._strategy.key
        self._run_path = run_path(self._key, self._around.environ)
        unwrap = [*own_command(), "unwrap", "--key", self._key, "--quiet"]
        # A signal that arrives before the handlers are installed stays pending.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        try:
            # Forked before there are threads, locks or open files to inherit.
            guardian = Guardian(unwrap if self._options.restore else ())
            try:
                with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                    return runner.run(self._run(guardian))
            finally:
                guardian.dismiss()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _choose_strategy(self) -> Strategy:
        environ, options = self._around.environ, self._options
        if options.way == "inject":
            return Injecting(self._plan, environ)
        started_at = render_time(now())
        return Rewriting(self._plan, environ, started_at=started_at, restore=options.restore)

    async def _run(self, guardian: Guardian) -> WrapReport:
        self._listen_for_signals()
        status, code = "FAILED", 2
        with open_listener(self._options.port) as listener, self._strategy:
            environ, observe = self._around.environ, self._around.observe
            # By adopting orphans, wrap keeps sight of processes that the agent detaches from itself.
            governed = describe_governed(read_process(os.getpid()), adopts=adopt_orphans())
            governor = open_governor(
                self._loaded,
                environ,
                self._state,
                channels=self._around.channels,
                observe=observe,
                governed=governed,
            )
            governor.start(now(), command="wrap", agent=self._plan.agent.type)
            try:
                async with self._governance(governor, listener) as governance:
                    report = ServerReport(governance.reported, governor.server_states)
                    outcome = self._give_servers(report, governance)
                    settle_memory()
                    added = self._watch_config(outcome, report, governor)
                    async with self._control(report):
                        if not self._stop.is_set():
                            code = await self._run_agent(governance, guardian)
                        else:
                            code = 128 + self._signal
                    status = _status(code, self._signal)
                    await self._drain(governance)
                    self._added = None
                    added.look(now())  # finds what the agent changed last
            finally:
                governor.finish(status, now())
        for problem in self._strategy.left:
            self._say(f"warning: {problem}")
        if self._options.strict and (report.silent or added.outside):
            code = code or EXIT_FAILURE
        counts = dict(governor.tally.counts)
        added_outside = tuple(added.outside)
        return WrapReport(
            code, counts, outcome.files, report.governed, report.silent, added_outside
        )

    @contextlib.asynccontextmanager
    async def _governance(
        self, governor: Governor, listener: socket.socket
    ) -> AsyncIterator[Governance]:
        """Run the governance service, and write the run file for the shims."""
        settings, around = self._loaded.settings, self._around
        port: int = listener.getsockname()[1]
        governance = Governance(governor, settings, secret_names(settings))
        console, address = around.console(governance, port) if around.console else (None, "")
        governance.login_page = login_page_at(address)
        governance.reports_verdicts = around.reports_verdicts
        # Passed on in the run file alone, with mode 0600: other users can read command lines, and the
        # servers inherit variables.
        token = secrets.token_urlsafe(32)
        handler = GovernanceHandler(
            governance,
            token,
            console=AsgiHandler(console) if console is not None else None,
            metrics=around.metrics,
        )
        handler.port = port  # so that a request with another port in its Host header is rejected
        profile = self._loaded.policy.profile
        self._run_file = RunFile("127.0.0.1", port, token, profile, os.getpid())
        self._watch = Reloader(
            governor,
            self._loaded,
            around.reload,
            self._say,
            environ=around.environ,
            adopt=governance.adopt,
            applied=("holds.connection",),
        )
        async with serve(handler, listener):
            watching = [spawn(governance.watch()), spawn(self._look_for_changes())]
            write_run_file(self._run_path, self._run_file)
            try:
                if address:
                    self._say(describe_link(address))
                yield governance
            finally:
                remove_run_file(self._run_path, self._run_file)
                remove_orphans(around.environ, keys_in_use(around.environ))
                await finish(*watching)

    @contextlib.asynccontextmanager
    async def _control(self, report: ServerReport) -> AsyncIterator[None]:
        """Answer ``thoughtgate status`` during the run; if that is impossible, the run goes on."""
        socket_path = Path(self._state, DIRECTORY, f"{os.getpid()}.sock")
        control = ControlServer(socket_path, {"status": report.describe})
        try:
            await control.open()
        except OSError as error:
            self._say(f"warning: status cannot be asked for: {error.strerror}")
        try:
            yield
        finally:
            await control.close()

    def _give_servers(self, report: ServerReport, governance: Governance) -> Outcome:
        """Put the agent's servers behind the gate, and report which are not."""
        environ, loaded, strategy = self._around.environ, self._loaded, self._strategy

        def make(plan: Plan) -> Rewrite:
            remotes = None
            if self._options.remote:
                # The agent expands references with what a launcher such as `env` sets, too.
                known = {**environ, **plan.search.env}
                remotes = Remotes(plan, known, loaded.settings, loaded.path or "")
            variables = ServerVariables(plan, plan.search.env)
            runs = strategy.runs
            done = make_rewrite(plan, environ, variables, remotes, self._key, runs=runs)
            if self._agent is None:  # later, only the added servers are reported
                self._require(plan, strategy.outcome(plan, done), variables)
            # Before the entries are written: a shim that starts from one needs the run file.
            serves = tuple(sorted({*runs.values()} - {self._run_path}))
            self._run_file = self._run_file._replace(entries=variables.contents, serves=serves)
            write_run_file(self._run_path, self._run_file)
            if remotes is not None:
                for real, path in runs.items():
                    if path != self._run_path:
                        remotes.require_same(remotes_path(Path(path).stem, environ), real)
                remotes.save(remotes_path(self._key, environ))
                governance.relayed = remotes.relayed(plan)
                governance.own_variables = remotes.own_variables(plan)
                governance.identities = remotes.identities()
            return done

        self._make = make
        outcome = strategy.write(make)
        for warning in (*strategy.plan.warnings, *strategy.warnings):
            self._say(f"warning: {warning}")
        report.configured, report.outside = outcome.configured, outcome.outside
        self._say(f"configured {named(report.configured)}")
        agent = strategy.plan.agent
        if strategy.way == "inject" and is_first_time(f"resume-{agent.type}", environ):
            self._say(f"no file changed; {agent.name} resumed without wrap is not governed")
        return outcome

    def _watch_config(
        self, outcome: Outcome, report: ServerReport, governor: Governor
    ) -> AddedServers:
        """Watch the agent's files for servers that are added during the run."""
        strategy = self._strategy

        def note(record: Record) -> None:
            governor.note(record)
            governor.flush_quietly()

        rewrite_added = strategy.rewrite_added
        self._added = AddedServers(
            strategy.plan,
            outcome,
            report,
            note=note,
            say=self._say,
            rewrite_added=None if rewrite_added is None else lambda: rewrite_added(self._make),
            is_ours=lambda argv: is_our_entry(argv, self._around.environ),
        )
        return self._added

    def _require(self, plan: Plan, outcome: Outcome, variables: ServerVariables) -> None:
        """Report what stays outside the gate.

        Raises:
            ConfigError: no server would be governed.
            UsageError: a server would not be governed, and ``strict`` forbids that.
        """
        for line in describe_exceptions(outcome, variables):
            self._say(line)
        if self._options.strict and (outcome.outside or outcome.left_out or variables.refused):
            raise UsageError(
                "--strict: the servers above would not run, or run ungoverned; nothing was started"
            )
        if not outcome.configured and not outcome.left_out:
            where = str(plan.files[0].path) if plan.files else ""
            problem = "no server in it can be put behind the gate; run the agent without wrap"
            raise ConfigError([Problem("", problem, where)])

    async def _run_agent(self, governance: Governance, guardian: Guardian) -> int:
        environ = {**self._around.environ, **self._strategy.variables, ACTIVE: "1"}
        window = Window(self._plan.agent, self._plan.search.argv, self._stop, self._say)
        started = monotonic()
        self._agent = agent = AgentProcess(
            self._strategy.command, environ, lambda: guardian.watch(os.getpid(), group=False)
        )
        ended, stopping = spawn(agent.wait()), spawn(self._stop.wait())
        reaping = spawn(_reap_orphans({agent.pid, guardian.pid}))
        try:
            await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if agent.is_alive:
                # Before the agent is stopped: an idle shim learns of it only with its next heartbeat.
                await governance.shut_down()
                shims = {session.pid for session in governance.sessions.values()}
                await agent.stop(self._signal or signal.SIGTERM, shims)
            code = await ended
        finally:
            agent.signal(signal.SIGKILL)
            await finish(ended, stopping)
        guardian.forget(agent.pid, group=False)
        if not self._stop.is_set():
            own = {guardian.pid}
            lasted_s, reported = monotonic() - started, governance.reported
            await window.follow(code, lasted_s, governance.sessions, own, reported)
        await finish(reaping)
        return code

    async def _drain(self, governance: Governance) -> None:
        """Let the shims stop their servers; kill those that do not in time."""
        await governance.shut_down()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(governance.all_gone(), SHIM_GRACE_S)
        governance.end_leftovers()

    async def _look_for_changes(self) -> None:
        while True:
            if self._watch is not None:
                self._watch.look(now())
            if self._added is not None:
                self._added.look(now())
            await asyncio.sleep(LOOK_EVERY_S)

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._end, signal.SIGTERM)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)

    def _end(self, number: int) -> None:
        self._signal = number
        self._stop.set()

    def _interrupt(self) -> None:
        alive = self._agent is not None and self._agent.is_alive
        if not alive or not sys.stdin.isatty() or self._signal == signal.SIGINT:
            self._end(signal.SIGINT)
            return
        # The terminal also sent the signal to the agent, which may continue.
        self._signal = signal.SIGINT
        asyncio.get_running_loop().call_later(INTERRUPT_S, self._forget_interrupt)

    def _forget_interrupt(self) -> None:
        if not self._stop.is_set():
            self._signal = 0

    def _reload(self) -> None:
        """Reload the config on SIGHUP. A terminal that hangs up also signals the agent."""
        if self._watch is not None:
            self._watch.reload(now())


async def _reap_orphans(own: Container[int]) -> None:
    """Collect the exit codes of processes that the agent left behind."""
    while True:
        reap_orphans(own)
        await asyncio.sleep(REAP_EVERY_S)


def named(servers: Sequence[str]) -> str:
    """Return a number of servers and their names."""
    count = f"{len(servers)} server{'s' * (len(servers) != 1)}"
    return f"{count}: {', '.join(servers)}" if servers else count


def describe_exceptions(outcome: Outcome, variables: ServerVariables) -> list[str]:
    """Return what the user must know about servers that are not governed as they are written."""
    return [
        *(f"NOT GOVERNED: {name} ({reason})" for name, reason in outcome.outside),
        *(f"LEFT OUT: {name} ({reason})" for name, reason in outcome.left_out),
        *(f"NOT STARTED: {one}" for one in variables.refused),
        *(
            f"{one}: the shim in its entry is left out; this run's policy applies"
            for one in outcome.skipped
        ),
    ]


def _status(code: int, number: int) -> str:
    if number:
        return "TERMINATED"
    return "SUCCEEDED" if code == 0 else "FAILED"
