"""The official client goes on working when the official server behind the gate is restarted."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from tests.support.commands import thoughtgate, with_state
from tests.support.first_of import first_of
from tests.support.http_upstream import free_port
from tests.support.proxy_process import ProxyProcess, environment, read_records
from tests.support.waiting import run_async, wait_for

HTTP_SAMPLE = Path(__file__).with_name("http_sample.py")
MORTAL = """
import os
from mcp.server import MCPServer

server = MCPServer("mortal", log_level="ERROR")


@server.tool()
def echo(text: str) -> str:
    return text


@server.tool()
def die() -> str:
    os._exit(3)


server.run("stdio")
"""


class HttpServer:
    """The SDK's HTTP server, at one address however often it is restarted."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        command = [sys.executable, str(HTTP_SAMPLE), str(self.port)]
        self._process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        wait_for(self._is_up, 20, what="the HTTP server")

    def kill(self) -> None:
        """End it without a chance to say goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def _is_up(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False


@pytest.fixture
def http_server() -> Iterator[HttpServer]:
    server = HttpServer()
    server.start()
    yield server
    server.kill()


def _config(directory: Path, entry: dict[str, Any]) -> str:
    path = directory / "thoughtgate.yaml"
    config = {"schema": 1, "default": "forward", "servers": {"sample": entry}}
    path.write_text(json.dumps(config), "utf-8")
    return str(path)


async def _text(client: Client, tool: str, text: str) -> str:
    result = await client.call_tool(tool, {"text": text})
    return str(result.content[0].text)  # type: ignore[union-attr]  # a text


@pytest.mark.parametrize(
    ("product", "tool"), first_of([("serve", "sample.echo"), ("proxy", "echo")])
)
def test_a_restarted_http_server_has_a_new_session(
    tmp_path: Path, http_server: HttpServer, product: str, tool: str
) -> None:
    config = _config(tmp_path, {"url": http_server.url})
    command = with_state(thoughtgate(product, "-c", config, "--stdio"))
    parameters = StdioServerParameters(
        command=command[0], args=command[1:], env=environment(tmp_path)
    )

    async def main() -> list[str]:
        async with asyncio.timeout(60), Client(parameters, mode="legacy") as client:
            said = [await _text(client, tool, "before")]
            for number in range(2):
                await asyncio.to_thread(http_server.kill)
                await asyncio.to_thread(http_server.start)
                said.append(await _text(client, tool, f"after {number}"))
            return said

    assert run_async(main()) == ["before", "after 0", "after 1"]
    ended = read_records(tmp_path, "tool_call_end")
    assert [one["status"] for one in ended] == ["OK"] * 3


@pytest.mark.parametrize("isolation", first_of(["session", "shared"]))
def test_a_stdio_server_that_died_is_initialized_again(tmp_path: Path, isolation: str) -> None:
    program = tmp_path / "mortal.py"
    program.write_text(MORTAL)
    entry = {"command": sys.executable, "args": [str(program)], "isolation": isolation}
    arguments = ["-c", _config(tmp_path, entry), "--listen", "127.0.0.1:0"]

    async def main(url: str) -> str:
        async with asyncio.timeout(60), Client(url, mode="legacy") as client:
            assert await _text(client, "echo", "before") == "before"
            with contextlib.suppress(Exception):
                await client.call_tool("die", {})
            return await _text(client, "echo", "after")

    with ProxyProcess(tmp_path, arguments) as proxy:
        assert run_async(main(proxy.url)) == "after"
    codes = [one["server"].get("exit_code") for one in read_records(tmp_path, "server_exited")]
    assert 3 in codes
