"""Looking for inputs whose cost grows faster than their size.

Generators make texts of nested and repeated shapes at sizes n, 2n, 4n and 8n, and each goes through
every reader and check that a peer's bytes reach. A pair of shape and reader whose CPU time grows
clearly faster than the size is reported: whoever may send ten megabytes could stall everybody.

``count_steps`` measures the same in function calls instead of seconds, which is exact and
repeatable, but does not see what happens inside one call of a C function.
"""

import argparse
import asyncio
import contextlib
import gc
import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, cast

from thoughtgate.config.parse_json import parse_json
from thoughtgate.config.parse_toml import parse_toml
from thoughtgate.config.parse_yaml import parse_yaml
from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.catalogue import Offer, check_offer
from thoughtgate.core.commands import ScreenList
from thoughtgate.core.events import AgentSent, ListScreened, ServerSent
from thoughtgate.core.judge import Judge
from thoughtgate.core.session import Session
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.errors import PeerError, ThoughtGateError
from thoughtgate.front.request_head import (
    expected_names,
    is_ambiguous,
    read_head,
    upstream_headers,
    wrong_post,
)
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.hub.lists import HubLists
from thoughtgate.policy.conditions import judge_conditions, parse_conditions
from thoughtgate.policy.globs import Glob
from thoughtgate.policy.inspection.inspect import (
    inspect_arguments,
    inspect_definition,
    inspect_result,
)
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.redaction import Redactor
from thoughtgate.policy.regexes import Pattern
from thoughtgate.policy.visibility import Exposure, Visibility
from thoughtgate.transports.http_client import ClientExchange, HttpPool
from thoughtgate.transports.http_client import _Connection as ClientConnection
from thoughtgate.transports.http_heads import MAX_HEAD, ResponseHead
from thoughtgate.transports.http_server import Exchange, HttpServer
from thoughtgate.transports.http_server import _Connection as ServerConnection
from thoughtgate.wire.batch import one_line, split_batch
from thoughtgate.wire.canonical import canonical_json
from thoughtgate.wire.content_length import FrameSplitter
from thoughtgate.wire.fast_frame import read_quickly
from thoughtgate.wire.frame import escape_separators, find_id, is_deeper_than, read_frame
from thoughtgate.wire.headers import decode_value, param_headers_of
from thoughtgate.wire.lines import LineSplitter
from thoughtgate.wire.message import Message
from thoughtgate.wire.readings import uri_readings
from thoughtgate.wire.sse import EventSplitter, parse_event

FACTORS: Final = (1, 2, 4, 8)

MAX_EXPONENT: Final = 1.4
"""Cost ~ size ** exponent; a linear one measures up to 1.2 on a busy machine, a square one 2."""

_NOTICED_S: Final = 0.02
"""CPU time below which a measurement says nothing."""

_CHUNK: Final = 1000
"""Bytes that a stream delivers at once."""

Shape = Callable[[int], bytes]
Reader = Callable[[bytes], Any]


def _repeat(piece: bytes, before: bytes = b"", after: bytes = b"") -> Shape:
    return lambda size: before + piece * (size // len(piece)) + after


def _pairs(opening: bytes, closing: bytes) -> Shape:
    def shape(size: int) -> bytes:
        count = size // (len(opening) + len(closing))
        return opening * count + closing * count

    return shape


_CALL: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":'

_POST: Final = b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n"
_CHUNKED: Final = _POST + b"transfer-encoding: chunked\r\n\r\n"


def _tools(entry: Callable[[int], dict[str, Any]]) -> Shape:
    """Return a list of tools, as a server answers a request for it."""

    def shape(size: int) -> bytes:
        count = size // len(json.dumps(entry(100)))
        answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [entry(n) for n in range(count)]}}
        return json.dumps(answer, separators=(",", ":")).encode()

    return shape


SHAPES: Final[dict[str, Shape]] = {
    "open brackets": _repeat(b"["),
    "nested lists": _pairs(b"[", b"]"),
    "nested objects": _pairs(b'{"a":', b"}"),
    "flat lists": _repeat(b"[],", b"[", b"[]]"),
    "hills": _repeat(b"[" * 60 + b"]" * 60 + b",", b"[", b"[]]"),
    "quotes": _repeat(b'"'),
    "backslashes": _repeat(b"\\", b'"'),
    "escaped quotes": _repeat(b'\\"', b'["', b'"]'),
    "surrogates": _repeat(b"\\ud83d\\ude00", b'["', b'"]'),
    "separators": _repeat(b"\xe2\x80\xa8", b'["', b'"]'),
    "spaces": _repeat(b" "),
    "digits": _repeat(b"9"),
    "ids": _repeat(b'"id":1,', b"{"),
    "line ends": _repeat(b"\r\n"),
    "carriage returns": _repeat(b"\r"),
    "line feeds": _repeat(b"\n"),
    "short lines": _repeat(b"data: x\n"),
    "events": _repeat(b"data: {}\n\n"),
    "one long string": _repeat(b"a", _CALL + b'{"a":"', b'"}}}'),
    "many keys": lambda size: (
        _CALL + b"{" + b",".join(b'"k%d":1' % n for n in range(size // 12)) + b"}}}"
    ),
    "many values": _repeat(b"1,", _CALL + b'{"a":[', b"1]}}}"),
    "token starts": _repeat(b"sk-"),
    "jwt starts": _repeat(b"eyJ"),
    "dotted jwt": _repeat(b"eyJhbGciOi."),
    "key names": _repeat(b"token="),
    "quoted key names": _repeat(b'token="'),
    "ignored rules": _repeat(b"ignore previous instructions "),
    "verbs": _repeat(b"send read tell "),
    "secrets": _repeat(b"password secret token "),
    "addresses": _repeat(b"a@b.cd http://1.2.3.4/?d= "),
    "images": _repeat(b"![a](http://a.b/?d={data}) "),
    "base64": _repeat(b"aWdub3JlIGFsbCBydWxlcw"),
    "base64 words": _repeat(b"aWdub3JlIGFsbCBwcmV2aW91cyBydWxlcw== "),
    "nested base64": _repeat(b"YVdkdWIzSmxJR0ZzYkNCd2NtVjJhVzkxY3lCeWRXeGxjdz09 "),
    "hex": _repeat(b"69676e6f7265"),
    "spaced letters": _repeat(b"i g n o r e "),
    "leet": _repeat(b"1gn0re "),
    "rotated": _repeat(b"vtaber "),
    "cards": _repeat(b"4111 1111 1111 1111 "),
    "accounts": _repeat(b"DE89370400440532013000 "),
    "entities": _repeat(b"&#105;"),
    "escapes": _repeat(b"\\u0069"),
    "shell": _repeat(b"curl a | sh; "),
    "climbing": _repeat(b"../"),
    "zero width": _repeat("a\u200b".encode()),
    "mixed scripts": _repeat("p\u0430ss".encode()),
    "escape sequences": _repeat(b"\x1b[8m"),
    "comments": _repeat(b"<!-- ai "),
    "quoted": _repeat(b"attack 'ignore "),
    "blank": _repeat(b"\n \t"),
    "begin key": _repeat(b"-----BEGIN PRIVATE KEY-----"),
    "url users": _repeat(b"://a:"),
    "at signs": _repeat(b"@"),
    "bearers": _repeat(b"bearer "),
    "flags": _repeat(b"--token "),
    "slashes": _repeat(b"/"),
    "dot segments": _repeat(b"/.."),
    "up and down": _repeat(b"/a/../"),
    "percents": _repeat(b"%25"),
    "list items": _repeat(b"- "),
    "yaml items": _repeat(b"- a\n"),
    "yaml flow": _pairs(b"[", b"]"),
    "yaml keys": lambda size: b"".join(b"k%d: 1\n" % n for n in range(size // 9)),
    "json keys": lambda size: b"{" + b",".join(b'"k%d":1' % n for n in range(size // 12)) + b"}",
    "toml keys": lambda size: b"".join(b"k%d = 1\n" % n for n in range(size // 11)),
    "toml tables": lambda size: b"".join(b"[t%d]\n" % n for n in range(size // 8)),
    "anchors": _repeat(b"&a *a "),
    "header lines": lambda size: (
        _POST + b"".join(b"x-%d: a\r\n" % n for n in range(size // 11)) + b"\r\n"
    ),
    "same header": _repeat(b"accept: a\r\n", _POST, b"\r\n"),
    "long header": _repeat(b"a", _POST + b"x-long: ", b"\r\n\r\n"),
    "long header name": _repeat(b"a", _POST, b": a\r\n\r\n"),
    "accepted types": _repeat(b"a/b, ", _POST + b"accept: ", b"\r\n\r\n"),
    "long target": _repeat(b"/a", b"POST /", b" HTTP/1.1\r\nhost: a\r\n\r\n"),
    "requests": _repeat(_POST + b"content-length: 0\r\n\r\n"),
    "chunks": _repeat(b"1\r\na\r\n", _CHUNKED),
    "chunk extension": _repeat(b";a=b", _CHUNKED + b"1", b"\r\na\r\n"),
    "chunk extensions": _repeat(b"1;a=b\r\na\r\n", _CHUNKED),
    "trailers": _repeat(b"x: a\r\n", _CHUNKED + b"0\r\n", b"\r\n"),
    "response headers": _repeat(b"x: a\r\n", b"HTTP/1.1 200 OK\r\n", b"\r\n"),
    "responses": _repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "tools": _tools(lambda n: {"name": f"tool_{n}"}),
    "same tool": _tools(lambda n: {"name": "tool", "annotations": {f"hint_{n}": True}}),
    "described tools": _tools(
        lambda n: {"name": f"t{n}", "inputSchema": {"properties": {f"p{n}": {"type": "string"}}}}
    ),
    "tool with annotations": _tools(
        lambda n: {"name": "a", "annotations": {f"h{n}{m}": 1 for m in range(9)}}
    ),
    "long tool names": _tools(lambda n: {"name": f"{n:05}" * 50}),
}
"""Texts of about a number of bytes."""


def _in_chunks(splitter: Callable[[], LineSplitter | FrameSplitter | EventSplitter]) -> Reader:
    def read(data: bytes) -> None:
        feed = splitter().feed
        for start in range(0, len(data), _CHUNK):
            feed(data[start : start + _CHUNK])

    return read


def _text(read: Callable[[str], Any]) -> Reader:
    return lambda data: read(data.decode("utf-8", "replace"))


def _body_of(data: bytes) -> Any:
    message = read_quickly(data)
    return message.body if isinstance(message, Message) else {"a": data.decode("utf-8", "replace")}


def _conditions(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for operator, operand in (
        ("glob", "*a*b"),
        ("under", "/tmp"),
        ("contains", "x"),
        ("in", ["x"]),
    ):
        judge_conditions(parse_conditions({"a": {operator: operand}}), {"a": text})


def _session(event: type[AgentSent] | type[ServerSent]) -> Reader:
    def read(data: bytes) -> None:
        session = Session(SessionSettings("s", "1"))
        for line in LineSplitter().feed(data + b"\n"):
            session.receive(event(line, 1.0))

    return read


def _mask_value(data: bytes) -> None:
    Redactor().mask_value(_body_of(data))


class _Deaf(asyncio.Transport):
    """A transport whose peer sends and reads nothing."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        del data

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        """Nothing is open."""

    close = pause_reading = resume_reading = abort


class _Answers:
    """A handler that reads the head of every request, and answers at once."""

    def opened(self, exchange: Exchange) -> None:
        read_head(exchange, _EXPECTED)
        is_ambiguous(exchange)
        wrong_post(exchange)
        upstream_headers(exchange)

    def completed(self, exchange: Exchange) -> None:
        exchange.respond(200)

    def refused(self, exchange: Exchange, status: int) -> None:
        exchange.respond(status)


_EXPECTED: Final = expected_names("127.0.0.1", 80, (), ())


def _in_pieces(receive: Callable[[bytes], None], data: bytes, size: int) -> None:
    for start in range(0, len(data), size):
        receive(data[start : start + size])


def _requests(piece: int) -> Reader:
    """Read what an agent sends over HTTP, in pieces of some size."""

    def read(data: bytes) -> None:
        connection = ServerConnection(HttpServer(_Answers()))
        connection.connection_made(_Deaf())
        _in_pieces(connection.data_received, data, piece)

    return read


class _Unread:
    """A receiver that does nothing with a response."""

    def started(self, head: ResponseHead) -> None:
        """Ignore it."""

    def received(self, chunk: bytes) -> None:
        """Ignore it."""

    def ended(self) -> None:
        """Ignore it."""

    def failed(self, error: PeerError) -> None:
        """Ignore it."""


def _responses(piece: int) -> Reader:
    """Read what a server answers over HTTP, in pieces of some size."""

    def read(data: bytes) -> None:
        connection = ClientConnection(HttpPool("http://127.0.0.1:1/mcp"))
        connection.connection_made(_Deaf())
        connection.begin(ClientExchange(_Unread(), b""))
        _in_pieces(connection.data_received, data, piece)

    return read


_LIST: Final = "tools/list"
_VISIBILITY: Final = Visibility({"s": Exposure.of("block", ["tool_1*", "*_7", "t9"])})


def _listed(data: bytes) -> list[Any]:
    result = _body_of(data).get("result")
    tools = result.get("tools") if isinstance(result, dict) else None
    return tools if isinstance(tools, list) else []


def _screened_list(data: bytes) -> None:
    """Learn and filter a list of tools, twice, as a gate does that forwards it."""
    entries = tuple(entry for entry in _listed(data) if isinstance(entry, dict))
    judge, headers = Judge(Policy(default="forward", visibility=_VISIBILITY), "r"), ToolHeaders()
    for _ in range(2):
        judge.screen("s", "1", _LIST, entries, 1.0)
        headers.learn(_LIST, entries)


def _answered_list(data: bytes) -> None:
    """Filter the answer to an agent's request for the tools."""
    session = Session(SessionSettings("s", "1"))
    session.receive(AgentSent(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', 1.0))
    for command in session.receive(ServerSent(data, 1.0)):
        if isinstance(command, ScreenList):
            names = [str(entry.get("name")) for entry in command.entries]
            session.receive(ListScreened(command.key, frozenset(names[::3]), 1.0))


class _OpenGate:
    """Hides nothing."""

    def screen(self, *_: Any) -> frozenset[str]:
        return frozenset()


class _Relay:
    """A server of ``serve`` that has listed its tools."""

    def __init__(self, offer: Offer) -> None:
        self.id = "s"
        self.is_listed = True
        self.settings = ServerSettings("s", command="c")
        self.warnings: dict[str, tuple[str, ...]] = {}
        self.instructions = ""
        self._offer = offer

    def known(self, _: str) -> Offer:
        return self._offer


class _Client:
    id, is_modern = "c", False


def _merged_list(data: bytes) -> None:
    """Check a server's list, and hand all pages of it to a client of ``serve``."""
    relay = _Relay(check_offer(_LIST, _listed(data)))
    lists = HubLists(cast("Any", _OpenGate()), lambda *_: None)
    cursor: str | None = None
    while True:
        shown = lists.show(cast("Any", _Client()), _LIST, [cast("Any", relay)], ".")
        page = lists.page(shown, cursor)
        if page is None or not page.cursor:
            break
        cursor = page.cursor


_REDACTOR: Final = Redactor(patterns=["x{1,20}y"])

READERS: Final[dict[str, Reader]] = {
    "frame": read_frame,
    "fast frame": read_quickly,
    "depth": lambda data: is_deeper_than(128, data),
    "id": find_id,
    "separators": escape_separators,
    "lines": _in_chunks(LineSplitter),
    "content length": _in_chunks(FrameSplitter),
    "events": _in_chunks(EventSplitter),
    "event": parse_event,
    "batch": split_batch,
    "one line": one_line,
    "session, agent": _session(AgentSent),
    "session, server": _session(ServerSent),
    "canonical": lambda data: canonical_json(_body_of(data)),
    "header value": lambda data: decode_value(data[:MAX_HEAD]),
    "schema": lambda data: param_headers_of(_body_of(data)),
    "mask text": _text(_REDACTOR.mask_text),
    "mask value": _mask_value,
    "requests": _requests(_CHUNK),
    "requests, byte by byte": _requests(1),
    "responses": _responses(_CHUNK),
    "responses, byte by byte": _responses(1),
    "screened list": _screened_list,
    "answered list": _answered_list,
    "merged list": _merged_list,
    "glob": _text(Glob("*a*[bc]*d?").matches),
    "pattern": _text(Pattern("a{1,9}b").search),
    "inspected definition": _text(lambda text: inspect_definition({"description": text})),
    "inspected arguments": _text(lambda text: inspect_arguments({"a": text})),
    "inspected result": lambda data: inspect_result(_body_of(data)),
    "uri": _text(uri_readings),
    "conditions": _conditions,
    "yaml": _text(lambda text: parse_yaml(text, "x.yaml")),
    "json": _text(lambda text: parse_json(text, "x.json")),
    "toml": _text(lambda text: parse_toml(text, "x.toml")),
}
"""Everything that reads or checks the bytes of a peer or of a file in a repository."""

_OF_HTTP: Final = (
    *("header lines", "same header", "long header", "long header name", "accepted types"),
    *("long target", "requests", "chunks", "chunk extension", "chunk extensions", "trailers"),
    *("response headers", "responses", "line ends", "spaces"),
)
_OF_LISTS: Final = tuple(name for name in SHAPES if "tool" in name)


def shapes_for(reader: str) -> list[str]:
    """Return the shapes that a reader reads as more than an error in the first bytes."""
    if reader.startswith(("requests", "responses")):
        return list(_OF_HTTP)
    if reader.endswith(" list"):
        return list(_OF_LISTS)
    return [name for name in SHAPES if name not in _OF_HTTP[:-2]]


SLOW: Final = frozenset(
    {"yaml", "json", "toml", "requests, byte by byte", "responses, byte by byte"}
)
"""Readers that are far slower per byte: of config files, which are far smaller, and of single bytes,
of which a head may have few."""


class Growth(NamedTuple):
    """How the cost of reading a shape grows with its size."""

    reader: str
    shape: str
    sizes: tuple[int, ...]
    costs: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """The steepest growth between neighbouring sizes that take long enough to be measured."""
        steps = zip(self.costs, self.costs[1:], strict=False)
        return max(
            (math.log2(after / before) for before, after in steps if before > 0 < after), default=0
        )


def measure(reader: str, shape: str, size: int, cost: Callable[[Reader, bytes], float]) -> Growth:
    """Measure the cost of reading a shape at growing sizes."""
    sizes = tuple(size * factor for factor in FACTORS)
    costs = tuple(cost(READERS[reader], SHAPES[shape](size)) for size in sizes)
    return Growth(reader, shape, sizes, costs)


def _run(read: Reader, data: bytes) -> None:
    # A refusal is as good as a result.
    with contextlib.suppress(ValueError, RecursionError, ThoughtGateError):
        read(data)


def cpu_seconds(read: Reader, data: bytes) -> float:
    """Return the CPU time of one reading; 0 if it is too short to compare."""
    best = math.inf
    gc.disable()
    try:
        for _ in range(3):
            began = time.process_time()
            _run(read, data)
            best = min(best, time.process_time() - began)
            if best > 1:
                break
    finally:
        gc.enable()
    return best if best >= _NOTICED_S else 0.0


def count_steps(read: Reader, data: bytes) -> float:
    """Return the number of function calls of one reading."""
    steps = 0

    def step(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal steps
        steps += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(step)
    try:
        _run(read, data)
    finally:
        sys.setprofile(before)
    return float(steps)


def find_offenders(readers: Iterable[str], size: int, seconds: float) -> Iterator[Growth]:
    """Yield the pairs of reader and shape that grow too fast, within about a time."""
    deadline = time.monotonic() + seconds
    for reader in readers:
        for shape in shapes_for(reader):
            if time.monotonic() > deadline:
                sys.stderr.write(f"stopped after {seconds:g} s, at {reader}\n")
                return
            growth = measure(reader, shape, size // 20 if reader in SLOW else size, cpu_seconds)
            if growth.exponent > MAX_EXPONENT:
                # Again, because a busy machine also makes one measurement slow.
                growth = measure(reader, shape, growth.sizes[0], cpu_seconds)
            if growth.exponent > MAX_EXPONENT:
                yield growth


def main() -> int:
    """Report the offenders; the exit code tells whether there are any."""
    parser = argparse.ArgumentParser(description="Find inputs that cost more than their size.")
    parser.add_argument("--size", type=int, default=200_000, help="smallest text, in bytes")
    parser.add_argument("--reader", choices=READERS, action="append", help="default: all")
    parser.add_argument("--seconds", type=float, default=600, help="stop after this time")
    chosen = parser.parse_args()
    found, readers = 0, chosen.reader or list(READERS)
    for growth in find_offenders(readers, chosen.size, chosen.seconds):
        found += 1
        costs = ", ".join(f"{cost * 1000:.0f} ms" for cost in growth.costs)
        sys.stdout.write(
            f"{growth.reader}: {growth.shape}: size ** {growth.exponent:.1f} "
            f"({costs} for {growth.sizes[0]} to {growth.sizes[-1]} bytes)\n"
        )
    pairs = sum(len(shapes_for(reader)) for reader in readers)
    sys.stdout.write(f"{found} of {pairs} pairs of reader and shape grow faster than their size\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
