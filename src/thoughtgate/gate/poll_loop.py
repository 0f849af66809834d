"""The shim: one stdio server behind the gate, driven by one loop without threads.

The loop polls the agent's and the server's pipes, feeds whole lines to the session and
carries out what the session commands. Each side is read while the other is full, until
a bounded amount waits; then the reading stops and the pipe itself holds the peer back.
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
    Ticked,
)
from thoughtgate.core.record_events import describe_exit, server_exited, server_started
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.errors import ServerExited
from thoughtgate.gate.authority import PolledAuthority
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.gate.outbox import Outbox
from thoughtgate.gate.session_driver import STDIO, Engine, SessionDriver
from thoughtgate.process.server_process import EOF_GRACE_S, TERM_GRACE_S, ServerProcess
from thoughtgate.transports.nonblocking_writer import NonblockingWriter
from thoughtgate.wire.lines import LineSplitter
from thoughtgate.wire.message import RequestId

READ: Final = 32 * 1024
"""Bytes read at a time: most messages; a larger buffer would be mapped and unmapped each time."""

READ_ON: Final = 256 * 1024
"""Bytes read at a time from who has more to say than that."""


HIGH_WATER: Final = 32 * 1024 * 1024
"""Bytes that may wait for one side before the other is no longer read: three of the largest messages."""

IMPATIENT_GRACE_S: Final = 0.15
"""From SIGTERM to SIGKILL once the agent has signalled twice: some kill the shim 0.4 s later."""

TICK_S: Final = 1.0

DRAIN: Final = 4 * 1024 * 1024
"""Bytes read from an ended server: more than a pipe holds, less than a grandchild can keep up."""

MAX_COMPLAINT: Final = 4096
"""Bytes that a pipe which polls as writable takes without blocking."""

CLOSED: Final = select.POLLERR | select.POLLHUP | select.POLLNVAL
"""What a poll says of a way out that nobody reads from any more."""

BY_SERVER: Final = "server"
"""What begins every reason to stop that is the server's doing."""

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
        """Run ``command`` for ``principal``, which a shim that asks a service need not know."""
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
        """A child may have ended since the server was last asked; asking costs a system call."""
        self._exit_code = 0
        self._ticked_at = 0.0
        self._left = (0, 0)
        """What is still to do after the agent has left: bytes to send, requests without answer."""
        self._poll = select.poll()
        self._masks: dict[int, int] = {}
        self._bell, self._ring = os.pipe()
        # The loop flushes at the end of each of its turns; nobody has to call it.
        self._outbox = Outbox(authority.flush, lambda _flush: None)
        engine = Engine(authority, self._outbox, notify=self._send, run_detached=self._send)
        self._driver = SessionDriver(engine, setup, principal, transport=STDIO)
        self._session = self._driver.session
        self._agent = self._driver.agent = _AgentPipe(self._to_agent, self._put_to_server)

    def run(self) -> int:
        """Serve until one side ends; return the exit code."""
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
        for descriptor, mask in self._poll.poll(self._patience() * 1000):
            self._ready(descriptor, mask)
        at = now()
        self._feed_all(self._authority.tick(at))
        if not self._session.is_idle and monotonic() - self._ticked_at >= TICK_S:
            # A tick looks at every open request; at each turn that would be quadratic.
            self._ticked_at = monotonic()
            self._feed(Ticked(at))
        if self._signals and not self._has_told_stop:
            self._has_told_stop = True
            self._feed(GateStopping(at))
        self._flush()
        self._authority.rest()
        if self._to_agent.broken and not self._stopping:
            self._feed(AgentGone(at))
            self._begin_stop("agent")
        self._check_server()
        self._advance_stop()

    def _ready(self, descriptor: int, mask: int) -> None:
        server = self._server
        if descriptor == 0:
            self._read_agent()
        elif descriptor == self._bell:
            self._hear_signal()
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

    def _patience(self) -> float:
        if self._step:
            return max(0.0, min(self._deadline - monotonic(), self._authority.interval_s, 0.05))
        if self._session.is_idle:
            return self._authority.interval_s
        return min(self._authority.interval_s, TICK_S)

    def _update_masks(self) -> None:
        """Watch what can be served now, and nothing else, so that no poll returns in vain."""
        wanted = dict(self._authority.descriptors())
        wanted[self._bell] = select.POLLIN
        to_server = self._to_server
        agent_full = len(self._to_agent.waiting) > HIGH_WATER
        server_full = to_server is not None and len(to_server.waiting) > HIGH_WATER
        if self._agent_open and not agent_full and not server_full:
            wanted[0] = select.POLLIN
        if self._server is not None and self._server_open and not agent_full:
            wanted[self._server.stdout] = select.POLLIN
        # Without anything to send, only the closing of the other end is reported.
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
        self._agent_read = READ_ON if len(chunk) >= READ else READ
        at = now()
        lines = self._from_agent.feed(chunk) if chunk else self._from_agent.close()
        for line in lines:
            self._feed(AgentSent(line, at, self._authority.read(line)))
        if not chunk:
            self._agent_open = False
            self._flush()
            self._feed(AgentGone(at))
            self._begin_stop("eof")

    def _read_server(self, server: ServerProcess) -> int:
        """Take what the server has said; return the bytes read, 0 when there are none now."""
        try:
            chunk = os.read(server.stdout, self._server_read)
        except BlockingIOError:
            return 0
        except OSError:
            chunk = b""
        self._server_read = READ_ON if len(chunk) >= READ else READ
        at = now()
        lines = self._from_server.feed(chunk) if chunk else self._from_server.close()
        for line in lines:
            self._feed(ServerSent(line, at, self._authority.read(line)))
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
        """Record first, then send: what is not on record does not reach the server."""
        self._outbox.flush()
        if self._to_server is not None:
            self._to_server.push(writable=False)
        self._to_agent.push(writable=False)

    # The server's life.

    def _start_server(self) -> None:
        at = now()
        try:
            server = ServerProcess(self._command, self._environ)
        except OSError as error:
            self._exit_code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
            complain(f"the server {self._command[0]!r} could not be started: {error.strerror}")
            reason = f"the server could not be started: {error.strerror}"
            self._authority.note(
                server_exited(at, self._setup.server, self._setup.session, reason, was_up=False)
            )
            self._feed(ServerGone("the server could not be started", at, "server_start_failed"))
            return
        self._server = server
        self._server_open = True
        self._to_server = NonblockingWriter(server.stdin, shared=False)
        setup = self._setup
        self._authority.note(server_started(at, setup.server, setup.session, server.pid))
        if self._signals:
            # It came while there was nothing to stop yet.
            self._terminate(server, TERM_GRACE_S)

    def _check_server(self) -> None:
        server = self._server
        if server is None or self._step == "over":
            return
        code = None
        if self._child_ended or self._step or not self._server_open:
            self._child_ended = False  # first: a signal from here on is for the next turn
            code = server.poll()
        if code is None:
            if not self._server_open:
                self._begin_stop(f"{BY_SERVER} closed its output")
            elif self._to_server is not None and self._to_server.broken:
                self._begin_stop(f"{BY_SERVER} closed its input")
            return
        self._drain_server(server)
        at = now()
        if not self._stopping or self._stopping.startswith(BY_SERVER):
            self._exit_code = code
            complain(describe_exit(code))
            self._stopping = BY_SERVER
        elif self._stopping == "eof" and self._step == "eof":
            self._exit_code = code
        setup = self._setup
        self._authority.note(
            server_exited(at, setup.server, setup.session, describe_exit(code), exit_code=code)
        )
        self._feed(ServerGone(ServerExited.before_answer, at))
        self._flush()
        server.sweep()
        self._step = "over"
        self._deadline = monotonic() + TERM_GRACE_S

    def _drain_server(self, server: ServerProcess) -> None:
        """Take what an ended server still had to say; a grandchild may hold the pipe open."""
        left = DRAIN
        while self._server_open and left > 0:
            read = self._read_server(server)
            if not read:
                break
            left -= read
            self._flush()
        for line in self._from_server.close():
            self._feed(ServerSent(line, now()))

    # Stopping.

    def _begin_stop(self, reason: str) -> None:
        if self._stopping:
            return
        self._stopping = reason
        self._step = "eof"
        self._deadline = monotonic() + EOF_GRACE_S

    def _advance_stop(self) -> None:
        """Close stdin, wait, terminate, wait, kill; each step only when the one before failed."""
        if self._authority.stop_reason and not self._stopping:
            complain(f"stopping: {self._authority.stop_reason}")
            self._feed(AgentGone(now()))
            self._begin_stop(self._authority.stop_reason)
        server = self._server
        if not self._step or self._step == "over" or server is None:
            return
        if self._to_server is not None and not self._to_server.waiting and self._outbox.is_empty:
            os.close(server.stdin)
            self._to_server = None
        if self._step == "eof" and self._has_come_closer():
            self._deadline = monotonic() + EOF_GRACE_S
        if monotonic() < self._deadline:
            return
        if self._step == "eof":
            server.signal(signal.SIGTERM)
            self._step = "term"
            self._deadline = monotonic() + TERM_GRACE_S
        else:
            server.signal(signal.SIGKILL)
            self._deadline = monotonic() + TERM_GRACE_S

    def _has_come_closer(self) -> bool:
        """Tell whether a server whose agent has left still works off what it was sent.

        The grace is for a server that does nothing; nothing new can come, so it ends. Nobody
        waits for an agent that has closed both its sides.
        """
        if self._stopping != "eof" or self._to_agent.broken:
            return False
        waiting = len(self._to_server.waiting) if self._to_server is not None else 0
        before, self._left = self._left, (waiting, self._session.open_requests)
        return self._left < before

    def _hear_signal(self) -> None:
        os.read(self._bell, 64)

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
        """Stop the server without waiting for it to see the end of its input."""
        server.signal(signal.SIGTERM)
        self._stopping = "signal"
        self._step = "term" if self._step != "over" else "over"
        self._deadline = monotonic() + grace

    def _listen_for_signals(self) -> None:
        os.set_blocking(self._bell, False)
        os.set_blocking(self._ring, False)
        signal.set_wakeup_fd(self._ring, warn_on_full_buffer=False)
        for number in _HEARD:
            signal.signal(number, self._on_signal)
        # Whoever started the shim may have blocked some of them.
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
        if server is not None and server.poll() is None:
            server.signal(signal.SIGKILL)
        if server is not None:
            server.sweep()
        signal.set_wakeup_fd(-1)
        self._authority.finish(status, now())


class _AgentPipe:
    """The agent on this process's standard streams, as the session's driver sees it."""

    def __init__(self, to_agent: NonblockingWriter, to_server: Callable[[bytes], None]) -> None:
        self._to_agent = to_agent
        self._to_server = to_server

    def take(self, frame: ToAgent) -> None:
        """A frame for the agent; it is pushed once the record is written."""
        self._to_agent.put(frame.data)

    def forward(self, frame: ToServer) -> None:
        """A frame for the server."""
        self._to_server(frame.data)

    def can_be_asked(self, *, modern: bool) -> bool:
        """A pipe carries everything."""
        del modern
        return True

    def held(self, key: RequestId) -> None:
        """Pipes need no keeping alive."""

    def withdrawn(self) -> None:
        """There is no exchange to end."""

    def keep_alive(self, at: float) -> None:
        """As for a held call."""


def complain(text: str) -> None:
    """Say something to the person behind the agent: on stderr, never on stdout.

    An agent that reads its servers' stderr no more, or closed it, must not stop the traffic:
    what cannot be said at once is not said.
    """
    line = f"thoughtgate: {text}\n".encode("utf-8", "backslashreplace")
    poll = select.poll()
    poll.register(2, select.POLLOUT)
    with contextlib.suppress(OSError):
        while line and poll.poll(0):
            line = line[os.write(2, line[:MAX_COMPLAINT]) :]
