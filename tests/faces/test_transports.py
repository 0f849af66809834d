"""How servers are reached: older transports, compression, proxies, certificates, large answers."""

import gzip
import json
import os
import shutil
import socket
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.faces.conftest import Start
from tests.faces.face import HTTP_AGENT, STDIO_AGENT, STDIO_SERVER, Setup
from tests.faces.outcomes import text_of
from tests.support.certificates import Authority
from tests.support.commands import ROOT
from tests.support.connect_proxy import ConnectProxy
from tests.support.http_upstream import HttpUpstream, Received, Reply, event, free_port, result
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for

from thoughtgate.transports.tls import server_context

pytestmark = pytest.mark.not_for("the server is not reached over HTTP", *STDIO_SERVER)

POLICY: Final = {
    "default": "forward",
    "rules": [{"id": "no-deletes", "tool": "delete_*", "action": "deny"}],
}
TOOLS: Final = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "stream")]
SSE_SERVER: Final = str(ROOT / "tests" / "fixtures" / "sse_server.py")
Encode = Callable[[bytes], bytes]


def mcp(received: Received) -> Reply:
    """Answer like an MCP server of the revisions with a handshake."""
    message = received.message
    if received.method != "POST" or "id" not in message:
        return Reply(405 if received.method != "POST" else 202)
    if message["method"] == "initialize":
        version = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        return result(received, {**version, "serverInfo": {"name": "s", "version": "1"}})
    if message["method"] == "tools/list":
        return result(received, {"tools": TOOLS})
    if message["method"] != "tools/call":
        return Reply(400)
    arguments = message["params"]["arguments"]
    answer = {"content": [{"type": "text", "text": arguments["text"] * arguments.get("n", 1)}]}
    if received.tool == "stream":
        return Reply(parts=[event({"jsonrpc": "2.0", "id": message["id"], "result": answer})])
    return result(received, answer)


def compressing(encoding: str, encode: Encode) -> Callable[[Received], Reply]:
    """Return a server that compresses what it says, if it is asked to."""

    def script(received: Received) -> Reply:
        reply = mcp(received)
        if encoding in received.headers.get("accept-encoding", ""):
            reply.headers["content-encoding"] = encoding
            reply.body = encode(reply.body) if reply.body else b""
            reply.parts = [encode(b"".join(reply.parts))] if reply.parts else None
        return reply

    return script


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [("gzip", gzip.compress), ("deflate", zlib.compress)],
    ids=["gzip", "deflate"],
)
@pytest.mark.parametrize("tool", ["echo", "stream"])
def test_a_compressed_answer_is_read(
    start: Start, encoding: str, encode: Encode, tool: str
) -> None:
    with HttpUpstream(compressing(encoding, encode)) as upstream:
        agent = start(Setup(POLICY, url=upstream.url)).agent()

        assert text_of(agent.call(tool, {"text": "plain", "n": 1000})) == "plain" * 1000


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[Callable[[int], int]]:
    """Start nginx in front of a port, with compression; return the port of its own."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed")
    running: list[subprocess.Popen[bytes]] = []

    def run(port: int) -> int:
        own = free_port()
        places = "".join(
            f"{kind}_temp_path {tmp_path}/{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        file = tmp_path / "nginx.conf"
        file.write_text(
            f"daemon off; master_process off; pid {tmp_path}/nginx.pid;\n"
            f"error_log {tmp_path}/error.log; events {{}}\n"
            f"http {{ access_log off; {places}"
            "gzip on; gzip_proxied any; gzip_min_length 1;\n"
            "gzip_types application/json text/event-stream;\n"
            f"server {{ listen 127.0.0.1:{own}; location / {{\n"
            f"proxy_pass http://127.0.0.1:{port}; proxy_http_version 1.1; }} }} }}\n",
            "utf-8",
        )
        running.append(subprocess.Popen([program, "-e", "stderr", "-c", str(file)]))
        wait_for(lambda: is_listening(own), what="nginx")
        return own

    yield run
    for process in running:
        process.terminate()
        process.wait(10)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("tool", ["echo", "stream"])
def test_nginx_compresses_the_answers(start: Start, nginx: Callable[[int], int], tool: str) -> None:
    with HttpUpstream(mcp) as upstream:
        url = f"http://127.0.0.1:{nginx(upstream.port)}/mcp"
        agent = start(Setup(POLICY, url=url)).agent()

        assert text_of(agent.call(tool, {"text": "plain", "n": 1000})) == "plain" * 1000


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip"])
def test_an_unknown_encoding_is_refused_by_name(start: Start, encoding: str) -> None:
    def script(received: Received) -> Reply:
        reply = mcp(received)
        if received.tool:
            reply.headers["content-encoding"] = encoding
        return reply

    with HttpUpstream(script) as upstream:
        gate = start(Setup(POLICY, url=upstream.url))
        answer = gate.agent().call("echo", {"text": "x"})

    assert answer["error"]["code"] == -32000


def test_an_answer_that_unpacks_to_too_much_is_refused(start: Start) -> None:
    def script(received: Received) -> Reply:
        if not received.tool:
            return mcp(received)
        bomb = gzip.compress(b'"' + b"a" * 20_000_000 + b'"')
        return Reply(body=bomb, headers={"content-encoding": "gzip"})

    with HttpUpstream(script) as upstream:
        agent = start(Setup(POLICY, url=upstream.url)).agent()

        assert agent.call("echo", {"text": "x"})["error"]["code"] == -32000


@pytest.mark.parametrize("tool", ["echo", "stream"])
def test_the_limit_of_answers_can_be_raised_and_lowered(start: Start, tool: str) -> None:
    with HttpUpstream(mcp) as upstream:
        small = start(Setup(POLICY, url=upstream.url, entry={"max_answer": "64KiB"})).agent()
        gate = start(Setup(POLICY, url=upstream.url, entry={"max_answer": "12MiB"}))

        assert small.call(tool, {"text": "x", "n": 150_000})["error"]["code"] == -32000
        assert text_of(small.call(tool, {"text": "x"})) == "x"
        # Between the shim and the proxy behind it, a message has at most 10 MiB.
        size = 9_000_000 if gate.face.name == "wrap-http" else 11_000_000
        assert len(text_of(gate.agent().call(tool, {"text": "x", "n": size}))) == size


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


def secure(authority: Authority, name: str, *, asks: bool = False) -> HttpUpstream:
    """Return a server with a certificate; it may ask for one too."""
    cert, key = authority.issue(name)
    return HttpUpstream(
        mcp, server_context(str(cert), str(key), str(authority.file) if asks else "")
    )


def test_a_private_ca_and_a_client_certificate(start: Start, authority: Authority) -> None:
    cert, key = authority.issue("gate")
    tls = {"ca": str(authority.file), "client_cert": str(cert), "client_key": str(key)}
    with secure(authority, "127.0.0.1", asks=True) as upstream:
        known = start(Setup(POLICY, url=upstream.url, entry={"tls": tls})).agent()

        assert text_of(known.call("echo", {"text": "hello"})) == "hello"


def test_a_server_behind_a_proxy(start: Start, authority: Authority) -> None:
    with (
        secure(authority, "far.test") as upstream,
        ConnectProxy(upstream.port, user="gate", password="very-secret") as proxy,
    ):
        entry = {
            "proxy": f"http://gate:very-secret@127.0.0.1:{proxy.port}",
            "tls": {"ca": str(authority.file)},
        }
        gate = start(Setup(POLICY, url="https://far.test/mcp", entry=entry))

        assert text_of(gate.agent().call("echo", {"text": "far"})) == "far"
        assert set(proxy.asked) == {("CONNECT", "far.test:443")}
        assert "very-secret" not in json.dumps(gate.records()) + gate.stderr


@pytest.mark.not_for(
    "an agent chooses the environment of its gates",
    *(name for name in STDIO_AGENT if name != "wrap-http"),
)
def test_the_operators_environment_names_a_proxy(start: Start) -> None:
    with HttpUpstream(mcp) as upstream, ConnectProxy(upstream.port) as proxy:
        env = {"HTTP_PROXY": proxy.url, "http_proxy": "", "NO_PROXY": "", "no_proxy": ""}
        gate = start(Setup(POLICY, url="http://far.test/mcp", env=env))

        assert text_of(gate.agent().call("echo", {"text": "far"})) == "far"
        assert {target for _, target in proxy.asked} == {"http://far.test/mcp"}


@pytest.mark.not_for("the operator starts the gate", "wrap-http", *HTTP_AGENT)
def test_an_agents_environment_names_no_proxy_unless_the_config_says_so(start: Start) -> None:
    with HttpUpstream(mcp) as upstream, ConnectProxy(upstream.port) as proxy:
        env = {"HTTP_PROXY": proxy.url, "http_proxy": "", "NO_PROXY": "", "no_proxy": ""}
        direct = start(Setup(POLICY, url="http://far.test/mcp", env=env))
        direct.process.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        assert direct.process.receive_answer(1)["error"]["code"] in {-32000, -32001}
        assert proxy.asked == []

        entry = {"proxy": "environment"}
        told = start(Setup(POLICY, url="http://far.test/mcp", env=env, entry=entry))
        assert text_of(told.agent().call("echo", {"text": "far"})) == "far"


@pytest.fixture
def sse_server() -> Iterator[StdioPeer]:
    """The official SDK's server of the older transport."""
    with StdioPeer([sys.executable, SSE_SERVER, "0"]) as running:
        yield running


@pytest.mark.parametrize("transport", ["auto", "sse"])
def test_a_server_of_the_older_transport(
    start: Start, sse_server: StdioPeer, transport: str
) -> None:
    url = f"http://127.0.0.1:{sse_server.receive(20)}/sse"
    gate = start(Setup(POLICY, url=url, entry={"transport": transport}))
    agent = gate.agent()

    listed = agent.ask("tools/list")["result"]["tools"]
    assert {one["name"].removeprefix(gate.face.prefix) for one in listed} == {
        "echo",
        "steps",
        "delete_note",
    }
    assert text_of(agent.call("echo", {"text": "old"})) == "old"
    assert agent.call("delete_note", {"name": "n"})["error"]["data"]["kind"] == "governance_denied"
    meta: dict[str, Any] = {"_meta": {"progressToken": "p"}}
    assert text_of(agent.call("steps", {"count": 2}, **meta)) == "2 steps"
    assert agent.inbox.message("notifications/progress")["params"]["progress"] == 1


def test_a_session_of_the_older_transport_is_opened_again(
    start: Start, sse_server: StdioPeer
) -> None:
    port = sse_server.receive(20)
    gate = start(Setup(POLICY, url=f"http://127.0.0.1:{port}/sse"))
    agent = gate.agent()
    assert text_of(agent.call("echo", {"text": "one"})) == "one"

    sse_server.destroy()
    with StdioPeer([sys.executable, SSE_SERVER, str(port)]) as again:
        assert again.receive(20) == port
        # Over HTTP, the session is the agent's own, and it opens the next.
        is_kept = gate.face.agent == "stdio"
        gate.wait(
            lambda: "result" in (agent if is_kept else gate.agent()).call("echo", {"text": "two"}),
            "a call to the new server",
        )
