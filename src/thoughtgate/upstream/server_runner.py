"""Starting one server when it is needed, noticing its end, restarting and stopping it.

``core.server_lifecycle`` defines the states and their transitions; this module executes,
logs and records them. Subclasses talk to the server: ``upstream.supervisor`` negotiates,
``upstream.multiplexer`` passes messages through.
"""

import asyncio
import logging
from collections.abc import Callable
from math import ceil
from typing import Final

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.record_events import (
    Record,
    describe_exit,
    server_exited,
    server_started,
)
from thoughtgate.core.server_lifecycle import (
    BROKE,
    CAME_UP,
    DISABLED,
    ENDED,
    FAILED,
    HALTED,
    NEEDS_LOGIN,
    RUNNING,
    STARTING,
    TOLD_TO_START,
    TOLD_TO_STOP,
    UNUSED,
    WAITING,
    WANTED,
    Supervision,
    advance,
)
from thoughtgate.errors import (
    CAUSES,
    LOGIN_REQUIRED,
    STOPPED_BY_HAND,
    PeerError,
    PeerGone,
    ServerExited,
    upstream_error,
)
from thoughtgate.gate.background import finish, spawn
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.upstream.client import ServerConnection
from thoughtgate.upstream.health import ServerHealth
from thoughtgate.upstream.server_log import ServerLog

WORTH_WAITING_S: Final = 2.5
"""A call waits for a restart that is due within this time; otherwise it fails at once."""

STOPPING_POLL_S: Final = 0.02
"""How often a start is tried while the server is still being stopped, and cannot be started."""

MAX_NOISE: Final = 5000
NOISE_S: Final = 10.0
"""A server that sends more unreadable lines than this is stopped, as each costs a record."""

STOPPED_BY_GATE: Final = "stopped"

_SEVERAL: Final = 2

_log: Final = logging.getLogger("thoughtgate.servers")


class ServerRunner:
    """Runs one server."""

    def __init__(
        self, settings: ServerSettings, note: Callable[[Record], None], log: ServerLog | None = None
    ) -> None:
        """Prepare; ``note`` records events, ``log`` keeps the server's output for the operator."""
        self.settings = settings
        self.log = log
        self.standing = Supervision(state=DISABLED) if not settings.enabled else Supervision()
        self._note = note
        self.upstream: ServerConnection | None = None
        """The connection, if there is one."""
        self._start: asyncio.Task[ServerConnection] | None = None
        self._restart: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        """Ends the process of a connection that became unusable."""
        self._stopping = asyncio.Lock()
        self.health = ServerHealth(settings.id, note)
        """Whether a server that is reached over HTTP answers; unused for a process."""
        self.failure: PeerError | None = None
        """Why the server could not be started, or ended; None while it is up."""
        self._lost_early: PeerGone | None = None
        """Why the server is unusable, if it failed before its start was complete."""
        self._noise = 0
        self._noisy_since = 0.0
        self._users: set[str] = set()
        """The principals that have used the server; two of them, if there are more."""

    @property
    def id(self) -> str:
        """The server's id."""
        return self.settings.id

    @property
    def is_up(self) -> bool:
        """Whether the server can be used now."""
        return self._open_connection() is not None

    def _open_connection(self) -> ServerConnection | None:
        connection = self.upstream
        if connection is None or self.standing.state != RUNNING or not connection.is_open:
            return None
        return connection

    def used_by(self, principal: str) -> None:
        """Note that a principal uses the server."""
        if len(self._users) < _SEVERAL:
            self._users.add(principal)

    def may_hear(self, principal: str) -> bool:
        """Whether an unsolicited message of the server cannot be about another principal's call.

        A log message does not say whose call it is about, and may contain that call's data.
        """
        return self._users <= {principal}

    # Implemented by subclasses.

    def _connect(self) -> ServerConnection:
        """Return a new connection, not yet open."""
        raise NotImplementedError

    async def _open(self, connection: ServerConnection) -> None:
        """Open a connection; if that fails, leave no process or socket behind.

        Raises:
            PeerGone: the server cannot be started or reached.
            PeerError: the server does not speak MCP as expected.
        """
        raise NotImplementedError

    def _came_up(self, connection: ServerConnection) -> None:
        """Handle that the server is usable."""

    def _went_down(self, gone: PeerGone) -> None:
        """Handle that the server is no longer usable."""

    def _changed(self, event: str) -> None:
        """Handle a change of the server's state."""

    # Start.

    async def ready(self, *, by_hand: bool = False) -> ServerConnection:
        """Return the connection; start the server if it is not up.

        Raises:
            PeerError: the server cannot be used now; the error says why.
        """
        connection = self._open_connection()
        if connection is not None:
            return connection
        while self._start is None:
            await self._may_start(by_hand=by_hand)
            if self._start is None and not self._begin(TOLD_TO_START if by_hand else WANTED):
                await asyncio.sleep(STOPPING_POLL_S)
        start = self._start
        try:
            # Others may wait for the same start, so it must survive the cancellation of one.
            return await asyncio.shield(start)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if not start.cancelled() or (caller is not None and caller.cancelling()):
                raise
            raise PeerError("server_not_running", "the server was stopped", "stopped") from None

    async def _may_start(self, *, by_hand: bool) -> None:
        """Wait if a restart is near; otherwise raise an error."""
        standing = self.standing
        if standing.state == DISABLED:
            raise upstream_error("disabled")
        if by_hand:
            return
        if standing.state == HALTED:
            raise upstream_error(STOPPED_BY_HAND)
        if standing.state in {WAITING, FAILED}:
            left = standing.retry_at - monotonic()
            if left > WORTH_WAITING_S:
                reason = f"{standing.reason}; the next try is in {left:.0f} s"
                raise repeated(self.failure, reason, retry_after=ceil(left))
            if left > 0:
                await asyncio.sleep(left)

    def _begin(self, event: str) -> bool:
        if not self._move(event):
            return False
        self._noise, self._lost_early = 0, None
        self._start = asyncio.ensure_future(self._come_up())
        self._start.add_done_callback(self._start_ended)
        return True

    async def _come_up(self) -> ServerConnection:
        connection = self.upstream = self._connect()
        exit_code = None
        try:
            async with asyncio.timeout(self.settings.start_timeout_s):
                await self._open(connection)
        except TimeoutError:
            reason = f"the server was not ready within {self.settings.start_timeout_s:g} s"
            failure = upstream_error("start_timeout", reason)
        except (PeerGone, PeerError) as error:
            exit_code = connection.exit_code if isinstance(error, ServerExited) else None
            failure = _start_failure(error, exit_code)
            if failure.cause == LOGIN_REQUIRED:
                # No automatic restart, which would not help; the next call after a login starts it.
                self.upstream, self.failure = None, failure
                self._move(NEEDS_LOGIN, str(failure))
                raise repeated(failure, str(failure)) from None
        else:
            self._move(CAME_UP)
            self._came_up(connection)
            if self._lost_early is None:
                return connection
            self.lost(self._lost_early)
            raise _start_failure(self._lost_early)
        self.upstream = None
        self._break(failure, exit_code)
        raise repeated(failure, str(failure))

    def _start_ended(self, task: asyncio.Task[ServerConnection]) -> None:
        self._start = None
        if not task.cancelled():
            # Retrieved so that asyncio does not log it: callers get it, restarts are logged.
            task.exception()

    # Stop.

    async def stop(self, *, by_hand: bool = True) -> None:
        """Stop the server; if stopped by hand, it stays down until it is started by hand."""
        async with self._stopping:
            await finish(self._restart, self._start)
            if self._closing is not None:
                await asyncio.wait([self._closing])  # its errors are logged, and must not stop this
            if not self._move(TOLD_TO_STOP if by_hand else UNUSED):
                return
            connection, self.upstream = self.upstream, None
            if connection is not None:
                await connection.close()
            self._move(ENDED, exit_code=connection.exit_code if connection is not None else None)
            self._went_down(PeerGone("the server was stopped", "stopped"))

    async def restart(self) -> ServerConnection:
        """Stop the server if it is up, and start it."""
        await self.stop()
        return await self.ready(by_hand=True)

    async def dispose(self) -> None:
        """Stop the server for good."""
        await self.stop(by_hand=False)

    def lost(self, gone: PeerGone) -> None:
        """Handle a server that ended by itself or became unusable."""
        connection = self.upstream
        if self.standing.state == STARTING:
            self._lost_early = gone
        if self.standing.state != RUNNING or connection is None:
            return
        self.upstream = None
        self._closing = spawn(connection.close())
        failure = PeerError(gone.kind, str(gone), gone.cause)
        self._break(failure, connection.exit_code)
        self._went_down(gone)

    def check_noise(self) -> bool:
        """Count a dropped frame; return False once there are too many.

        The server is then stopped, and restarted as if it had ended by itself.
        """
        moment = monotonic()
        if moment - self._noisy_since > NOISE_S:
            self._noisy_since, self._noise = moment, 0
        self._noise += 1
        if self._noise <= MAX_NOISE:
            return True
        self.lost(PeerGone("the server floods its output with lines that are no messages"))
        return False

    def _break(self, failure: PeerError, exit_code: int | None) -> None:
        self.failure = failure
        if self.log is not None:
            self.log.add(f"[thoughtgate] {failure}")
        if self._move(BROKE, str(failure), exit_code) and self.standing.state == WAITING:
            self._restart = spawn(self._restart_later(self.standing.retry_at))

    async def _restart_later(self, at: float) -> None:
        await asyncio.sleep(max(0.0, at - monotonic()))
        if self.standing.state == WAITING and self._start is None:
            self._begin(WANTED)

    # Changes of state.

    def _move(self, event: str, reason: str = "", exit_code: int | None = None) -> bool:
        before = self.standing
        moved = advance(before, event, monotonic(), reason)
        if moved is None:
            return False
        self.standing = moved
        # Not a warning: the record of the server's end already warns the operator. Attempts that
        # fail for the same reason as before are logged for debugging only.
        is_retry = bool(before.reason) and moved.reason in {"", before.reason}
        is_repeated = is_retry and event in {WANTED, BROKE, NEEDS_LOGIN}
        said = moved.reason if event in {BROKE, NEEDS_LOGIN} else ""
        level = logging.DEBUG if is_repeated else logging.INFO
        _log.log(level, "server %s", moved.state, extra={"server": self.id, "reason": said or None})
        if event == CAME_UP:
            self.failure = None
        if self.settings.url:
            self._note_reached(event)
        elif event == CAME_UP:
            pid = self.upstream.pid if self.upstream is not None else 0
            self._note(server_started(now(), self.id, "0", pid))
        elif event in {BROKE, ENDED}:
            self._note_exit(moved.reason, exit_code, was_up=before.state != STARTING)
        self._changed(event)
        return True

    def _note_reached(self, event: str) -> None:
        """Update the health of a server that is reached by a URL."""
        if event == CAME_UP:
            self.health.answered()
        elif event in {BROKE, NEEDS_LOGIN} and self.failure is not None:
            self.health.failed(self.failure)
        elif event == ENDED:
            self.health.disconnected()
            self._note_exit("", None, was_up=True)

    def _note_exit(self, reason: str, exit_code: int | None, *, was_up: bool) -> None:
        by_hand = self.standing.state == HALTED
        cause = STOPPED_BY_HAND if by_hand else STOPPED_BY_GATE
        why = CAUSES[cause][1] if by_hand else reason or STOPPED_BY_GATE
        if reason and self.failure is not None:
            cause = self.failure.cause
        self._note(
            server_exited(now(), self.id, "0", why, exit_code=exit_code, was_up=was_up, cause=cause)
        )


def _start_failure(error: PeerError | PeerGone, exit_code: int | None = None) -> PeerError:
    """Return the error of a start that failed; an error that has a cause keeps it."""
    if isinstance(error, PeerError) and error.cause:
        return error
    cause = "exited" if isinstance(error, ServerExited) else "start_failed"
    # The request that met the end may not know the code yet.
    text = str(error) if exit_code is None else describe_exit(exit_code)
    return PeerError("server_start_failed", text, cause)


def repeated(failure: PeerError | None, reason: str, retry_after: int = 0) -> PeerError:
    """Return a new error like an earlier one: a shared one would collect every caller's traceback."""
    if failure is None:
        return upstream_error("start_failed", reason, retry_after=retry_after)
    return PeerError(
        failure.kind,
        reason,
        failure.cause,
        status=failure.status,
        retry_after=retry_after or failure.retry_after,
    )
