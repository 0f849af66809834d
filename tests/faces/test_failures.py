"""A server that fails: each failure has its own name in the reply, the log, the record and status."""

import contextlib
import json
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.faces.agents import HttpAgent
from tests.faces.conftest import Start
from tests.faces.face import HTTP_SERVER, SERVE, STDIO_AGENT, STDIO_SERVER, Gate, Setup
from tests.faces.test_lifecycle import OPEN
from tests.support.certificates import write_certificate
from tests.support.connect_proxy import ConnectProxy
from tests.support.http_upstream import (
    HttpUpstream,
    Received,
    Reply,
    event,
    free_port,
    result,
    text_result,
)
from tests.support.warm_command import run_warm

from thoughtgate.errors import CAUSES
from thoughtgate.transports.tls import server_context

SECRET: Final = "hunter2-hunter2-hunter2"
ANSWER: Final = b'{"jsonrpc":"2.0","id":"another","result":{}}'
BAD: Final[dict[str, tuple[Reply, str, dict[str, Any]]]] = {
    "401": (Reply(401, SECRET.encode(), "text/plain"), "status_401", {"status": 401}),
    "403": (Reply(403), "status_403", {"status": 403}),
    "404": (Reply(404), "status", {"status": 404}),
    "429": (
        Reply(429, headers={"retry-after": "17"}),
        "rate_limited_by_server",
        {"status": 429, "retry_after": 17},
    ),
    "500": (Reply(500, SECRET.encode(), "text/html"), "status", {"status": 500}),
    "503": (
        Reply(503, headers={"retry-after": "9" * 30}),
        "unavailable",
        {"status": 503, "retry_after": 86_400},
    ),
    "redirect": (
        Reply(307, headers={"location": f"https://other.example/{SECRET}?code={SECRET}"}),
        "redirected",
        {"status": 307},
    ),
    "html": (Reply(200, SECRET.encode(), "text/html"), "wrong_type", {}),
    "encoding": (
        Reply(body=b"x", headers={"content-encoding": "br"}),
        "wrong_encoding",
        {"status": 200},
    ),
    "too large": (Reply(body=b"x" * 11_000_000), "too_large", {}),
    "id": (Reply(body=ANSWER), "wrong_id", {}),
    "not json": (Reply(body=SECRET.encode()), "not_json", {}),
    "nothing": (Reply(202), "no_answer", {}),
    "not http": (Reply(raw=b"SSH-2.0-x\r\n\r\n"), "not_http", {}),
    "closed": (Reply(raw=b""), "connection_lost", {}),
    "stream": (Reply(parts=[b": nothing\n\n"]), "stream_ended", {}),
}
"""Replies that are no answer to a call, with the cause and the facts that they lead to."""

BATCHES: Final = [tuple(BAD)[at : at + 3] for at in range(0, len(BAD), 3)]
"""As many as a gate reports within a minute, beside its start."""
IGNORED: Final = frozenset({"stream_ended"})
"""Causes that say nothing about the server: streams may end at any time."""

CERTIFICATES: Final = {
    "tls_unknown_ca": ("127.0.0.1", -1),
    "tls_wrong_host": ("127.0.0.9", -1),
    "tls_expired": ("127.0.0.1", -60),
    "tls_not_yet_valid": ("127.0.0.1", 10),
    "tls_client_certificate": ("127.0.0.1", -1),
}
"""The address and the first day of the certificate that a cause needs."""
UNREACHABLE: Final = (
    "connection_refused",
    "network_unreachable",
    "dns_failed",
    "tls_failed",
    *CERTIFICATES,
)


class Failing:
    """An MCP server without sessions whose calls are answered as the test says."""

    def __init__(self) -> None:
        self.reply: Reply | None = None
        """Sent for every call instead of an answer."""
        self.session = ""
        """The session that requests must name, if there is one."""
        self.http = HttpUpstream(self.script)

    def script(self, received: Received) -> Reply:
        message = received.message
        if received.method != "POST" or not isinstance(message, dict) or "id" not in message:
            return Reply(202 if received.method == "POST" else 405)
        method = message["method"]
        is_lost = received.headers.get("mcp-session-id", "") != self.session
        # It does not know the revision of ``server/discover``, and says so in HTTP only.
        if method == "server/discover" or (is_lost and method != "initialize"):
            return Reply(404)
        if method == "tools/call":
            return self.reply or text_result(received, "fine")
        if method == "initialize":
            about = {"name": "failing", "version": "1"}
            said = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            reply = result(received, {**said, "serverInfo": about})
            reply.headers |= {"mcp-session-id": self.session} if self.session else {}
            return reply
        if method == "tools/list":
            return result(
                received, {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
            )
        error = {"code": -32601, "message": "no such method"}
        body = {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return Reply(404, json.dumps(body).encode())


@pytest.fixture
def failing() -> Iterator[Failing]:
    server = Failing()
    with server.http:
        yield server


def start_at(start: Start, url: str, **entry: Any) -> Gate:
    """Start a gate in front of a server that the test provides."""
    # With credentials in the config, a 401 does not ask for a login.
    entry.setdefault("headers", {"Authorization": f"Bearer {SECRET}"})
    gate = start(Setup(OPEN, entry), at_once=False)
    gate.url = url
    gate.start_server = lambda *_: None  # type: ignore[method-assign]  # it runs already
    return gate.start()


def call_ends(gate: Gate) -> list[dict[str, Any]]:
    """Return the ends of calls on the record."""
    return [one for one in gate.records() if one["type"] == "tool_call_end"]


def status_of(gate: Gate) -> dict[str, Any]:
    """Return what ``status`` says about the server."""
    environ = {**os.environ, "THOUGHTGATE_STATE_DIR": str(gate.state), "HOME": str(gate.root)}
    done = run_warm("status", "--json", env=environ)
    # Of a remote server of a wrapped agent, the proxy behind the shim knows the state.
    told = next(
        one
        for one in json.loads(done.stdout)["gates"]
        if gate.face.name != "wrap-http" or one["kind"] == "proxy"
    )
    (server,) = told["servers"]
    return dict[str, Any](server)


def events(gate: Gate, kind: str) -> list[dict[str, Any]]:
    """Return the servers' events of a type."""
    return [one["server"] for one in gate.records() if one["type"] == kind]


def lines(gate: Gate, *words: str) -> int:
    """Count the lines on standard error that contain all these words."""
    return sum(all(word in line for word in words) for line in gate.stderr.splitlines())


def check_told(gate: Gate, data: dict[str, Any], state: str = "degraded") -> None:
    """Compare what the record, standard error and ``status`` say with what the agent was told."""
    cause, reason = data["cause"], data["reason"]
    told = gate.wait(
        lambda: [one for one in events(gate, "server_unreachable") if one["cause"] == cause],
        f"{cause} on record",
    )
    assert [(one["state"], one["kind"], one["reason"]) for one in told] == [
        (state, CAUSES[cause][0], reason)
    ]
    gate.wait(lambda: lines(gate, reason, cause), f"{cause} on standard error")
    assert lines(gate, reason, cause) == 1
    shown = status_of(gate)
    assert (shown["error"]["kind"], shown["error"]["cause"]) == (CAUSES[cause][0], cause)
    assert shown["reason"] == reason


@pytest.mark.not_for("only HTTP servers answer with HTTP", *STDIO_SERVER)
@pytest.mark.parametrize("names", BATCHES, ids=", ".join)
def test_an_answer_that_is_none_has_a_cause(
    start: Start, failing: Failing, names: tuple[str, ...]
) -> None:
    gate = start_at(start, failing.http.url)
    agent = gate.agent()
    for name in names:
        failing.reply, cause, facts = BAD[name]
        answer = agent.call("echo", {"mark": name})
        data = answer["error"]["data"]
        told = {key: data[key] for key in ("status", "retry_after") if key in data}
        assert (name, data["kind"], data["cause"]) == (name, CAUSES[cause][0], cause)
        assert (name, told) == (name, facts)
        assert data["reason"] == answer["error"]["message"]
        assert data["correlation_id"]
        if cause not in IGNORED:
            check_told(gate, data)
    failing.reply = None
    assert agent.call("echo", {"mark": "fine"})["result"]["content"][0]["text"] == "fine"
    ends = gate.wait(
        lambda: len(found := call_ends(gate)) > len(names) and found, "the ends of all calls"
    )
    recorded = [(one["error"]["cause"], one["error"].get("status", 0)) for one in ends[:-1]]
    assert recorded == [(BAD[name][1], BAD[name][2].get("status", 0)) for name in names]
    assert SECRET not in json.dumps(gate.records()) + gate.stderr


@pytest.mark.not_for("only HTTP servers answer with HTTP", *STDIO_SERVER)
def test_a_change_of_state_is_told_once(start: Start, failing: Failing) -> None:
    gate = start_at(start, failing.http.url)
    agent = gate.agent()
    agent.call("echo", {})
    gate.wait(lambda: events(gate, "server_started"), "the start on record")
    # Under ``wrap``, the start of the proxy behind the shim is recorded, which has a process.
    assert [one["pid"] == 0 for one in events(gate, "server_started")] == [
        gate.face.name != "wrap-http"
    ]
    failing.reply = Reply(401)
    for _ in range(3):
        agent.call("echo", {})
    error = {"kind": "upstream_unauthorized", "cause": "status_401", "status": 401}
    reason = "the server needs a login or refused our credentials (HTTP status 401)"
    gate.wait(lambda: events(gate, "server_unreachable"), "the failure on record")
    assert events(gate, "server_unreachable") == [{"state": "degraded", **error, "reason": reason}]
    gate.wait(lambda: lines(gate, "degraded", "status_401"), "the failure on standard error")
    assert lines(gate, "degraded", "status_401") == 1
    told = status_of(gate)
    assert (told["status"], told["error"], told["reason"]) == ("degraded", error, reason)
    failing.reply = None
    for _ in range(2):
        agent.call("echo", {})
    gate.wait(lambda: events(gate, "server_recovered"), "the recovery on record")
    assert len(events(gate, "server_recovered")) == 1
    gate.wait(lambda: lines(gate, "is back") + lines(gate, "server recovered"), "the recovery")
    assert lines(gate, "is back") + lines(gate, "server recovered") == 1
    back = status_of(gate)
    assert back["status"] in {"up", "running"}
    assert "error" not in back


@pytest.mark.not_for("only HTTP servers answer with HTTP", *STDIO_SERVER)
def test_an_older_server_that_refuses_the_probe_is_no_failure(
    start: Start, failing: Failing
) -> None:
    gate = start_at(start, failing.http.url)
    gate.agent().call("echo", {})
    gate.wait(lambda: events(gate, "server_started"), "the start on record")
    assert events(gate, "server_unreachable") == []
    assert lines(gate, "degraded") == 0


@pytest.mark.not_for("the agent or the server does not use HTTP", *STDIO_AGENT, *STDIO_SERVER)
def test_a_servers_retry_after_reaches_the_agent_as_a_header(
    start: Start, failing: Failing
) -> None:
    agent = start_at(start, failing.http.url).agent()
    assert isinstance(agent, HttpAgent)
    for status in (429, 503):
        failing.reply = Reply(status, headers={"retry-after": "17"})
        call = agent.message(status, "tools/call", {"name": "echo", "arguments": {}})
        posted = agent.post(call)
        assert (posted.status, posted.headers["retry-after"]) in {(200, "17"), (status, "17")}
        assert posted.messages[0]["error"]["data"]["retry_after"] == 17


@pytest.mark.not_for("only HTTP servers answer with HTTP", *STDIO_SERVER)
def test_a_server_that_is_too_slow(start: Start, failing: Failing) -> None:
    gate = start_at(start, failing.http.url, timeout="1s")
    agent = gate.agent()
    never = threading.Event()
    for parts in (None, [b": open\n\n", b": never\n\n"]):
        failing.reply = Reply(wait=never, parts=parts)
        data = agent.call("echo", {})["error"]["data"]
        assert (data["kind"], data["cause"]) == ("tool_call_timeout", "answer_timeout")
        check_told(gate, data)
    never.set()
    ends = gate.wait(
        lambda: (
            len(found := [one for one in gate.records() if one["type"] == "tool_call_end"]) == 2
            and found
        ),
        "the ends of both calls",
    )
    assert [(one["status"], one["error"]["cause"]) for one in ends] == [
        ("TIMEOUT", "answer_timeout")
    ] * 2


@pytest.mark.not_for("only HTTP servers answer with HTTP", *STDIO_SERVER)
def test_a_server_that_stops_in_the_middle(start: Start, failing: Failing) -> None:
    gate = start_at(start, failing.http.url, timeout="1s")
    agent = gate.agent()
    never = threading.Event()
    answered = failing.http.script

    def begin(received: Received) -> Reply:
        if b'"tools/call"' not in received.body:
            return answered(received)
        token = received.message["params"]["_meta"]["progressToken"]
        params = {"progressToken": token, "progress": 1}
        said = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        return Reply(parts=[event(said), b": never\n\n"], wait=never)

    failing.http.script = begin
    data = agent.call("echo", {}, _meta={"progressToken": "t"})["error"]["data"]
    assert (data["kind"], data["cause"]) == ("tool_call_timeout", "idle_timeout")
    check_told(gate, data)
    never.set()
    gate.wait(lambda: call_ends(gate), "the end of the call")
    (end,) = call_ends(gate)
    assert (end["status"], end["error"]["cause"]) == ("TIMEOUT", "idle_timeout")


@pytest.mark.not_for("only HTTP servers are reached over a network", *STDIO_SERVER)
def test_a_server_that_accepts_no_connections(start: Start) -> None:
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        # The system drops further connections once the queue of the listener is full.
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/mcp"
        gate = start_at(start, url, connect_timeout="1s")
        answer = gate.agent_without_session().call("echo", {}, modern=True)
        data = answer["error"]["data"]
        assert (data["kind"], data["cause"]) == ("upstream_timeout", "connect_timeout")
        check_told(gate, data, "down")


@pytest.mark.not_for("only HTTP servers have sessions", *STDIO_SERVER)
@pytest.mark.not_for("the gate opens the next session itself", *STDIO_AGENT, *SERVE)
def test_an_agent_whose_session_is_lost_is_told_so(start: Start, failing: Failing) -> None:
    failing.session = "one"
    gate = start_at(start, failing.http.url)
    agent = gate.agent()
    assert isinstance(agent, HttpAgent)
    failing.session = "two"
    posted = agent.post(agent.message(7, "tools/call", {"name": "echo", "arguments": {}}))
    data = posted.messages[0]["error"]["data"]
    assert (posted.status, data["cause"], data["status"]) == (404, "session_lost", 404)
    assert "result" in gate.agent().call("echo", {})
    assert events(gate, "server_unreachable") == []


@pytest.mark.not_for("only HTTP servers are reached over a network", *STDIO_SERVER)
@pytest.mark.parametrize("cause", UNREACHABLE)
def test_a_server_that_cannot_be_reached(start: Start, tmp_path: Path, cause: str) -> None:
    address, first_day = CERTIFICATES.get(cause, ("127.0.0.1", -1))
    certificate, key = write_certificate(tmp_path, address, first_day=first_day, days=30)
    context = server_context(str(certificate), str(key))
    if cause == "tls_client_certificate":
        context.verify_mode = ssl.CERT_REQUIRED
    trusted = {} if cause == "tls_unknown_ca" else {"tls": {"ca": str(certificate)}}
    with (
        HttpUpstream(lambda _: Reply(405), context) as tls,
        HttpUpstream(lambda _: Reply(405)) as plain,
    ):
        url = {
            "connection_refused": f"http://127.0.0.1:{free_port()}/mcp",
            # No connection can be made to the address that means all machines of the network.
            "network_unreachable": "https://255.255.255.255/mcp",
            "dns_failed": "https://no-such-host.invalid/mcp",
            "tls_failed": plain.url.replace("http:", "https:"),
        }.get(cause, tls.url)
        gate = start_at(start, url, **(trusted if cause in CERTIFICATES else {}))
        answer = gate.agent_without_session().call("echo", {"mark": "far"}, modern=True)
        data = answer["error"]["data"]
        kind, reason = CAUSES[cause]
        if cause == "tls_failed":
            reason = "the server does not answer with TLS"
        assert (data["kind"], data["cause"]) == (kind, cause)
        assert reason in data["reason"]
        gate.wait(lambda: events(gate, "server_unreachable"), "the failure on record")
        (told,) = events(gate, "server_unreachable")
        assert told == {"state": "down", "kind": kind, "cause": cause, "reason": reason}
        gate.wait(lambda: lines(gate, reason, cause), "the failure on standard error")
        assert lines(gate, reason, cause) == 1
        shown = status_of(gate)
        assert (shown["error"]["kind"], shown["error"]["cause"]) == (kind, cause)
        assert reason in shown["reason"]


@pytest.mark.not_for("only HTTP servers are reached over a network", *STDIO_SERVER)
@pytest.mark.parametrize("cause", ["proxy_failed", "status_407"])
def test_a_proxy_that_does_not_connect(start: Start, cause: str) -> None:
    with ConnectProxy(1, user="gate", password=SECRET) as proxy:
        port = free_port() if cause == "proxy_failed" else proxy.port
        entry = {"proxy": f"http://gate:wrong-{SECRET}@127.0.0.1:{port}"}
        gate = start_at(start, "https://far.test/mcp", **entry)
        data = gate.agent_without_session().call("echo", {}, modern=True)["error"]["data"]
        assert (data["kind"], data["cause"]) == (CAUSES[cause][0], cause)
        gate.wait(lambda: events(gate, "server_unreachable"), "the failure on record")
        (told,) = events(gate, "server_unreachable")
        assert (told["kind"], told["cause"], told["reason"]) == (
            data["kind"],
            cause,
            data["reason"],
        )
        gate.wait(lambda: lines(gate, told["reason"], cause), "the failure on standard error")
        shown = status_of(gate)
        assert (shown["error"]["cause"], shown["reason"]) == (cause, data["reason"])
        assert SECRET not in json.dumps([gate.records(), data, shown]) + gate.stderr


@pytest.mark.not_for("only a process can exit", *HTTP_SERVER)
def test_a_process_that_dies(start: Start) -> None:
    gate = start(Setup(OPEN))
    data = gate.agent().call("echo", {"do": "die"})["error"]["data"]
    assert (data["kind"], data["cause"]) == ("upstream_connection_failed", "exited")
    assert data["reason"].startswith("the server ")
    (told, *_) = gate.wait(lambda: events(gate, "server_exited"), "the end on record")
    assert (told["state"], told["cause"]) == ("exited", "exited")
    assert told["reason"] == data["reason"]
    gate.wait(lambda: lines(gate, told["reason"]), "the end on standard error")
