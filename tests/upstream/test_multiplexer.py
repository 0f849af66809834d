"""One pipe for many: numbers, tokens and subscriptions are exchanged and restored."""

import asyncio
import gc
import json
import os
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import run_async

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.events import Event, NotSent, ServerSent
from thoughtgate.core.record_events import Record
from thoughtgate.errors import PeerError
from thoughtgate.transports.child_process import ChildCommand
from thoughtgate.upstream.multiplexer import ChildLine, Multiplexer
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Message

_SERVER = """
import json, sys
for line in sys.stdin:
    got = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "method": "seen", "params": {"got": got}}), flush=True)
    if got.get("method") == "listen":
        meta = {"io.modelcontextprotocol/subscriptionId": got["id"]}
        note = {"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": meta}}
        print(json.dumps(note), flush=True)
        result = {"_meta": meta}
        print(json.dumps({"jsonrpc": "2.0", "id": got["id"], "result": result}), flush=True)
    elif "id" in got and "method" in got:
        print(json.dumps({"jsonrpc": "2.0", "id": got["id"], "result": {}}), flush=True)
"""


class _Driver:
    def __init__(self, *, is_modern: bool = True) -> None:
        self.is_modern = is_modern
        self.principal = "local"
        self.heard: list[Any] = []
        self.kinds: list[str] = []
        self.texts: list[str] = []

    def feed(self, event: Event, sink: object) -> int:
        del sink
        if isinstance(event, ServerSent):
            self.heard.append(json.loads(event.line))
        elif isinstance(event, NotSent):
            self.kinds.append(event.kind)
            reason = (event.facts or {}).get("reason")
            self.texts += [one for one in (reason, event.text) if isinstance(one, str)]
        return 1


class _Line(ChildLine):
    """A line whose driver is a stand-in."""

    driver: _Driver  # type: ignore[assignment]  # as said

    def __init__(self, mux: Multiplexer, driver: _Driver, key: Any) -> None:
        owner: Any = None
        super().__init__(owner, driver, key, mux)  # type: ignore[arg-type]  # as said


def _message(method: str, ident: Any, **params: Any) -> Message:
    body = {"jsonrpc": "2.0", "method": method, "params": params}
    message = read_frame(json.dumps(body if ident is None else {**body, "id": ident}).encode())
    assert isinstance(message, Message)
    return message


def _mux(
    program: str = _SERVER,
    *args: str,
    command: str = sys.executable,
    told: list[Record] | None = None,
    is_shared: bool = True,
) -> Multiplexer:
    return Multiplexer(
        ServerSettings("kid"),
        ChildCommand(command, ("-c", program, *args), dict(os.environ)),
        is_shared=is_shared,
        note=(told if told is not None else []).append,
        on_refused=lambda _line, _check: None,
    )


async def _until(heard: list[Any], count: int) -> None:
    async with asyncio.timeout(10):
        while len(heard) < count:  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.005)


def test_two_callers_with_one_id_get_their_own_answers() -> None:
    async def main() -> None:
        mux = _mux()
        await mux.ready()
        one, two = _Driver(), _Driver()
        mux.send(_Line(mux, one, 1), _message("a", 1))
        mux.send(_Line(mux, two, 1), _message("b", 1))
        await _until(one.heard, 1)
        await _until(two.heard, 1)
        assert one.heard == two.heard == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
        await mux.dispose()

    run_async(main())


def test_a_subscription_is_known_by_the_callers_own_id() -> None:
    async def main() -> None:
        mux = _mux()
        await mux.ready()
        driver = _Driver()
        mux.send(_Line(mux, driver, "mine"), _message("listen", "mine"))
        await _until(driver.heard, 2)
        note, answer = driver.heard
        assert note["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "mine"
        assert answer["id"] == "mine"
        assert answer["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "mine"
        await mux.dispose()

    run_async(main())


def test_an_agent_that_left_is_not_remembered_for_what_it_watched() -> None:
    async def main() -> None:
        mux = _mux()
        await mux.ready()
        driver = _Driver()
        watch = _message("resources/subscribe", 1, uri="file:///a")
        mux.send(_Line(mux, driver, 1), watch)
        await _until(driver.heard, 1)
        mux.leave(driver)  # type: ignore[arg-type]  # as above
        gone = weakref.ref(driver)
        del driver
        gc.collect()
        assert gone() is None
        await mux.dispose()

    run_async(main())


def test_whoever_waits_is_told_when_the_server_ends() -> None:
    async def main() -> None:
        told: list[Record] = []
        mux = _mux("input(); raise SystemExit(7)", told=told)
        await mux.ready()
        line = _Line(mux, _Driver(), 1)
        mux.send(line, _message("a", 1))
        await _until(line.driver.kinds, 1)
        assert line.driver.kinds == ["upstream_connection_failed"]
        exited = "the server exited with code 7"
        assert line.driver.texts == [exited, "the server exited before it answered"]
        assert not mux.is_up
        await mux.dispose()
        assert [(one.type, one.server) for one in told] == [
            ("server_started", "kid"),
            ("server_exited", "kid"),
        ]
        assert told[1].body["server"] == {
            "state": "exited",
            "exit_code": 7,
            "cause": "exited",
            "kind": "upstream_connection_failed",
            "reason": exited,
        }

    run_async(main())


@pytest.mark.parametrize("ident", [[1], {"a": 1}, 1.5, True, None])
def test_a_cancellation_that_names_no_request_goes_nowhere(ident: Any) -> None:
    async def main() -> None:
        mux = _mux()
        await mux.ready()
        driver = _Driver()
        notice = _message("notifications/cancelled", None, requestId=ident)
        mux.send_notice(driver, notice)  # type: ignore[arg-type]  # a stand-in
        mux.send(_Line(mux, driver, 1), _message("a", 1))
        await _until(driver.heard, 1)
        assert driver.heard == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
        await mux.dispose()

    run_async(main())


# Starts.

_COUNTED = """
import os, pathlib, sys
pathlib.Path(sys.argv[1], str(os.getpid())).touch()
"""


def _counted(starts: Path, program: str) -> Multiplexer:
    """Return a mux for a program of which every process leaves a file."""
    starts.mkdir()
    return _mux(_COUNTED + program, str(starts))


def test_all_who_come_while_the_server_is_down_share_one_process(tmp_path: Path) -> None:
    async def main() -> None:
        mux = _counted(tmp_path / "starts", _SERVER)
        assert len(set(await asyncio.gather(*(mux.ready() for _ in range(10))))) == 1
        lines = [_Line(mux, _Driver(), 1) for _ in range(3)]
        for line in lines:
            mux.send(line, _message("a", 1))
        for line in lines:
            await _until(line.driver.heard, 1)
        assert len(list((tmp_path / "starts").iterdir())) == 1
        await mux.dispose()

    run_async(main())


def test_a_start_goes_on_when_who_asked_for_it_does_not_wait(tmp_path: Path) -> None:
    async def main() -> None:
        mux = _counted(tmp_path / "starts", _SERVER)
        first = asyncio.get_running_loop().create_task(mux.ready())
        second = asyncio.get_running_loop().create_task(mux.ready())
        await asyncio.sleep(0)
        first.cancel()
        await second
        assert first.cancelled()
        assert mux.is_up
        line = _Line(mux, _Driver(), 1)
        mux.send(line, _message("a", 1))
        await _until(line.driver.heard, 1)
        assert len(list((tmp_path / "starts").iterdir())) == 1
        await mux.dispose()

    run_async(main())


def test_a_start_that_fails_is_told_to_all_who_wait_and_counts_once() -> None:
    async def main() -> None:
        told: list[Record] = []
        mux = _mux(command="/nonexistent/server", told=told)
        waiting = await asyncio.gather(*(mux.ready() for _ in range(3)), return_exceptions=True)
        reason = "the server could not be started: No such file or directory"
        assert {str(one) for one in waiting} == {reason}
        assert mux.standing.failures == 1
        assert [one.body["server"] for one in told] == [
            {
                "state": "failed_to_start",
                "cause": "start_failed",
                "kind": "server_start_failed",
                "reason": reason,
            }
        ]
        await mux.dispose()

    run_async(main())


def test_a_process_that_is_being_started_is_stopped_too(tmp_path: Path) -> None:
    async def main() -> None:
        mux = _counted(tmp_path / "starts", _SERVER)
        start = asyncio.get_running_loop().create_task(mux.ready())
        await asyncio.sleep(0)
        await mux.dispose()
        with pytest.raises(PeerError, match="stopped"):
            await start
        assert not mux.is_up
        line = _Line(mux, _Driver(), 1)
        mux.send(line, _message("a", 1))
        assert line.driver.kinds == ["server_not_running"]

    run_async(main())


_LEAVES_ITS_OUTPUT = """
import json, subprocess
for line in sys.stdin:
    got = json.loads(line)
    if got["method"] == "leave":
        hold = 'for _ in $(seq 500); do [ -e "$0/../go" ] && exit; sleep 0.02; done'
        subprocess.Popen(["sh", "-c", hold, sys.argv[1]], start_new_session=True)
        os._exit(1)
    if got["method"] != "wait":
        print(json.dumps({"jsonrpc": "2.0", "id": got["id"], "result": {}}), flush=True)
"""


def test_the_late_end_of_one_process_does_not_touch_the_next(tmp_path: Path) -> None:
    async def main() -> None:
        mux = _counted(tmp_path / "starts", _LEAVES_ITS_OUTPUT)
        await mux.ready()
        left = _Line(mux, _Driver(), 1)
        mux.send(left, _message("leave", 1))
        await _until(left.driver.kinds, 1)
        assert left.driver.kinds == ["upstream_connection_failed"]
        await mux.ready()
        line = _Line(mux, _Driver(), 1)
        mux.send(line, _message("wait", 1))
        (tmp_path / "go").touch()
        await asyncio.sleep(0.3)
        assert line.driver.kinds == []
        other = _Line(mux, _Driver(), 2)
        mux.send(other, _message("a", 2))
        await _until(other.driver.heard, 1)
        await mux.dispose()

    run_async(main())


def test_nobody_waits_for_a_handshake_that_could_not_be_sent() -> None:
    async def main() -> None:
        mux = _mux()
        for method in ("initialize", "a"):
            line = _Line(mux, _Driver(is_modern=False), 1)
            mux.send(line, _message(method, 1))
            assert line.driver.kinds == ["server_not_running"]

    run_async(main())


_MORTAL = """
import json, os, sys
for line in sys.stdin:
    got = json.loads(line)
    with open(sys.argv[1], "a") as log:
        log.write(json.dumps([os.getpid(), got.get("method"), got.get("params")]) + "\\n")
    if got["method"] == "die":
        os._exit(1)
    if got["method"] == "initialize" and os.path.exists(sys.argv[1] + ".shy"):
        os.remove(sys.argv[1] + ".shy")
        os._exit(2)
    if "id" in got:
        said = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}}}
        print(json.dumps({"jsonrpc": "2.0", "id": got["id"], "result": said}), flush=True)
"""


class _Stream:
    """A stand-in for the stream of an agent."""

    def __init__(self, driver: _Driver) -> None:
        self.driver: Any = driver

    def take(self, frame: Any) -> None: ...

    def forward(self, frame: Any) -> None: ...


@pytest.mark.parametrize("is_shy", [False, True])
@pytest.mark.parametrize("is_shared", [False, True])
def test_a_new_process_gets_the_handshake_and_the_subscriptions_of_the_old_one(
    tmp_path: Path, *, is_shared: bool, is_shy: bool
) -> None:
    log, shy = tmp_path / "log", tmp_path / "log.shy"
    agent = {"protocolVersion": "2025-06-18", "capabilities": {"roots": {}}, "clientInfo": {}}

    async def main() -> Any:
        mux = _mux(_MORTAL, str(log), is_shared=is_shared)
        await mux.ready()
        driver = _Driver(is_modern=False)
        stream = _Stream(driver)
        mux.listen(stream)
        for ident, method, params in (
            (1, "initialize", agent),
            (2, "resources/subscribe", {"uri": "a:b"}),
        ):
            mux.send(_Line(mux, driver, ident), _message(method, ident, **params))
            await _until(driver.heard, ident)
        if is_shy:
            shy.touch()
        mux.send(_Line(mux, driver, 3), _message("die", 3))
        await _until(driver.kinds, 1)
        await _until(driver.heard, 3)
        assert driver.heard[2]["method"] == "notifications/tools/list_changed"
        mux.send(_Line(mux, driver, 4), _message("a", 4))
        await _until(driver.heard, 4)
        async with asyncio.timeout(10):
            while log.read_text().count("a:b") < 2:  # noqa: ASYNC110  another process writes it
                await asyncio.sleep(0.005)
        await mux.dispose()

    run_async(main())
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    found = [(method, params) for pid, method, params in entries if pid == entries[-1][0]]
    first = [(method, params) for pid, method, params in entries if pid == entries[0][0]]
    assert found[0] == first[0]
    assert (found[0][1] == agent) is not is_shared
    assert found[1] == ("notifications/initialized", None)
    assert sorted(method for method, _ in found[2:]) == ["a", "resources/subscribe"]


def test_a_process_that_ended_before_its_handshake_was_answered_is_not_given_one(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        mux = _mux(_MORTAL, str(tmp_path / "log"), is_shared=False)
        await mux.ready()
        driver = _Driver(is_modern=False)
        mux.send(_Line(mux, driver, 1), _message("die", 1))
        await _until(driver.kinds, 1)
        await mux.ready()
        mux.send(_Line(mux, driver, 2), _message("initialize", 2))
        await _until(driver.heard, 1)
        assert driver.heard[0]["id"] == 2
        await mux.dispose()

    run_async(main())
    assert (tmp_path / "log").read_text().count("initialize") == 1
