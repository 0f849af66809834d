"""Servers whose answers never end, and servers that repeat what they were sent."""

import json
import zlib
from typing import Any, Final

import pytest
from tests.faces.conftest import Start
from tests.faces.face import STDIO_SERVER
from tests.faces.test_failures import SECRET, Failing, call_ends, start_at
from tests.support.http_upstream import Received, Reply

STREAM: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED: Final = b"transfer-encoding: chunked\r\n"
JSON: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
NOTE: Final = b'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}\n\n'


def chunk(data: bytes) -> bytes:
    """Return data as a chunk of a body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def bomb() -> bytes:
    """Return the first bytes of a gzip body of blanks, as a chunk."""
    packer = zlib.compressobj(wbits=31)
    return chunk(packer.compress(b" " * 100_000_000) + packer.flush(zlib.Z_SYNC_FLUSH))


ENDLESS: Final = {
    "comments": Reply(raw=STREAM + CHUNKED + b"\r\n", endless=chunk(b": x\n\n")),
    "messages": Reply(raw=STREAM + CHUNKED + b"\r\n", endless=chunk(NOTE)),
    "blanks": Reply(raw=JSON + CHUNKED + b"\r\n", endless=chunk(b" ")),
    "body until the end": Reply(raw=JSON + b"connection: close\r\n\r\n", endless=b"["),
    "interim responses": Reply(raw=b"", endless=b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "head": Reply(raw=b"HTTP/1.1 200 OK\r\n", endless=b"x: y\r\n"),
    "chunk extension": Reply(raw=JSON + CHUNKED + b"\r\n1;", endless=b"x"),
    "trailers": Reply(raw=JSON + CHUNKED + b"\r\n0\r\n", endless=b"x: y\r\n"),
    "compressed": Reply(
        raw=JSON + CHUNKED + b"content-encoding: gzip\r\n\r\n" + bomb(), endless=chunk(b"x")
    ),
}
"""Answers that have no end."""


@pytest.mark.not_for("only HTTP servers answer with HTTP", *STDIO_SERVER)
@pytest.mark.long
def test_an_answer_that_never_ends_is_given_up(start: Start) -> None:
    server = Failing()
    with server.http:
        gate = start_at(start, server.http.url, timeout="1s")
        agent = gate.agent()
        for name, reply in ENDLESS.items():
            server.reply = reply
            data = agent.call("echo", {"mark": name})["error"]["data"]
            causes = {"answer_timeout", "idle_timeout", "too_large", "not_http"}
            assert (name, data.get("cause") in causes) == (name, True), data
        server.reply = None
        assert "result" in agent.call("echo", {"mark": "fine"})
        gate.wait(lambda: len(call_ends(gate)) > len(ENDLESS), "the ends of all calls")


@pytest.mark.not_for("only HTTP servers answer with HTTP", *STDIO_SERVER)
def test_credentials_that_a_server_repeats_in_an_error_of_http_go_nowhere(start: Start) -> None:
    server = Failing()

    def repeat(received: Received) -> Reply:
        if b'"tools/call"' not in received.body:
            return server.script(received)
        said = received.headers["authorization"]
        headers = {
            "www-authenticate": f'Bearer realm="{said}", error_description="{said}"',
            "location": f"https://other.example/{said}",
            "set-cookie": f"token={said}",
            "retry-after": said,
        }
        status = statuses[received.message["params"]["arguments"]["mark"]]
        return Reply(status, said.encode(), "text/plain", headers)

    statuses = {"a": 401, "b": 403, "c": 302, "d": 500, "e": 429, "f": 200}
    server.http.script = repeat
    with server.http:
        gate = start_at(start, server.http.url)
        agent = gate.agent()
        answers: list[dict[str, Any]] = [agent.call("echo", {"mark": mark}) for mark in statuses]
        assert all("error" in one for one in answers)
        gate.wait(lambda: len(call_ends(gate)) == len(statuses), "the ends of all calls")
        assert SECRET not in json.dumps([answers, gate.records()]) + gate.stderr
