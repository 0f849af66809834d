"""``wrap``: an agent run with every MCP server it knows behind the gate.

Owns the order of things: the config is read and the plan made before anything exists;
then the service, then the rewritten files, then the agent; and on the way out, however
it ends, the shims, the files, the record. A guardian does the same if this process is
killed.
"""

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

import uvicorn

from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.guard import Guard
from thoughtgate.agents.rewrite import Rewrite, rewrite
from thoughtgate.core.envelope import render_time
from thoughtgate.errors import UsageError
from thoughtgate.runtime.clock import monotonic, now
from thoughtgate.runtime.configuration import Loaded
from thoughtgate.runtime.governance import Governance
from thoughtgate.runtime.governance_http import App, GovernanceApp
from thoughtgate.runtime.governing import open_governor
from thoughtgate.runtime.governor import Governor
from thoughtgate.runtime.guardian import Guardian
from thoughtgate.runtime.local_shim import secret_names
from thoughtgate.runtime.run_file import RunFile, run_path, write_run_file
from thoughtgate.runtime.state import state_directory

AGENT_GRACE_S: Final = 10.0
"""From the signal passed on to the agent until it is killed."""

SHIM_GRACE_S: Final = 10.0
"""Wall-clock time for all shims together to stop their servers."""

BACKGROUND_S: Final = 10.0
"""A windowed agent whose launcher ends this soon has gone on without it."""

WINDOWED: Final = frozenset({"claude-desktop", "cursor", "vscode", "windsurf", "zed"})

KEEP_ALIVE_S: Final = 3600

ACTIVE: Final = "THOUGHTGATE_ACTIVE"


@dataclass(frozen=True, slots=True)
class WrapOptions:
    """What the command line says."""

    command: tuple[str, ...]
    port: int = 0
    restore: bool = True
    strict: bool = False
    """Refuse to start when a server would run ungoverned."""


@dataclass(slots=True)
class WrapReport:
    """What the closing words tell."""

    exit_code: int
    counts: dict[str, int]
    problems: tuple[str, ...] = ()


Say = Callable[[str], None]
Console = Callable[[Governance, int], tuple[App, str]]
"""Makes the console's application for a service and returns it with the address to open."""


def run_key(plan: Plan) -> str:
    """Return the key of a run: the same whenever the same agent is wrapped in the same place."""
    where = "\0".join([plan.agent.type, str(plan.search.cwd), str(plan.search.config_path or "")])
    return sha256(where.encode()).hexdigest()[:16]


def shim_command() -> list[str]:
    """Return our own command by its absolute path, links followed (F-007)."""
    script = Path(sys.argv[0])
    if script.name == "thoughtgate" and script.exists():
        return [str(script.resolve())]
    beside = Path(sys.executable).parent / "thoughtgate"
    if beside.exists():
        return [str(beside)]
    return [sys.executable, "-m", "thoughtgate"]


def make_rewrite(plan: Plan, environ: Mapping[str, str]) -> Rewrite:
    """Put every entry of a plan behind a shim of this run."""
    key = run_key(plan)
    named = {name: value for name, value in environ.items() if name != "THOUGHTGATE_STATE_DIR"}
    usual = run_path(key, named)
    place = run_path(key, environ)
    run = key if place == usual and "XDG_STATE_HOME" not in environ else place
    return rewrite(
        plan, shim_command(), lambda entry: ["shim", "--server-id", entry.id, "--run", run, "--"]
    )


class Wrap:
    """One wrapped run of one agent."""

    def __init__(
        self,
        plan: Plan,
        loaded: Loaded,
        options: WrapOptions,
        environ: Mapping[str, str],
        *,
        say: Say,
        console: Console | None = None,
    ) -> None:
        self._plan = plan
        self._loaded = loaded
        self._options = options
        self._environ = environ
        self._say = say
        self._console = console
        self._state = state_directory(environ)
        self._key = run_key(plan)
        self._token = secrets.token_urlsafe(32)
        self._stop = asyncio.Event()
        self._signal = 0
        self._agent = 0
        self._problems: list[str] = []
        self._guardian: Guardian | None = None

    def run(self) -> WrapReport:
        """Run the agent to its end.

        Raises:
            ConfigError: the agent's files cannot be governed; nothing was started.
            Conflict: another wrap holds them, or they are managed already.
        """
        if self._environ.get(ACTIVE):
            raise UsageError(
                "this is already inside a wrapped agent (THOUGHTGATE_ACTIVE is set); "
                "its servers are governed, run the command without thoughtgate wrap"
            )
        unwrap = [*shim_command(), "unwrap", "--key", self._key, "--quiet"]
        self._guardian = Guardian(unwrap if self._options.restore else ())
        try:
            return asyncio.run(self._run())
        finally:
            self._guardian.dismiss()

    async def _run(self) -> WrapReport:
        listener = _listen(self._options.port)
        governor = self._open_governor()
        status, code = "FAILED", 2
        guard = Guard(
            self._plan,
            state=Path(self._state),
            key=self._key,
            started_at=render_time(now()),
            restore_on_exit=self._options.restore,
        )
        try:
            with guard:
                async with self._serve(listener, governor) as governance:
                    done = guard.write(lambda plan: make_rewrite(plan, self._environ))
                    self._warn(guard, done)
                    code = await self._run_agent()
                    status = _status(code, self._signal)
                    await self._drain(governance)
        finally:
            with contextlib.suppress(FileNotFoundError):
                Path(run_path(self._key, self._environ)).unlink()
            governor.finish(status, now())
        return WrapReport(code, dict(governor.tally.counts), tuple(self._problems))

    def _open_governor(self) -> Governor:
        governor = open_governor(self._loaded, self._environ, self._state)
        governor.start(now(), command="wrap", agent=self._plan.agent.type)
        return governor

    @contextlib.asynccontextmanager
    async def _serve(
        self, listener: socket.socket, governor: Governor
    ) -> AsyncIterator[Governance]:
        """Run the governance service, and tell the shims where it is."""
        settings = self._loaded.settings
        governance = Governance(governor, settings, secret_names(settings))
        port = listener.getsockname()[1]
        console, address = self._console(governance, port) if self._console else (None, "")
        app = GovernanceApp(governance, self._token, console=console)
        app.port = port
        server = _Quiet(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_keep_alive=KEEP_ALIVE_S,
                server_header=False,
            )
        )
        run = RunFile("127.0.0.1", port, self._token, self._loaded.policy.profile, os.getpid())
        write_run_file(run_path(self._key, self._environ), run)
        serving = asyncio.ensure_future(server.serve([listener]))
        watching = asyncio.ensure_future(governance.watch())
        if address:
            self._say(f"console   {address}")
        try:
            yield governance
        finally:
            watching.cancel()
            server.should_exit = True
            server.force_exit = True
            await asyncio.gather(serving, watching, return_exceptions=True)

    def _warn(self, guard: Guard, done: Rewrite) -> None:
        for warning in (*guard.plan.warnings, *guard.warnings):
            self._say(f"warning: {warning}")
        free = [f"{entry.id} ({entry.url or entry.note})" for entry in done.ungoverned]
        free += [str(outside) for outside in guard.plan.outside]
        for one in free:
            self._say(f"NOT GOVERNED: {one}")
        if free and self._options.strict:
            raise UsageError("--strict: the servers above would run ungoverned")
        names = ", ".join(sorted({entry.id for entry in done.governed}))
        self._say(f"governed  {names}")

    async def _run_agent(self) -> int:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            loop.add_signal_handler(number, self._hear, number)
        environ = {**self._environ, ACTIVE: "1"}
        command = self._options.command
        started = monotonic()
        try:
            self._agent = os.posix_spawnp(
                command[0], list(command), environ, setsigdef=(signal.SIGINT, signal.SIGPIPE)
            )
        except OSError as error:
            raise UsageError(
                f"the agent {command[0]!r} could not be started: {error.strerror}"
            ) from None
        if self._guardian is not None:
            self._guardian.watch(self._agent, group=False)
        ended = asyncio.ensure_future(asyncio.to_thread(os.waitpid, self._agent, 0))
        stopping = asyncio.ensure_future(self._stop.wait())
        await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            await self._end_agent(ended)
        stopping.cancel()
        _, status = await ended
        code = os.waitstatus_to_exitcode(status)
        await self._wait_for_window(code, monotonic() - started)
        return code if code >= 0 else 128 - code

    async def _end_agent(self, ended: "asyncio.Future[tuple[int, int]]") -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._agent, self._signal or signal.SIGTERM)
        done, _ = await asyncio.wait({ended}, timeout=AGENT_GRACE_S)
        if not done:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._agent, signal.SIGKILL)

    async def _wait_for_window(self, code: int, lasted_s: float) -> None:
        """A window outlives its launcher: stay until the user says that it is closed."""
        windowed = self._plan.agent.type in WINDOWED
        if code or self._stop.is_set() or not windowed or lasted_s > BACKGROUND_S:
            return
        if not sys.stdin.isatty():
            return
        self._say("the agent went on in its own window; press Ctrl-C here once it is closed")
        await self._stop.wait()

    def _hear(self, number: int) -> None:
        if number == signal.SIGINT and sys.stdin.isatty() and self._signal != signal.SIGINT:
            # The terminal has sent it to the agent as well, which may mean to go on.
            # Only a second one ends the run.
            self._signal = signal.SIGINT
            asyncio.get_running_loop().call_later(2.0, self._forget_interrupt)
            if self._agent_is_alive():
                return
        self._signal = number
        self._stop.set()

    def _forget_interrupt(self) -> None:
        if not self._stop.is_set():
            self._signal = 0

    def _agent_is_alive(self) -> bool:
        try:
            os.kill(self._agent, 0)
        except ProcessLookupError:
            return False
        return True

    async def _drain(self, governance: Governance) -> None:
        """Let the shims stop their servers; whoever does not is ended."""
        await governance.shut_down()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(governance.all_gone(), SHIM_GRACE_S)
        governance.end_leftovers()


def _spawn(command: tuple[str, ...], environ: dict[str, str]) -> int:
    """Start the agent with the user's own terminal, in the same process group.

    Raises:
        UsageError: it cannot be started.
    """
    reset = (signal.SIGINT, signal.SIGPIPE)
    try:
        return os.posix_spawnp(command[0], list(command), environ, setsigdef=reset)
    except OSError as error:
        raise UsageError(
            f"the agent {command[0]!r} could not be started: {error.strerror}"
        ) from None


class _Quiet(uvicorn.Server):
    """Leaves signals to the wrap."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle none."""
        yield


def _listen(port: int) -> socket.socket:
    """Open the service's socket on the loopback.

    Raises:
        UsageError: the port is taken.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if port:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise UsageError(
            f"--governance-port {port} cannot be used: {error.strerror}; "
            "choose another, or 0 for any free port"
        ) from None
    listener.listen(128)
    return listener


def _status(code: int, number: int) -> str:
    if number:
        return "TERMINATED"
    return "SUCCEEDED" if code == 0 else "FAILED"
