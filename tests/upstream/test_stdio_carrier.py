"""Carrying frames to a child process."""

import os
import signal
from typing import Any

import pytest
from tests.support.hub import sample
from tests.support.waiting import run_async

from thoughtgate.errors import PeerGone
from thoughtgate.transports.child_process import ChildCommand
from thoughtgate.upstream.client import ServerConnection
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.upstream.stdio_carrier import StdioCarrier


class Nobody:
    def server_sent(self, message: Any) -> None: ...
    def server_lost(self, gone: PeerGone) -> None: ...
    def server_refused(self, fault: Any, line: bytes) -> None: ...
    def server_reopened(self, connection: ServerConnection) -> None: ...


def test_a_command_that_does_not_exist_is_gone() -> None:
    async def main() -> None:
        carrier = StdioCarrier("x", ChildCommand("/nonexistent"), ServerLog())
        with pytest.raises(PeerGone, match="No such file"):
            await ServerConnection(carrier, Nobody()).open({})
        with pytest.raises(PeerGone):
            carrier.send({})

    run_async(main())


def test_the_log_is_kept_and_nothing_is_left_after_closing() -> None:
    entry = sample("--stderr", "hello there", "--ignore-eof", "--ignore-sigterm")

    async def main() -> tuple[list[str], int, int | None]:
        log = ServerLog()
        command = ChildCommand(entry["command"], tuple(entry["args"]), dict(os.environ))
        carrier = StdioCarrier("x", command, log, grace_s=0.1)
        upstream = ServerConnection(carrier, Nobody())
        await upstream.open({})
        pid = upstream.pid
        assert not carrier.abandon(1)
        await upstream.close()
        return log.tail(5), pid, carrier.exit_code

    lines, pid, code = run_async(main())

    assert code == -signal.SIGKILL
    assert lines == ["hello there"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
