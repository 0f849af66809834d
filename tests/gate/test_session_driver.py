"""The record before the bytes, and what all flows share."""

import asyncio
from pathlib import Path

import pytest
from tests.support.http_gate import Gate, call_of, config_for
from tests.support.http_upstream import HttpUpstream, Received, Reply, text_result
from tests.support.waiting import run_async

from thoughtgate.errors import RecordError
from thoughtgate.gate.session_driver import MAX_TOOLS, Outbox, ToolHeaders
from thoughtgate.record.writer import RecordWriter


def _script(received: Received) -> Reply:
    return text_result(received, "done")


def test_a_call_that_cannot_be_recorded_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HttpUpstream(_script) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        assert gate.call("echo").status == 200
        upstream.received.clear()

        def fail(self: RecordWriter, records: object) -> None:
            raise RecordError("the disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(RecordWriter, "write", fail)
            answer = gate.call("echo", ident=2)
            assert answer.error["code"] == -32013
            assert "disk" not in answer.body.decode()
            assert gate.post([call_of("echo", ident=3)]).json[0]["error"]["code"] == -32013
        assert upstream.received == []
        assert gate.call("echo", ident=4).json["result"]


def test_the_record_stands_before_the_call_arrives(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def script(received: Received) -> Reply:
        seen.append([one["type"] for one in gate.records() if "call" in one])
        return text_result(received, "x")

    with HttpUpstream(script) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        gate.call("echo")
    assert seen == [["tool_call_start", "tool_call_decision"]]


def test_what_tools_want_repeated_is_learned_and_forgotten() -> None:
    schema = {"properties": {"r": {"type": "string", "x-mcp-header": "R"}}}
    tools = ToolHeaders()
    tools.learn("prompts/list", ({"name": "a", "inputSchema": schema},))
    assert tools.of("a") == ()
    tools.learn("tools/list", ({"name": "a", "inputSchema": schema}, {"name": 5}))
    assert [one.header for one in tools.of("a")] == [b"mcp-param-r"]
    tools.learn("tools/list", ({"name": "a", "inputSchema": {}},))
    assert tools.of("a") == ()


def test_a_flood_of_tools_is_bounded() -> None:
    schema = {"properties": {"r": {"type": "string", "x-mcp-header": "R"}}}
    tools = ToolHeaders()
    tools.learn(
        "tools/list",
        tuple({"name": f"t{number}", "inputSchema": schema} for number in range(MAX_TOOLS + 5)),
    )
    assert tools.of(f"t{MAX_TOOLS + 1}") == ()
    assert tools.of("t1") != ()


class _Pen:
    """Has nothing to write."""

    def flush(self) -> None:
        """Do nothing."""


def test_one_answer_that_fails_takes_no_other_with_it() -> None:
    told: list[int] = []
    failures: list[str] = []

    def fail() -> None:
        raise ValueError("one agent's trouble")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: failures.append(str(context["exception"])))
        outbox = Outbox(_Pen())  # type: ignore[arg-type]  # only its flush is called
        outbox.later(told.append, 1)
        outbox.later(fail)
        outbox.later(told.append, 2)
        done = asyncio.Event()
        outbox.later(done.set)
        await done.wait()

    run_async(main())
    assert told == [1, 2]
    assert failures == ["one agent's trouble"]
