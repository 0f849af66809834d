"""Requests that no honest client sends, as raw bytes: refused, on record, alike on every face."""

import contextlib
import json
import re
import socket
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest
from tests.faces.agents import ACCEPT, PATIENCE_S, HttpAgent
from tests.faces.conftest import Start
from tests.faces.face import HTTP_SERVER, STDIO_AGENT, Gate, Setup
from tests.faces.outcomes import text_of
from tests.faces.people import pending, wait_until_asked
from tests.faces.record_view import events_since

pytestmark = pytest.mark.not_for("the agent does not use HTTP", *STDIO_AGENT)

LARGE: Final = "a" * 40_000
"""More than a head may have."""


class Client:
    """Renders requests of one session, and sends them as they are."""

    def __init__(self, gate: Gate) -> None:
        agent = gate.agent("2025-03-26")
        assert isinstance(agent, HttpAgent)
        self.agent = agent
        self.port = gate.port

    def call(self, ident: Any, tool: str = "echo", **arguments: str) -> bytes:
        """Return the body of a call."""
        params = {"name": tool, "arguments": arguments}
        return json.dumps(self.agent.message(ident, "tools/call", params)).encode()

    def render(
        self,
        body: bytes,
        *more: str,
        method: str = "POST",
        path: str = "/mcp",
        without: str = "none",
    ) -> bytes:
        """Return a request with more header lines, or without one."""
        lines = [
            f"host: 127.0.0.1:{self.port}",
            "content-type: application/json",
            f"accept: {ACCEPT}",
            f"mcp-session-id: {self.agent.session}",
            f"content-length: {len(body)}",
        ]
        kept = [line for line in lines if not line.startswith(without)]
        head = "\r\n".join([f"{method} {path} HTTP/1.1", *kept, *more])
        return f"{head}\r\n\r\n".encode() + body

    def connect(self) -> socket.socket:
        """Return a bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def send(self, data: bytes) -> list[int]:
        """Send bytes, and return the statuses that came back until the gate closed."""
        with self.connect() as link:
            # The gate may refuse the head and close before it has read the body.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                link.sendall(data)
            return statuses(read_all(link))


def read_all(link: socket.socket) -> bytes:
    """Read until the gate closes the connection."""
    data = b""
    try:
        while chunk := link.recv(65_536):
            data += chunk
    except ConnectionResetError:
        pass  # The gate closed with bytes unread, after its response.
    return data


def statuses(data: bytes) -> list[int]:
    """Return the statuses of all responses."""
    return [int(found) for found in re.findall(rb"HTTP/1\.1 (\d+) ", data)]


class Attack(NamedTuple):
    """A request, and how it must be refused."""

    status: int
    check: str
    render: Callable[[Client, bytes], bytes]


CHUNKED: Final = "transfer-encoding: chunked"
ATTACKS: Final[dict[str, Attack]] = {
    "large_head": Attack(431, "http", lambda to, body: to.render(body, f"x-large: {LARGE}")),
    "large_head_of_small_headers": Attack(
        431, "http", lambda to, body: to.render(body, *(f"x-{n}: {'a' * 400}" for n in range(100)))
    ),
    "large_target": Attack(
        431, "http", lambda to, body: to.render(body, path=f"/mcp?{LARGE}")
    ),
    "many_headers": Attack(
        431, "http", lambda to, body: to.render(body, *(f"x-{n}: a" for n in range(200)))
    ),
    "two_hosts": Attack(400, "http", lambda to, body: to.render(body, "host: example.com")),
    "no_host": Attack(400, "http", lambda to, body: to.render(body, without="host")),
    "two_lengths": Attack(400, "http", lambda to, body: to.render(body, "content-length: 3")),
    "length_and_chunks": Attack(400, "http", lambda to, body: to.render(body, CHUNKED)),
    "unreadable_chunk": Attack(
        400, "http", lambda to, _: to.render(b"zz\r\n", CHUNKED, without="content-length")
    ),
    "two_codings": Attack(
        400,
        "http",
        lambda to, _: to.render(
            b"0\r\n\r\n", "transfer-encoding: gzip, chunked", without="content-length"
        ),
    ),
    "two_sessions": Attack(400, "http", lambda to, body: to.render(body, "mcp-session-id: other")),
    "two_sessions_on_a_stream": Attack(
        400, "http", lambda to, _: to.render(b"", "mcp-session-id: other", method="GET")
    ),
    "two_sessions_to_end": Attack(
        400, "http", lambda to, _: to.render(b"", "mcp-session-id: other", method="DELETE")
    ),
    "two_event_ids": Attack(
        400,
        "http",
        lambda to, _: to.render(b"", "last-event-id: 1", "last-event-id: 2", method="GET"),
    ),
    "plain_text": Attack(
        415,
        "http",
        lambda to, body: to.render(body, "content-type: text/plain", without="content-type"),
    ),
    "nothing_acceptable": Attack(
        406, "http", lambda to, body: to.render(body, "accept: text/html", without="accept")
    ),
    "large_body": Attack(413, "http", lambda to, _: to.render(b"x" * 2_000_000)),
    "other_method": Attack(405, "http", lambda to, body: to.render(body, method="PUT")),
    "absolute_target": Attack(
        404, "http", lambda to, body: to.render(body, path="http://example.com/mcp")
    ),
    "other_path": Attack(404, "http", lambda to, body: to.render(body, path="/")),
    "unknown_server": Attack(
        404, "unknown_path", lambda to, body: to.render(body, path="/servers/none/mcp")
    ),
    "path_below_servers": Attack(
        404, "http", lambda to, _: to.render(b"", method="GET", path="/servers/none")
    ),
    "another_protocol": Attack(400, "http", lambda _, __: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "empty_body": Attack(400, "malformed_json", lambda to, _: to.render(b"")),
    "response_to_nothing": Attack(
        400, "unknown_response", lambda to, _: to.render(b'{"jsonrpc":"2.0","id":9,"result":{}}')
    ),
    "responses_to_nothing": Attack(
        400, "unknown_response", lambda to, _: to.render(b'[{"jsonrpc":"2.0","id":9,"result":{}}]')
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_request(gate: Gate, name: str) -> None:
    client, attack = Client(gate), ATTACKS[name]
    mark = f"hostile-{name}"
    start = len(gate.records())
    request = attack.render(client, client.call("a-1", mark=mark))
    assert client.send(request.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)) == [attack.status]
    (refused,) = gate.wait(lambda: events_since(gate, start, "frame_refused"), "the refusal")
    assert refused["frame"]["check"] == attack.check
    assert gate.received(mark) == []


def test_request_of_unreadable_bytes_behind_another(gate: Gate) -> None:
    client = Client(gate)
    start = len(gate.records())
    first = client.render(client.call("p-1", mark="pipelined-first"))
    assert client.send(first + b"NONSENSE\r\n\r\n") == [200, 400]
    assert client.send(first + client.render(b"{}", f"x-large: {LARGE}")) == [200, 431]
    found = gate.wait(
        lambda: len(all_ := events_since(gate, start, "frame_refused")) == 2 and all_,
        "both refusals",
    )
    assert [one["frame"]["check"] for one in found] == ["http", "http"]


def test_many_requests_at_once_on_a_connection(gate: Gate) -> None:
    client = Client(gate)
    calls = [client.render(client.call(f"q-{n}", mark="pipelined-many")) for n in range(30)]
    last = client.render(client.call("q-last", mark="pipelined-many"), "connection: close")
    assert client.send(b"".join([*calls, last])) == [200] * 31


def test_client_that_waits_for_permission_to_send(gate: Gate) -> None:
    client = Client(gate)
    body = client.call("e-1", mark="expected")
    more = ("expect: 100-continue", "connection: close")
    assert client.send(client.render(body, *more)) == [100, 200]
    assert client.send(client.render(body, *more, "host: example.com")) == [400]


def test_session_named_in_a_trailer(gate: Gate) -> None:
    client = Client(gate)
    body = client.call("t-1", mark="trailer")
    chunks = b"%x\r\n%b\r\n0\r\nmcp-session-id: other\r\n\r\n" % (len(body), body)
    sent = client.render(chunks, CHUNKED, "connection: close", without="content-length")
    assert client.send(sent) == [200]


def test_client_that_closes_its_side_after_a_call(gate: Gate) -> None:
    client = Client(gate)
    with client.connect() as link:
        link.sendall(client.render(client.call("f-1", "asked", mark="half-closed")))
        wait_until_asked(gate, "half-closed")
        link.shutdown(socket.SHUT_WR)
        read_all(link)
    gate.wait(lambda: pending(gate, "half-closed") is None, "the withdrawal")
    assert gate.received("half-closed") == []


def test_batch_that_repeats_an_id(gate: Gate) -> None:
    client = Client(gate)
    start = len(gate.records())
    batch = [client.call("d", mark="repeated-1"), client.call("d", mark="repeated-2")]
    assert client.send(client.render(b"[%b]" % b",".join(batch), "connection: close")) == [200]
    (refused,) = events_since(gate, start, "frame_refused")
    assert refused["frame"]["check"] == "id_in_use"
    assert len(gate.received("repeated-1")) == 1
    assert gate.received("repeated-2") == []


def test_batch_that_initializes(gate: Gate) -> None:
    client = Client(gate)
    start = len(gate.records())
    body = client.agent.message("i-1", "initialize", {"protocolVersion": "2025-03-26"})
    posted = client.agent.post([body])
    ((answer,),) = posted.messages
    assert (answer["id"], answer["error"]["data"]["check"]) == ("i-1", "batched_initialize")
    (refused,) = events_since(gate, start, "frame_refused")
    assert refused["frame"]["check"] == "batched_initialize"
    assert "mcp-session-id" not in posted.headers


def asked_call(client: Client, mark: str) -> tuple[int, dict[str, Any]]:
    """Make a call for which the server asks the client; return the id and the client's answer."""
    arguments = {"mark": mark, "do": "ask", "method": "roots/list", "params": {}}
    ident = client.agent.start_call("echo", arguments)
    question = client.agent.inbox.message("roots/list")
    return ident, {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}


def test_batch_that_answers_a_server(gate: Gate) -> None:
    client = Client(gate)
    ident, answer = asked_call(client, "batched-answer")
    assert client.agent.post([answer]).status == 202
    assert "result" in client.agent.inbox.answer(ident)


def test_answer_to_the_question_of_another_session(gate: Gate) -> None:
    client, other = Client(gate), Client(gate)
    ident, answer = asked_call(client, "stolen-answer")
    start = len(gate.records())
    stolen = {**answer, "result": {"roots": [{"uri": "file:///stolen"}]}}
    assert other.agent.post(stolen).status == 400
    assert other.agent.post([stolen]).status == 400
    refused = events_since(gate, start, "frame_refused")
    assert [one["frame"]["check"] for one in refused] == ["unknown_response"] * 2
    assert client.agent.post(answer).status == 202
    assert "result" in client.agent.inbox.answer(ident)
    assert gate.received("file:///stolen") == []


@pytest.mark.not_for("the server decides what becomes of a call it has", "proxy-http-http")
def test_session_that_ends_during_a_call(gate: Gate) -> None:
    client = Client(gate)
    ident = client.agent.start_call("echo", {"mark": "ended-session", "do": "hang"})
    gate.wait(lambda: gate.received("ended-session"), "the call at the server")
    end(client)
    answer = client.agent.inbox.answer(ident)
    assert answer["error"]["data"]["kind"] == "upstream_connection_failed"


def test_session_that_ends_during_an_approval(gate: Gate) -> None:
    client = Client(gate)
    ident = client.agent.start_call("asked", {"mark": "ended-approval"})
    wait_until_asked(gate, "ended-approval")
    end(client)
    answer = client.agent.inbox.answer(ident)
    assert answer["error"]["data"]["kind"] == "approval_withdrawn"
    assert pending(gate, "ended-approval") is None
    assert gate.received("ended-approval") == []


def end(client: Client) -> None:
    """End the session of a client."""
    status = client.send(client.render(b"", "connection: close", method="DELETE"))
    assert status in ([200], [204])
    client.agent.session = ""


def test_more_streams_than_requests_are_accepted(start: Start) -> None:
    listen = {"transport": "http", "max_concurrent": 2}
    gate = start(Setup({"default": "forward", "listen": listen}))
    clients = [Client(gate) for _ in range(2)]
    gate.wait(lambda: refused_stream(clients[0]), "the refusal of a third stream")
    assert text_of(clients[1].agent.call("echo", {"mark": "beside-streams"})) == "done"
    gate.wait(lambda: events_since(gate, 0, "frame_refused"), "the refusal on record")


def refused_stream(client: Client) -> bool:
    """Tell whether one more GET stream is refused."""
    with client.connect() as link:
        link.sendall(client.render(b"", method="GET", without="content-length"))
        found = link.recv(65_536)
    return statuses(found) == [503]


def test_every_session_in_use(start: Start) -> None:
    listen = {"transport": "http", "max_sessions": 1}
    gate = start(Setup({"default": "forward", "listen": listen}))
    first = Client(gate)
    ident = first.agent.start_call("echo", {"mark": "only-session", "do": "hang"})
    gate.wait(lambda: gate.received("only-session"), "the call at the server")
    second = HttpAgent(gate.port, "", gate.describe)
    params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {}}
    posted = second.post(second.message(1, "initialize", params))
    assert (posted.status, posted.headers["retry-after"]) == (503, "1")
    assert posted.messages[0]["error"]["data"]["kind"] == "service_unavailable"
    (refused,) = events_since(gate, 0, "frame_refused")
    assert refused["frame"]["check"] == "too_many_sessions"
    first.agent.hang_up(ident)


def test_gate_that_is_stopped_under_load(start: Start) -> None:
    gate = start(Setup({"default": "forward", "listen": {"transport": "http", "drain": "1s"}}))
    client = Client(gate)
    idents = [client.agent.start_call("echo", {"mark": "load", "do": "hang"}) for _ in range(20)]
    gate.wait(lambda: len(gate.received("load")) == len(idents), "the calls at the server")
    assert gate.terminate() == 0
    for ident in idents:
        assert "error" in client.agent.inbox.answer(ident)
    begun = events_since(gate, 0, "tool_call_start")
    ended = events_since(gate, 0, "tool_call_end")
    assert len(begun) == len(ended) == len(idents)
    assert gate.records()[-1]["type"] == "run_end"
    assert gate.face.name in HTTP_SERVER or "Traceback" not in gate.stderr
