"""What belongs to one principal is of no use to another, through the real listeners."""

import contextlib
import http.client
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.support.frames import call, request
from tests.support.http_agent import HttpAgent
from tests.support.proxy_process import ProxyProcess, proxy_command, serve_command
from tests.support.waiting import PATIENCE_S, wait_for

CONFIG: Final = """
schema: 1
default: forward
servers: {{up: {{command: '{python}', args: ['{program}']}}}}
listen: {{transport: http, auth: {{type: ip_allowlist, allow: [127.0.0.0/8]}}}}
"""
ANN: Final = "127.0.0.2"
BOB: Final = "127.0.0.3"

LOGS_CALLS: Final = """
import json, sys
def say(**body): print(json.dumps({"jsonrpc": "2.0", **body}), flush=True)
info = {"name": "logs", "version": "1"}
tools = [{"name": "work", "inputSchema": {"type": "object"}}]
for line in sys.stdin:
    body = json.loads(line)
    if "id" not in body:
        continue
    result = {"tools": tools, "resources": [{"uri": "note://1", "name": "note"}]}
    if body["method"] == "initialize":
        can = {"tools": {}, "logging": {}, "resources": {"subscribe": True}}
        result = {"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": info}
    elif body["method"] == "tools/call":
        said = json.dumps(body["params"]["arguments"])
        say(method="notifications/message", params={"level": "info", "data": said})
        say(method="notifications/resources/updated", params={"uri": "note://1"})
        result = {"content": []}
    say(id=body["id"], result=result)
"""


@contextlib.contextmanager
def stream_of(agent: HttpAgent, source: str) -> Iterator[list[bytes]]:
    """Open the stream of a session and collect what arrives."""
    heard: list[bytes] = []
    connection = http.client.HTTPConnection(
        "127.0.0.1", agent.port, timeout=PATIENCE_S, source_address=(source, 0)
    )
    headers = {"accept": "text/event-stream", "mcp-session-id": agent.session}
    connection.request("GET", "/mcp", headers=headers)
    response = connection.getresponse()

    def read() -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            heard.extend(iter(response.readline, b""))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield heard
    finally:
        with contextlib.suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
        reader.join(PATIENCE_S)
        response.close()
        connection.close()


@pytest.mark.promise("principals-apart")
@pytest.mark.parametrize(
    ("command", "where", "tool"),
    [(proxy_command, "--listen", "work"), (serve_command, "--http", "up.work")],
    ids=["proxy", "serve"],
)
def test_a_log_message_reaches_nobody_once_two_principals_share_the_server(
    tmp_path: Path, command: Callable[..., list[str]], where: str, tool: str
) -> None:
    program = tmp_path / "logs.py"
    program.write_text(LOGS_CALLS)
    config = tmp_path / "gate.yaml"
    config.write_text(CONFIG.format(python=sys.executable, program=program))
    arguments = ["-c", str(config), where, "127.0.0.1:0"]
    with ProxyProcess(tmp_path, arguments, command=command) as gate:
        ann, bob = (HttpAgent(gate.port, source=source) for source in (ANN, BOB))
        ann.greet()
        with stream_of(ann, ANN) as heard:
            ann.ask(request(0, "resources/subscribe", {"uri": "note://1"}))
            ann.ask(call(1, tool, {"mark": "of ann"}))
            # The only principal so far: the message can be about nobody else.
            wait_for(lambda: b"of ann" in b"".join(heard), what="the log message of her own call")
            bob.greet()
            bob.ask(call(1, tool, {"mark": "of bob"}))
            wait_for(lambda: b"".join(heard).count(b"note://1") == 2, what="what follows his call")
            assert b"of bob" not in b"".join(heard)
        if command is serve_command:
            wanted = {"server_id": "up"}
            shown = ann.ask(call(2, "thoughtgate.server_logs", wanted))["result"]
            assert shown["isError"]
            assert "only the operator" in shown["content"][0]["text"]
