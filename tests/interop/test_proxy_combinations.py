"""The official client through all four combinations of the proxy, in both eras.

The groups of the mcp-protector requirements run on each: what is listed, what is called,
what is blocked, and what is on record.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from tests.support.commands import with_state
from tests.support.first_of import first_of
from tests.support.http_upstream import free_port
from tests.support.proxy_process import (
    ProxyProcess,
    environment,
    proxy_command,
    read_records,
    sample_server,
)
from tests.support.waiting import run_async, wait_for

COMBINATIONS = ("http-http", "http-stdio", "stdio-http", "stdio-stdio")
MODES = ("legacy", "auto", "2026-07-28")
ALLOWED = ("echo", "add")


@dataclass
class Proxied:
    """A server behind the gate, and how a client reaches it."""

    directory: Path
    target: Any

    def records(self, kind: str) -> list[dict[str, Any]]:
        """Return the events on record."""
        return read_records(self.directory, kind)


@contextlib.contextmanager
def _http_sample(directory: Path) -> Iterator[str]:
    """The SDK's own HTTP server with the same tools."""
    port = free_port()
    code = (Path(__file__).parent / "http_sample.py").read_text()
    path = directory / "http_sample.py"
    path.write_text(code)
    process = subprocess.Popen([sys.executable, str(path), str(port)], stderr=subprocess.DEVNULL)
    try:
        import socket

        def is_up() -> bool:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True
            return False

        wait_for(is_up, 20, what="the HTTP server")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="module", params=COMBINATIONS)
def proxied(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxied]:
    agent, server = request.param.split("-")
    directory = tmp_path_factory.mktemp(request.param)
    with contextlib.ExitStack() as stack:
        if server == "http":
            entry = f"url: '{stack.enter_context(_http_sample(directory))}'"
        else:
            command = sample_server()
            entry = f"command: '{command[0]}', args: {json.dumps(command[1:])}"
        names = json.dumps([*ALLOWED, "not_offered"])
        config = directory / "thoughtgate.yaml"
        config.write_text(
            "schema: 1\ndefault: forward\n"
            f"servers:\n  sample: {{{entry}, expose: {{allow: {names}}}}}\n"
        )
        if agent == "http":
            arguments = ["-c", str(config), "--listen", "127.0.0.1:0"]
            proxy = stack.enter_context(ProxyProcess(directory, arguments))
            yield Proxied(directory, proxy.url)
        else:
            command = with_state(proxy_command("-c", str(config), "--stdio"))
            parameters = StdioServerParameters(
                command=command[0], args=command[1:], env=environment(directory)
            )
            yield Proxied(directory, parameters)


def _with_client(proxied: Proxied, mode: str, work: Any) -> None:
    async def main() -> None:
        async with asyncio.timeout(40), Client(proxied.target, mode=mode) as client:
            await work(client)

    run_async(main())


@pytest.mark.requirement("FR1", "FR10", "FR11", "FR12", "FR13", "FR6", "FR7")
@pytest.mark.parametrize("mode", first_of(MODES[::-1]))
def test_the_official_client_lists_calls_and_is_refused(proxied: Proxied, mode: str) -> None:
    async def work(client: Client) -> None:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == list(ALLOWED)
        echoed = await client.call_tool("echo", {"text": "hello there"})
        assert "hello there" in echoed.content[0].text  # type: ignore[union-attr]  # a text
        added = await client.call_tool("add", {"a": 2, "b": 3})
        assert "5" in added.content[0].text  # type: ignore[union-attr]  # a text
        for name in ("delete_note", "Echo", "echo ", "\uff45cho", "not_offered"):
            try:
                refused = await client.call_tool(name, {"name": "x"})
            except Exception:  # noqa: BLE001  either form of a refusal will do
                continue
            assert refused.is_error

    _with_client(proxied, mode, work)
    decisions = [
        (one["call"]["tool_name"], one["decision"]["action"])
        for one in proxied.records("tool_call_decision")
    ]
    assert ("echo", "ALLOW") in decisions
    assert ("delete_note", "BLOCK") in decisions
    assert ("Echo", "BLOCK") in decisions
    lists = [one["list"] for one in proxied.records("tools_list")]
    assert lists
    assert all(one["returned"] == len(ALLOWED) < one["offered"] for one in lists)


@pytest.mark.requirement("FR2", "NFR-P3")
def test_several_official_clients_work_at_once(proxied: Proxied) -> None:
    async def one(number: int) -> None:
        async with Client(proxied.target, mode="legacy") as client:
            for _ in range(3):
                answer = await client.call_tool("echo", {"text": f"client {number}"})
                assert f"client {number}" in answer.content[0].text  # type: ignore[union-attr]  # a text

    async def main() -> None:
        async with asyncio.timeout(60):
            await asyncio.gather(*(one(number) for number in range(3)))

    run_async(main())


@pytest.mark.requirement("FR4")
def test_a_version_that_nobody_speaks_is_refused_where_it_is_negotiated(proxied: Proxied) -> None:
    async def main() -> None:
        with pytest.raises(Exception, match=r".+"):
            async with asyncio.timeout(30), Client(proxied.target, mode="2099-01-01") as client:
                await client.list_tools()

    run_async(main())
