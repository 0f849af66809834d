"""Control socket of a running hub, for commands of the same user: one request line, one reply.

The socket is in the state directory, which only its owner can enter. Where the system reports
the user of the peer, that is checked too.
"""

import asyncio
import contextlib
import json
import os
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from thoughtgate.errors import PeerError, PeerGone, ThoughtGateError

MAX_LINE: Final = 1024 * 1024
MAX_PATH: Final = 100
"""Length of a Unix socket's address; the system's limit is a little higher."""

ANSWER_S: Final = 30.0
"""How long a command waits for the reply: a server may be slow to start."""

Operation: TypeAlias = Callable[[dict[str, Any]], Awaitable[Any]]


class ControlServer:
    """Listens on the control socket and answers commands."""

    def __init__(self, path: Path, operations: dict[str, Operation]) -> None:
        self.path = path
        self._operations = operations
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        """Start listening.

        Raises:
            OSError: the socket cannot be created.
        """
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Left by a process with the same id that was killed; binding to it would fail.
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.setblocking(False)
        with _reachable(self.path) as address:
            listening.bind(address)
        self.path.chmod(0o600)
        self._server = await asyncio.start_unix_server(self._serve, sock=listening, limit=MAX_LINE)

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            # Closing the server does not end the connections that are open.
            for link in list(self._links):
                await _hang_up(link)
            with contextlib.suppress(OSError):
                self.path.unlink()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._links.add(writer)
        try:
            if _is_own(writer.get_extra_info("socket")):
                while line := await reader.readline():
                    writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
                    await writer.drain()
        except (OSError, ValueError):
            pass  # The client has disconnected, or sent a line that is too long.
        finally:
            self._links.discard(writer)
            await _hang_up(writer)

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(line)
            operation = self._operations[asked["op"]]
        except (ValueError, KeyError, TypeError):
            known = ", ".join(sorted(self._operations))
            return {"ok": False, "error": f"unknown operation; the known ones are: {known}"}
        try:
            return {"ok": True, "result": await operation(asked)}
        except ThoughtGateError as error:
            return {"ok": False, "error": str(error)}


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def ask_control(path: Path, op: str, timeout_s: float = ANSWER_S, **arguments: Any) -> Any:
    """Send a command to a running hub and return its reply.

    Raises:
        PeerGone: no hub listens on the socket.
        PeerError: the hub refused the command; the message says why.
    """
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as link:
        link.settimeout(timeout_s)
        try:
            with _reachable(path) as address:
                link.connect(address)
            link.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
            with link.makefile("rb") as answers:
                line = answers.readline(MAX_LINE * 8)
            answer = json.loads(line)
        except (OSError, ValueError):
            raise PeerGone("the gate does not answer; is it still running?") from None
    if not answer.get("ok"):
        raise PeerError("service_unavailable", str(answer.get("error")))
    return answer.get("result")


@contextlib.contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """Yield a usable address for a socket; a path that is too long is reached through its directory."""
    if len(os.fsencode(path)) <= MAX_PATH or sys.platform != "linux":
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def _is_own(link: Any) -> bool:
    """Tell whether the peer runs as the same user, if the system can tell."""
    if sys.platform != "linux":
        return True
    try:
        told = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except OSError:
        return False
    uid = struct.unpack("3i", told)[1]
    return bool(uid == os.geteuid())
