"""The carrier for a server that runs as a child process: one frame per line."""

import logging
from typing import Any, Final

from thoughtgate.core.record_events import describe_exit
from thoughtgate.errors import PeerGone, ServerExited
from thoughtgate.transports.child_process import Child, ChildCommand, Watcher
from thoughtgate.upstream.client import Receiver
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.replies import render

STOP_GRACE_S: Final = 1.0
"""Time from closing stdin to SIGTERM; agents give the gate itself about two seconds."""

STOP_TERM_S: Final = 1.0
"""Time from SIGTERM to SIGKILL."""

_log: Final = logging.getLogger("thoughtgate.servers")


class StdioCarrier:
    """One child process; without a log, it shares the gate's standard error."""

    def __init__(
        self,
        server: str,
        command: ChildCommand,
        log: ServerLog | None,
        watcher: Watcher | None = None,
        *,
        grace_s: float = STOP_GRACE_S,
    ) -> None:
        self._server = server
        self._command = command
        self._log = log
        self._watcher = watcher
        self._grace_s = grace_s
        self._child: Child | None = None
        self._receiver: Receiver | None = None
        self.pid = 0
        self.exit_code: int | None = None

    async def open(self, receiver: Receiver) -> None:
        """Start the process.

        Raises:
            PeerGone: the process cannot be started.
        """
        self._receiver = receiver
        child = Child(
            self._command,
            on_line=self._took,
            on_exit=self._ended,
            on_stderr=None if self._log is None else self._log_stderr,
            watcher=self._watcher,
        )
        self._child = child
        await child.start()
        self.pid = child.pid

    def send(self, body: dict[str, Any]) -> None:
        """Write one line.

        Raises:
            PeerGone: the process has ended, or does not read its input.
        """
        if self._child is None:
            raise PeerGone("the server is not running", "stopped")
        self._child.send(render(body))

    def abandon(self, ident: RequestId, cause: str = "") -> bool:
        """Return False: on stdio, a cancellation is a message."""
        del ident, cause
        return False

    async def close(self) -> None:
        """Stop the process and everything it started; ignore further output."""
        # Before the process ends, so that its end is not reported as a failure.
        self._receiver = None
        child = self._child
        if child is not None:
            code = await child.stop(self._grace_s, STOP_TERM_S)
            self.exit_code = code if child.pid else None
            self.pid = 0

    def _took(self, line: bytes) -> None:
        if self._receiver is not None and line.strip():
            self._receiver.took(line, read_frame(line))

    def _log_stderr(self, chunk: bytes) -> None:
        for line in self._log.take(chunk) if self._log is not None else ():
            _log.debug("stderr: %s", line, extra={"server": self._server})

    def _ended(self, code: int) -> None:
        self.pid = 0
        self.exit_code = code
        if self._receiver is not None:
            self._receiver.lost(ServerExited(describe_exit(code)))
