"""Poll loop of the shim: runs one stdio server behind the gate, in one thread.

The loop polls the pipes of the agent and the server, feeds whole lines to the session and
carries out its commands. If one side does not read, its data is buffered up to a limit.
Beyond that limit the other side is no longer read, so that its pipe fills and blocks it.
"""

import contextlib
import os
import select
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from thoughtgate.core.commands import ToAgent, ToServer
from thoughtgate.core.events import (
    AgentGone,
    AgentSent,
    Event,
    GateStopping,
    ServerGone,
    ServerSent,
    ServerStarted,
    Ticked,
)
from thoughtgate.core.record_events import describe_exit, server_exited, server_started
from thoughtgate.core.session_replies import STOPPING, SessionSettings
from thoughtgate.errors import ServerExited, upstream_error, visible
from thoughtgate.gate.authority import PolledAuthority
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.gate.outbox import Outbox
from thoughtgate.gate.session_driver import STDIO, Engine, PipeCaller, SessionDriver
from thoughtgate.process.server_process import EOF_GRACE_S, TERM_GRACE_S, ServerProcess
from thoughtgate.transports.nonblocking_writer import NonblockingWriter
from thoughtgate.wire.lines import LineSplitter
from thoughtgate.wire.unchecked import unchecked

READ: Final = 32 * 1024
"""Bytes per read: enough for most messages; malloc would map and unmap a larger buffer each time."""

READ_ON: Final = 256 * 1024
"""Bytes per read inside a large frame, after a read has filled the smaller buffer."""


HIGH_WATER: Final = 32 * 1024 * 1024
"""Bytes buffered for one side before the other is no longer read: three of the largest messages."""

IMPATIENT_GRACE_S: Final = 0.15
"""From SIGTERM to SIGKILL after a second signal: some agents kill the shim 0.4 s later."""

FIRST_RETRY_S: Final = 0.5
MAX_RETRY_S: Final = 30.0
"""Delays between attempts to start a server that could not be started; they double."""

TICK_S: Final = 1.0

DRAIN: Final = 4 * 1024 * 1024
"""Bytes read at most from a server that has exited: more than a pipe holds, but bounded, because
a grandchild can go on writing."""

MAX_COMPLAINT: Final = 4096
"""Bytes that a pipe accepts without blocking when ``poll`` reports it writable (PIPE_BUF)."""

CLOSED: Final = select.POLLERR | select.POLLHUP | select.POLLNVAL
"""Poll events of an output whose reader is gone."""

BY_SERVER: Final = "server"
"""Prefix of every stop reason that the server caused."""

_HEARD: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)

NOT_FOUND: Final = 127
NOT_EXECUTABLE: Final = 126


class PollLoop:
    """Runs one server for one agent."""

    def __init__(
        self,
        command: Sequence[str],
        setup: SessionSettings,
        authority: PolledAuthority,
        environ: Mapping[str, str],
        principal: str = "",
    ) -> None:
        """Run ``command`` for ``principal``; empty in a shim whose service knows the principal."""
        self._command = list(command)
        self._environ = dict(environ)
        self._authority = authority
        self._setup = setup
        self._from_agent = LineSplitter()
        self._from_server = LineSplitter()
        self._to_agent = NonblockingWriter(1, shared=True)
        self._to_server: NonblockingWriter | None = None
        self._server: ServerProcess | None = None
        self._agent_read = self._server_read = READ
        self._agent_open = True
        self._server_open = False
        self._stopping = ""
        self._step = ""
        self._deadline = 0.0
        self._signals = 0
        self._has_told_stop = False
        self._child_ended = True
        """Whether a child may have exited since the last check, which costs a system call."""
        self._exit_code = 0
        self._to_drain = DRAIN
        self._retry_s = 0.0
        """The last delay between attempts to start the server; 0 before the first failure."""
        self._retry_at = 0.0
        self._ticked_at = 0.0
        self._left = (0, 0)
        """Work left after the agent has closed its side: bytes to send, open requests."""
        self._poll = select.poll()
        self._masks: dict[int, int] = {}
        # Self-pipe: a signal must wake the poll even if it arrives just before the call.
        self._wake_read, self._wake_write = os.pipe()
        # No scheduling: the loop flushes the outbox at the end of each iteration.
        self._outbox = Outbox(authority.flush, lambda _flush: None)
        engine = Engine(authority, self._outbox, notify=self._send, run_detached=self._send)
        self._driver = SessionDriver(engine, setup, principal, transport=STDIO)
        self._session = self._driver.session
        self._agent = self._driver.agent = _AgentPipe(self._to_agent, self._put_to_server)

    def run(self) -> int:
        """Run until the agent leaves or the server exits; return the exit code."""
        self._listen_for_signals()
        self._start_server()
        status = "FAILED"
        try:
            while not self._is_over():
                self._turn()
            status = self._status()
        finally:
            self._finish(status)
        return self._exit_code

    # One turn of the loop.

    def _turn(self) -> None:
        self._update_masks()
        for descriptor, mask in self._poll.poll(self._timeout_s() * 1000):
            self._ready(descriptor, mask)
        at = now()
        self._feed_all(self._authority.tick(at))
        if not self._session.is_idle and monotonic() - self._ticked_at >= TICK_S:
            # A tick visits every open request; on every iteration that would be quadratic.
            self._ticked_at = monotonic()
            self._feed(Ticked(at))
        self._tell_stop(at)
        self._flush()
        # After the flush, so that handing events to the service delays no frame.
        self._authority.rest()
        if self._to_agent.broken and not self._stopping:
            self._feed(AgentGone(at))
            self._begin_stop("agent")
        self._check_server()
        self._advance_stop()
        if self._server is None and not self._stopping and monotonic() >= self._retry_at:
            self._start_server()

    def _ready(self, descriptor: int, mask: int) -> None:
        server = self._server
        if descriptor == 0:
            self._read_agent()
        elif descriptor == self._wake_read:
            # Only emptied: the handlers have noted what each signal means.
            os.read(self._wake_read, 64)
        elif server is not None and descriptor == server.stdout:
            self._read_server(server)
        elif descriptor == self._to_agent.watched:
            self._to_agent.push(writable=bool(mask & select.POLLOUT))
            self._to_agent.broken |= bool(mask & CLOSED)
        elif self._to_server is not None and descriptor == self._to_server.descriptor:
            self._to_server.push(writable=True)
            self._to_server.broken |= bool(mask & CLOSED)
        else:
            self._feed_all(self._authority.ready(descriptor, mask, now()))

    def _timeout_s(self) -> float:
        if self._step:
            # Short while stopping, so that the next step is taken soon after its deadline.
            return max(0.0, min(self._deadline - monotonic(), self._authority.interval_s, 0.05))
        if self._server is None:
            return max(0.0, min(self._retry_at - monotonic(), self._authority.interval_s, TICK_S))
        if self._session.is_idle:
            return self._authority.interval_s
        return min(self._authority.interval_s, TICK_S)

    def _update_masks(self) -> None:
        """Register only descriptors that can be served now, so that ``poll`` does not spin."""
        wanted = dict(self._authority.descriptors())
        wanted[self._wake_read] = select.POLLIN
        to_server = self._to_server
        agent_full = len(self._to_agent.waiting) > HIGH_WATER
        server_full = to_server is not None and len(to_server.waiting) > HIGH_WATER
        is_behind = self._authority.is_behind
        # Agent frames can also cause replies to the agent, so both buffers must have space.
        if self._agent_open and not (agent_full or server_full or is_behind):
            wanted[0] = select.POLLIN
        if self._server is not None and self._server_open and not (agent_full or is_behind):
            wanted[self._server.stdout] = select.POLLIN
        # With an empty mask, poll still reports that the other end was closed.
        if not self._to_agent.broken:
            wanted[self._to_agent.watched] = select.POLLOUT if self._to_agent.waiting else 0
        if to_server is not None and not to_server.broken:
            wanted[to_server.descriptor] = select.POLLOUT if to_server.waiting else 0
        if wanted == self._masks:
            return
        for descriptor in self._masks.keys() - wanted.keys():
            self._poll.unregister(descriptor)
        for descriptor, mask in wanted.items():
            if self._masks.get(descriptor) != mask:
                self._poll.register(descriptor, mask)
        self._masks = wanted

    # Reading.

    def _read_agent(self) -> None:
        try:
            chunk = os.read(0, self._agent_read)
        except OSError:
            chunk = b""
        at = now()
        lines = self._from_agent.feed(chunk) if chunk else self._from_agent.close()
        self._agent_read = _next_read(chunk, lines)
        read, feed, agent = self._authority.read, self._driver.feed, self._agent
        for line in lines:
            feed(unchecked(AgentSent, (line, at, read(line), "")), agent)
        if not chunk:
            self._agent_open = False
            # Requests already read are sent before the session learns that the agent left.
            self._flush()
            self._feed(AgentGone(at))
            self._begin_stop("eof")

    def _read_server(self, server: ServerProcess) -> int:
        """Read from the server; return the number of bytes, 0 if there are none now."""
        try:
            chunk = os.read(server.stdout, self._server_read)
        except BlockingIOError:
            return 0
        except OSError:
            chunk = b""
        at = now()
        lines = self._from_server.feed(chunk) if chunk else self._from_server.close()
        self._server_read = _next_read(chunk, lines)
        read, feed, agent = self._authority.read, self._driver.feed, self._agent
        for line in lines:
            feed(unchecked(ServerSent, (line, at, read(line))), agent)
        if not chunk:
            self._server_open = False
        return len(chunk)

    # Carrying out.

    def _feed_all(self, events: list[Event]) -> None:
        for event in events:
            self._feed(event)

    def _feed(self, event: Event) -> None:
        self._driver.feed(event, self._agent)

    def _send(self, driver: SessionDriver, frame: ToServer) -> None:
        del driver
        self._put_to_server(frame.data)

    def _put_to_server(self, data: bytes) -> None:
        if self._to_server is not None:
            self._to_server.put(data)

    def _flush(self) -> None:
        """Write the record, then send: an unrecorded frame never reaches the server."""
        self._outbox.flush()
        if self._to_server is not None:
            self._to_server.push(writable=False)
        self._to_agent.push(writable=False)

    # Start and exit of the server.

    def _start_server(self) -> None:
        at = now()
        try:
            server = ServerProcess(self._command, self._environ)
        except OSError as error:
            self._not_started(error, at)
            return
        if self._retry_s:
            complain("the server is running now")
            self._exit_code = 0
            self._feed(ServerStarted(at))
        self._server = server
        self._server_open = True
        self._to_server = NonblockingWriter(server.stdin, shared=False)
        setup = self._setup
        self._authority.note(server_started(at, setup.server, setup.session, server.pid))
        if self._signals:
            # The signal arrived before the server was started.
            self._terminate(server, TERM_GRACE_S)

    def _not_started(self, error: OSError, at: float) -> None:
        """Answer every request with an error, and try again: the program may be installed later."""
        is_first = not self._retry_s
        self._retry_s = min(2 * self._retry_s, MAX_RETRY_S) or FIRST_RETRY_S
        self._retry_at = monotonic() + self._retry_s
        if not is_first:
            return
        self._exit_code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        complain(
            f"the server {self._command[0]!r} could not be started: {error.strerror} (start_failed);"
            " the gate keeps trying"
        )
        reason = f"the server could not be started: {error.strerror}"
        setup = self._setup
        self._authority.note(server_exited(at, setup.server, setup.session, reason, was_up=False))
        gone, facts = "the server could not be started", {"cause": "start_failed", "reason": reason}
        self._feed(ServerGone(gone, at, "server_start_failed", facts))

    def _check_server(self) -> None:
        server = self._server
        if server is None or self._step == "over":
            return
        code = None
        if self._child_ended or self._step or not self._server_open:
            self._child_ended = False  # before the check: a later SIGCHLD causes another check
            code = server.poll()
        if code is None:
            if not self._server_open:
                self._begin_stop(f"{BY_SERVER} closed its output")
            elif self._to_server is not None and self._to_server.broken:
                self._begin_stop(f"{BY_SERVER} closed its input")
            return
        if not self._drain_server(server):
            self._child_ended = True  # read on once events were recorded
            return
        at = now()
        # A signal that arrived in this turn has ended the server, not the other way round.
        self._tell_stop(at)
        if not self._stopping or self._stopping.startswith(BY_SERVER):
            self._exit_code = code
            complain(describe_exit(code))
            self._stopping = BY_SERVER
        elif self._stopping == "eof" and self._step == "eof":
            self._exit_code = code
        setup = self._setup
        reason = describe_exit(code)
        self._authority.note(server_exited(at, setup.server, setup.session, reason, exit_code=code))
        if self._stopping == "signal":
            self._feed(
                ServerGone(STOPPING, at, facts=upstream_error("gate_closing", STOPPING).facts)
            )
        else:
            facts = {"cause": "exited", "reason": reason}
            self._feed(ServerGone(ServerExited.before_answer, at, facts=facts))
        self._flush()
        server.sweep()
        # The agent still has time to read the last frames.
        self._step = "over"
        self._deadline = monotonic() + TERM_GRACE_S

    def _drain_server(self, server: ServerProcess) -> bool:
        """Read the remaining output of a server that has exited, up to a limit; False if not yet.

        End of file cannot be waited for: a grandchild may hold the pipe open.
        """
        while self._server_open and self._to_drain > 0 and not self._authority.is_behind:
            read = self._read_server(server)
            if not read:
                break
            self._to_drain -= read
            self._flush()
        if self._server_open and self._authority.is_behind and not self._stopping:
            return False
        for line in self._from_server.close():
            self._feed(ServerSent(line, now()))
        return True

    # Stopping.

    def _begin_stop(self, reason: str) -> None:
        if self._stopping:
            return
        self._stopping = reason
        self._step = "eof"
        self._deadline = monotonic() + EOF_GRACE_S

    def _tell_stop(self, at: float) -> None:
        """After a signal, answer held calls: the agent may kill the shim before a decision."""
        if self._signals and not self._has_told_stop:
            self._has_told_stop = True
            self._feed(GateStopping(at))

    def _advance_stop(self) -> None:
        """Stop the server as MCP's stdio shutdown says: close stdin, then SIGTERM, then SIGKILL.

        Each step is taken only if the server is still running when the previous step times out.
        """
        if self._authority.stop_reason and not self._stopping:
            complain(f"stopping: {self._authority.stop_reason}")
            self._feed(AgentGone(now()))
            self._begin_stop(self._authority.stop_reason)
        server = self._server
        if not self._step or self._step == "over" or server is None:
            return
        # Its input is closed only once everything that the agent sent has been delivered.
        if self._to_server is not None and not self._to_server.waiting and self._outbox.is_empty:
            os.close(server.stdin)
            self._to_server = None
        if self._step == "eof" and self._has_come_closer():
            self._deadline = monotonic() + EOF_GRACE_S
        if monotonic() < self._deadline:
            return
        server.signal(signal.SIGTERM if self._step == "eof" else signal.SIGKILL)
        self._step = "term"
        self._deadline = monotonic() + TERM_GRACE_S

    def _has_come_closer(self) -> bool:
        """Tell whether the server has made progress on its open requests since the agent left.

        Progress renews the grace period, which is meant for a server that does nothing. This
        terminates because no new requests can arrive. If the agent has also closed its output,
        nobody reads the answers and the period is not renewed.
        """
        if self._stopping != "eof" or self._to_agent.broken:
            return False
        waiting = len(self._to_server.waiting) if self._to_server is not None else 0
        before, self._left = self._left, (waiting, self._session.open_requests)
        return self._left < before

    def _on_signal(self, number: int, frame: object) -> None:
        del frame
        if number == signal.SIGCHLD:
            self._child_ended = True
            return
        self._signals += 1
        if self._server is None:
            self._stopping = self._stopping or "signal"
        else:
            self._terminate(self._server, TERM_GRACE_S if self._signals == 1 else IMPATIENT_GRACE_S)

    def _terminate(self, server: ServerProcess, grace: float) -> None:
        """Terminate the server without closing its input first."""
        server.signal(signal.SIGTERM)
        self._stopping = "signal"
        self._step = "term" if self._step != "over" else "over"
        self._deadline = monotonic() + grace

    def _listen_for_signals(self) -> None:
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in _HEARD:
            signal.signal(number, self._on_signal)
        # The parent process may have blocked some of them, and a blocked mask is inherited.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    def _is_over(self) -> bool:
        if self._server is None:
            return bool(self._stopping)
        if self._step != "over":
            return False
        return not self._to_agent.waiting or self._to_agent.broken or monotonic() > self._deadline

    def _status(self) -> str:
        if self._stopping == "signal":
            return "TERMINATED"
        if self._stopping.startswith(BY_SERVER) or self._exit_code:
            return "FAILED"
        return "SUCCEEDED" if self._stopping == "eof" else "CANCELLED"

    def _finish(self, status: str) -> None:
        server = self._server
        # After an exception in the loop too, no server process may be left behind.
        if server is not None:
            if server.poll() is None:
                server.signal(signal.SIGKILL)
            server.sweep()
        signal.set_wakeup_fd(-1)
        self._authority.finish(status, now())


class _AgentPipe(PipeCaller):
    """The caller that a session driver sees for an agent on stdin and stdout."""

    def __init__(self, to_agent: NonblockingWriter, to_server: Callable[[bytes], None]) -> None:
        self._to_agent = to_agent
        self._to_server = to_server

    def take(self, frame: ToAgent) -> None:
        """Buffer a frame for the agent; it is written once the record is written."""
        self._to_agent.put(frame.data)

    def forward(self, frame: ToServer) -> None:
        """Send a frame to the server."""
        self._to_server(frame.data)


def _next_read(chunk: bytes, lines: Sequence[bytes]) -> int:
    """Return how much to read next: much only inside a large frame, not of many small ones."""
    return READ_ON if len(chunk) >= READ and len(lines) <= 1 else READ


def complain(text: str) -> None:
    """Write a message to the agent's user on stderr; stdout carries MCP.

    If the agent has closed stderr or stopped reading it, the rest of the message is dropped,
    because a blocked write would stop the traffic.
    """
    # Servers choose parts of some messages, and terminals obey control characters.
    shown = visible(text, "\n")
    line = f"thoughtgate: {shown}\n".encode("utf-8", "backslashreplace")
    poll = select.poll()
    poll.register(2, select.POLLOUT)
    with contextlib.suppress(OSError):
        while line and poll.poll(0):
            line = line[os.write(2, line[:MAX_COMPLAINT]) :]
