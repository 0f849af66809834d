"""A persistent HTTP/1.1 connection to the governance service, for a poll loop.

Written by hand because ``http.client`` costs a shim seven megabytes. Requests are pipelined;
replies arrive in order, each with a Content-Length, and anything else breaks the connection.
Every request gets a reply or a failure.
"""

import _socket
import errno
import select
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from thoughtgate.core.events import Event
from thoughtgate.gate.run_file import is_stopped

MAX_REPLY: Final = 16 * 1024 * 1024
"""Maximum bytes of a reply. The longest names the hidden entries of a list, which has at most ten
MiB."""

RESUME_S: Final = 5.0
"""How long a service that was stopped may take to reply after it is continued."""

_READ: Final = 65536

Answer = Callable[[int, bytes], list[Event]]
"""Handles the status and body of a reply; status 0 means that there is none."""


class _Sent(NamedTuple):
    answer: Answer
    deadline: float


class Link:
    """One connection. It is opened on first use, and again after a failure."""

    def __init__(self, host: str, port: int, token: str) -> None:
        self._address = (host, port)
        self._head = (
            f"Host: {host}:{port}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\n"
        ).encode()
        self._socket: _socket.socket | None = None
        self._out = bytearray()
        self._in = bytearray()
        self._sent: deque[_Sent] = deque()

    @property
    def is_idle(self) -> bool:
        """Whether no request is open."""
        return not self._sent

    @property
    def descriptor(self) -> int:
        """The descriptor to poll; -1 while there is no connection."""
        return self._socket.fileno() if self._socket is not None else -1

    @property
    def mask(self) -> int:
        """The events to poll for."""
        return select.POLLIN | (select.POLLOUT if self._out else 0)

    def request(
        self, method: str, path: str, body: bytes, answer: Answer, deadline: float
    ) -> list[Event]:
        """Send a request; return events only if it fails at once."""
        self._sent.append(_Sent(answer, deadline))
        line = f"{method} {path} HTTP/1.1\r\n".encode()
        self._out += b"%b%bContent-Length: %d\r\n\r\n" % (line, self._head, len(body))
        self._out += body
        if self._socket is None:
            self._connect()
        return self.push()

    def push(self) -> list[Event]:
        """Write as much as the socket accepts."""
        if self._socket is None:
            return self.fail()
        try:
            while self._out:
                with memoryview(self._out) as view:
                    written = self._socket.send(view[: 256 * 1024])
                del self._out[:written]
        except BlockingIOError:
            return []
        except OSError as error:
            # Some systems report a connection that is not open yet like this.
            return [] if error.errno == errno.ENOTCONN else self.fail()
        return []

    def ready(self, mask: int) -> list[Event]:
        """Handle the events that the poll reported."""
        events: list[Event] = []
        if mask & select.POLLOUT:
            events += self.push()
        if mask & (select.POLLIN | select.POLLHUP | select.POLLERR):
            events += self._receive()
        return events

    def expire(self, at: float, service: int = 0) -> list[Event]:
        """Close a connection whose oldest request is overdue.

        If the process ``service`` is stopped (Ctrl-Z), its replies are awaited until it is
        continued. The shim may run on meanwhile: agents start servers in process groups of their
        own, which Ctrl-Z does not stop.
        """
        if not self._sent or self._sent[0].deadline >= at:
            return []
        if is_stopped(service):
            self.extend(at + RESUME_S - self._sent[0].deadline)
            return []
        return self.fail()

    def extend(self, by_s: float) -> None:
        """Extend all timeouts, as after a stop (Ctrl-Z) during which no reply could be read."""
        self._sent = deque(sent._replace(deadline=sent.deadline + by_s) for sent in self._sent)

    def fail(self) -> list[Event]:
        """Close the connection and fail every open request."""
        self.close()
        sent, self._sent = self._sent, deque()
        events: list[Event] = []
        for waiting in sent:
            events += waiting.answer(0, b"")
        return events

    def close(self) -> None:
        """Close the connection without failing its requests."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._out.clear()
        self._in.clear()

    def _connect(self) -> None:
        opened = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        opened.setblocking(False)
        # Requests are small; without this, the system may hold one back until the last is acked.
        opened.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        code = opened.connect_ex(self._address)
        if code not in (0, errno.EINPROGRESS):
            opened.close()
            return
        self._socket = opened

    def _receive(self) -> list[Event]:
        if self._socket is None:
            return []
        try:
            chunk = self._socket.recv(_READ)
        except BlockingIOError:
            return []
        except OSError:
            chunk = b""
        if not chunk:
            return self.fail()
        self._in += chunk
        events: list[Event] = []
        while True:
            reply = parse_reply(self._in)
            if reply is None:
                return events
            status, body, used = reply
            # A reply to no request means that the two sides no longer agree on which is which.
            if status < 0 or not self._sent:
                return events + self.fail()
            del self._in[:used]
            events += self._sent.popleft().answer(status, body)


def parse_reply(data: bytearray) -> tuple[int, bytes, int] | None:
    """Return (status, body, bytes used); None if incomplete; status -1 if invalid."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return (-1, b"", 0) if len(data) > _READ else None
    head = bytes(data[:end]).split(b"\r\n")
    status = head[0].split(b" ", 2)[1:2]
    length = -1
    for line in head[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
    if not status or not status[0].isdigit() or not 0 <= length <= MAX_REPLY:
        return -1, b"", 0
    start = end + 4
    if len(data) < start + length:
        return None
    return int(status[0]), bytes(data[start : start + length]), start + length
