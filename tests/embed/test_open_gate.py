"""A gate inside this process: messages in, messages out, and the record of a real run."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import PATIENCE_S, run_async

from thoughtgate.core.approval import Approval, Vote
from thoughtgate.embed import open_gate as module
from thoughtgate.embed.open_gate import EmbeddedConnection, EmbeddedGate, open_gate
from thoughtgate.errors import ConfigError, StoreError
from thoughtgate.gate.approvals.queue import open_store

CONFIG = """\
schema: 1
default: forward
servers:
  files: {expose: {block: [hidden]}, timeout: 100ms}
  "*": {}
rules:
  - {tool: "delete_*", action: approve}
  - {tool: format, action: deny}
"""


def request(ident: int, method: str = "tools/call", **params: Any) -> bytes:
    body = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
    return json.dumps(body).encode()


def call(ident: int, tool: str) -> bytes:
    return request(ident, name=tool, arguments={})


def answer(ident: int, **result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}).encode()


class Ends:
    """Both ends of a connection, as queues."""

    def __init__(self, gate: EmbeddedGate, server: str = "mail", principal: str = "") -> None:
        self.agent: asyncio.Queue[bytes] = asyncio.Queue()
        self.server: asyncio.Queue[bytes] = asyncio.Queue()
        self.connection: EmbeddedConnection = gate.connect(
            server,
            to_agent=self.agent.put_nowait,
            to_server=self.server.put_nowait,
            principal=principal,
        )

    async def at_agent(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(await asyncio.wait_for(self.agent.get(), PATIENCE_S))
        return body

    async def at_server(self) -> bytes:
        return await asyncio.wait_for(self.server.get(), PATIENCE_S)


@asynccontextmanager
async def gate_in(folder: Path, text: str = CONFIG, **more: Any) -> AsyncIterator[EmbeddedGate]:
    async with open_gate(text=text, state=folder / "state", environ={}, **more) as gate:
        yield gate


def record(folder: Path, *types: str) -> list[dict[str, Any]]:
    lines = (folder / "state" / "audit.jsonl").read_text("utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    return [one for one in events if not types or one["type"] in types]


def kind_of(body: dict[str, Any]) -> str:
    return str(body["error"]["data"]["kind"])


def test_calls_are_judged_and_recorded(tmp_path: Path) -> None:
    async def main() -> None:
        async with gate_in(tmp_path) as gate:
            ends = Ends(gate, principal="ann")
            ends.connection.from_agent(call(1, "read") + b"\n")
            assert await ends.at_server() == call(1, "read")
            ends.connection.from_server(answer(1, content=[]) + b"\n")
            assert await ends.at_agent() == json.loads(answer(1, content=[]))
            ends.connection.from_agent(call(2, "format"))
            assert kind_of(await ends.at_agent()) == "governance_denied"
            assert ends.server.empty()

    run_async(main())
    types = [one["type"] for one in record(tmp_path)]
    assert types[0] == "run_start"
    assert types[-1] == "run_end"
    started = record(tmp_path, "tool_call_start")
    assert [one["call"]["principal"] for one in started] == ["ann", "ann"]
    assert [one["call"]["server_name"] for one in started] == ["mail", "mail"]
    assert len(record(tmp_path, "tool_call_end")) == 2
    assert record(tmp_path, "run_end")[0]["run"]["status"] == "SUCCEEDED"


def test_lists_are_screened(tmp_path: Path) -> None:
    async def main() -> None:
        async with gate_in(tmp_path) as gate:
            ends = Ends(gate, "files")
            ends.connection.from_agent(request(1, "tools/list"))
            await ends.at_server()
            ends.connection.from_server(answer(1, tools=[{"name": "hidden"}, {"name": "read"}]))
            assert (await ends.at_agent())["result"]["tools"] == [{"name": "read"}]

    run_async(main())


def test_a_held_call_runs_once_somebody_approves(tmp_path: Path) -> None:
    async def main() -> None:
        async with gate_in(tmp_path) as gate:
            ends = Ends(gate)
            ends.connection.from_agent(call(1, "delete_file"))
            store = open_store(str(tmp_path / "state"))
            (asked,) = store.listed("pending")
            voted = store.vote(
                asked.id, [Vote("console:ann", True, asked.created_at)], asked.created_at
            )
            store.close()
            assert isinstance(voted, Approval)
            assert await ends.at_server() == call(1, "delete_file")

    run_async(main())
    (decided,) = record(tmp_path, "approval_decided")
    assert decided["approval"]["decided_by"] == "console:ann"


def test_closing_withdraws_held_calls_and_ends_open_ones(tmp_path: Path) -> None:
    async def main() -> None:
        async with gate_in(tmp_path) as gate:
            ends, other = Ends(gate), Ends(gate)
            ends.connection.from_agent(call(1, "delete_file"))
            ends.connection.from_agent(call(2, "read"))
            await ends.at_server()
            ends.connection.close()
            ends.connection.close()
            ends.connection.from_agent(call(3, "read"))
            ends.connection.from_server(answer(2))
            ends.connection.server_closed()
            # Another connection of the same gate goes on.
            other.connection.from_agent(call(1, "read"))
            assert await other.at_server() == call(1, "read")
            assert ends.agent.empty()
            store = open_store(str(tmp_path / "state"))
            assert store.listed("pending") == []
            store.close()

    run_async(main())
    started = [one["call"]["call_id"] for one in record(tmp_path, "tool_call_start")]
    ended = [one["call"]["call_id"] for one in record(tmp_path, "tool_call_end")]
    assert sorted(started) == sorted(ended)
    assert len(started) == 3


def test_a_server_that_is_gone_is_an_error_for_open_requests(tmp_path: Path) -> None:
    async def main() -> None:
        async with gate_in(tmp_path) as gate:
            ends = Ends(gate)
            ends.connection.from_agent(call(1, "read"))
            await ends.at_server()
            ends.connection.server_closed()
            assert kind_of(await ends.at_agent()) == "upstream_connection_failed"

    run_async(main())


def test_a_callback_that_fails_is_an_error_for_the_agent(tmp_path: Path) -> None:
    async def main() -> None:
        replies: asyncio.Queue[bytes] = asyncio.Queue()

        def fail(_message: bytes) -> None:
            raise BrokenPipeError

        async with gate_in(tmp_path) as gate:
            connection = gate.connect("mail", to_agent=replies.put_nowait, to_server=fail)
            connection.from_agent(call(1, "read"))
            body = json.loads(await asyncio.wait_for(replies.get(), PATIENCE_S))
            assert kind_of(body) == "upstream_connection_failed"

    run_async(main())


def test_a_server_that_does_not_answer_times_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TICK_S", 0.01)

    async def main() -> None:
        async with gate_in(tmp_path) as gate:
            ends = Ends(gate, "files")
            ends.connection.from_agent(call(1, "read"))
            assert kind_of(await ends.at_agent()) == "tool_call_timeout"

    run_async(main())


def test_the_development_profile_forwards(tmp_path: Path) -> None:
    async def main() -> None:
        async with gate_in(tmp_path, profile="development") as gate:
            ends = Ends(gate)
            ends.connection.from_agent(call(1, "format"))
            assert await ends.at_server() == call(1, "format")

    run_async(main())


def test_a_program_that_fails_leaves_a_complete_record(tmp_path: Path) -> None:
    async def main() -> None:
        async with gate_in(tmp_path) as gate:
            Ends(gate).connection.from_agent(call(1, "read"))
            raise LookupError

    with pytest.raises(LookupError):
        run_async(main())
    assert record(tmp_path, "run_end")[0]["run"]["status"] == "FAILED"
    assert len(record(tmp_path, "tool_call_end")) == 1


def test_a_changed_file_is_used_for_the_next_call(tmp_path: Path) -> None:
    file = tmp_path / "thoughtgate.yaml"
    file.write_text("{schema: 1, default: forward}\n", "utf-8")

    async def main() -> None:
        async with open_gate(file, state=tmp_path / "state", environ={}) as gate:
            ends = Ends(gate)
            file.write_text("{schema: 1, default: deny, rules: []}\n", "utf-8")
            ends.connection.from_agent(call(1, "read"))
            assert kind_of(await ends.at_agent()) == "governance_denied"

    run_async(main())


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")

    async def main(**arguments: Any) -> None:
        async with open_gate(environ={}, **arguments):
            raise AssertionError("it was opened")

    with pytest.raises(ConfigError):
        run_async(main(text="{schema: 2}", state=tmp_path))
    with pytest.raises(StoreError):
        run_async(main(text=CONFIG, state=tmp_path / "file" / "state"))
