"""A service on a real socket that answers as a test tells it to, or not at all."""

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from thoughtgate.gate.run_file import RunFile

Answerer = Callable[[bytes, bytes], bytes | None]
"""From the head and the body of a request to raw bytes; None closes the connection."""

_READ: Final = 65536


def reply(body: bytes, status: int = 200) -> bytes:
    """Return a whole HTTP response."""
    return b"HTTP/1.1 %d X\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


class RawService:
    """Listens on the loopback until its context ends."""

    def __init__(self, answer: Answerer) -> None:
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.requests: list[tuple[bytes, bytes]] = []
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shut(self._listener)
        self._accepting.join(10)
        self._listener.close()
        for one in self._open:
            self._shut(one)
        for thread in self._threads:
            thread.join(10)

    @staticmethod
    def _shut(one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)

    def run(self, profile: str = "production") -> RunFile:
        """Return what a shim would be told of this service."""
        return RunFile("127.0.0.1", self._listener.getsockname()[1], "token", profile, 0)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._open.append(connection)
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        data = b""
        with connection, contextlib.suppress(OSError):
            while chunk := connection.recv(_READ):
                data += chunk
                while (found := _split(data)) is not None:
                    head, body, data = found
                    self.requests.append((head, body))
                    said = self._answer(head, body)
                    if said is None:
                        connection.shutdown(socket.SHUT_RDWR)
                        return
                    connection.sendall(said)


def _split(data: bytes) -> tuple[bytes, bytes, bytes] | None:
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        return None
    length = next(
        int(line.partition(b":")[2])
        for line in head.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    )
    return (head, rest[:length], rest[length:]) if len(rest) >= length else None
