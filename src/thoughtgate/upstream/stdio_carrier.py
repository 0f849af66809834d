"""Carrying frames to a server that runs as a child process."""

import logging
from collections.abc import Callable
from typing import Any, Final

from thoughtgate.errors import PeerGone
from thoughtgate.transports.child_process import Child, ChildCommand, Watcher
from thoughtgate.upstream.client import Upstream
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.replies import render

STOP_GRACE_S: Final = 1.0
"""From a closed stdin to SIGTERM when the hub stops a server: agents give the hub about two seconds."""

STOP_TERM_S: Final = 1.0
"""From SIGTERM to SIGKILL."""

_log: Final = logging.getLogger("thoughtgate.serve")


class StdioCarrier:
    """One child process."""

    def __init__(
        self,
        server: str,
        command: ChildCommand,
        log: ServerLog,
        watcher: Watcher | None = None,
        *,
        grace_s: float = STOP_GRACE_S,
        on_exit: Callable[[int], None] | None = None,
    ) -> None:
        self._server = server
        self._command = command
        self._log = log
        self._watcher = watcher
        self._grace_s = grace_s
        self._on_exit = on_exit
        self._child: Child | None = None
        self._upstream: Upstream | None = None
        self.pid = 0

    async def open(self, upstream: Upstream) -> None:
        """Start the process.

        Raises:
            PeerGone: it cannot be started.
        """
        self._upstream = upstream
        child = Child(
            self._command,
            on_line=upstream.took,
            on_exit=self._ended,
            on_stderr=self._heard,
            watcher=self._watcher,
        )
        self._child = child
        await child.start()
        self.pid = child.pid

    def send(self, body: dict[str, Any]) -> None:
        """Write one line.

        Raises:
            PeerGone: the process has ended, or reads nothing.
        """
        if self._child is None:
            raise PeerGone("the server is not running")
        self._child.send(render(body))

    def abandon(self, ident: RequestId) -> bool:
        """On stdio a cancellation is a message."""
        del ident
        return False

    async def close(self) -> None:
        """Stop the process and everything it started."""
        if self._child is not None:
            await self._child.stop(self._grace_s, STOP_TERM_S)
            self.pid = 0

    def _heard(self, chunk: bytes) -> None:
        for line in self._log.take(chunk):
            _log.debug("stderr: %s", line, extra={"server": self._server})

    def _ended(self, code: int) -> None:
        self.pid = 0
        if self._on_exit is not None:
            self._on_exit(code)
        if self._upstream is not None:
            self._upstream.lost(f"the server {describe_exit(code)}")


def describe_exit(code: int) -> str:
    """Return an exit in words."""
    return f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"
