"""Carrying frames to a child process."""

import os
from typing import Any

import pytest
from tests.support.hub import sample
from tests.support.waiting import run_async

from thoughtgate.errors import PeerGone
from thoughtgate.transports.child_process import ChildCommand
from thoughtgate.upstream.client import Upstream
from thoughtgate.upstream.server_log import ServerLog
from thoughtgate.upstream.stdio_carrier import StdioCarrier, describe_exit


class Nobody:
    def server_asked(self, message: Any) -> None: ...
    def server_said(self, message: Any) -> None: ...
    def server_lost(self, reason: str) -> None: ...
    def server_refused(self, fault: Any, size: int) -> None: ...


def test_exits_are_told_in_words() -> None:
    assert describe_exit(3) == "exited with code 3"
    assert describe_exit(-9) == "was ended by signal 9"


def test_a_command_that_does_not_exist_is_gone() -> None:
    async def main() -> None:
        carrier = StdioCarrier("x", ChildCommand("/nonexistent"), ServerLog())
        with pytest.raises(PeerGone, match="No such file"):
            await Upstream(carrier, Nobody()).open({})
        with pytest.raises(PeerGone):
            carrier.send({})

    run_async(main())


def test_the_log_is_kept_and_nothing_is_left_after_closing() -> None:
    entry = sample("--stderr", "hello there", "--ignore-eof", "--ignore-sigterm")
    codes: list[int] = []

    async def main() -> tuple[list[str], int]:
        log = ServerLog()
        command = ChildCommand(entry["command"], tuple(entry["args"]), dict(os.environ))
        carrier = StdioCarrier("x", command, log, grace_s=0.1, on_exit=codes.append)
        upstream = Upstream(carrier, Nobody())
        await upstream.open({})
        pid = upstream.pid
        assert not carrier.abandon(1)
        await upstream.close()
        return log.tail(5), pid

    lines, pid = run_async(main())

    assert lines == ["hello there"]
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
