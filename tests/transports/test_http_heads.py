"""Known heads: what the handler sees must not depend on whether a head came before."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.errors import PeerError
from thoughtgate.transports import http_client
from thoughtgate.transports.http_client import ClientExchange, HttpPool
from thoughtgate.transports.http_heads import (
    MAX_BYTES,
    MAX_HEAD,
    MAX_KNOWN,
    MAX_LINES,
    KnownHeads,
    RequestHead,
    ResponseHead,
    wrong_head,
)
from thoughtgate.transports.http_server import Exchange, HttpServer, _Connection

PLAIN = b"POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n%b"


class _Transport:
    """The client's end of a connection, in memory."""

    def __init__(self) -> None:
        self.wrote = b""
        self.is_closed = False

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None

    def write(self, data: bytes) -> None:
        self.wrote += data

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        return 0


class _Echo:
    """Answers with what it was shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def opened(self, exchange: Exchange) -> None:
        if exchange.target == b"/refused":
            exchange.respond(403)

    def completed(self, exchange: Exchange) -> None:
        self.seen.append(
            (
                exchange.method,
                exchange.target,
                dict(exchange.headers),
                list(exchange.wire_headers),
                set(exchange.repeated),
                exchange.speaks_chunks,
                exchange.body,
            )
        )
        exchange.respond(200, b"", exchange.body)

    def refused(self, exchange: Exchange, status: int) -> None:
        self.seen.append((status,))
        exchange.respond(status)


def _serve(messages: list[bytes], *, piece: int) -> tuple[list[tuple[Any, ...]], bytes, int]:
    """Send messages over one connection in pieces; return what came of them, and known heads."""
    handler = _Echo()
    server = HttpServer(handler)
    transport = _Transport()
    connection = _Connection(server)
    connection.connection_made(transport)  # type: ignore[arg-type]  # all of it that is used
    for message in messages:
        for start in range(0, len(message), piece):
            if not transport.is_closed:
                connection.data_received(message[start : start + piece])
    return handler.seen, transport.wrote, len(server.heads)


_BODIES = st.binary(max_size=12)
_LINES = st.sampled_from(
    [
        b"host: h\r\n",
        b"Host: h\n",
        b"accept: a\r\n",
        b"accept: b\r\n",
        b"x:  spaced \t\r\n",
        b"x: folded\r\n more\r\n",
        b"expect: 100-continue\r\n",
        b"connection: close\r\n",
        b"connection: upgrade\r\nupgrade: other\r\n",
        b"transfer-encoding: chunked\r\n",
        b"content-length: 3\r\n",
        b"\r",
        b"bad line\r\n",
    ]
)


@st.composite
def _messages(draw: st.DrawFn) -> bytes:
    start = draw(
        st.sampled_from(
            [
                b"POST /mcp HTTP/1.1\r\n",
                b"POST /refused HTTP/1.1\r\n",
                b"POST /mcp HTTP/1.0\r\n",
                b"GET /mcp HTTP/1.1\r\n",
                b"\r\nPOST /mcp HTTP/1.1\r\n",
                b"POST /mcp HTTP/1.1\n",
            ]
        )
    )
    lines = draw(st.lists(_LINES, max_size=4))
    body = draw(_BODIES)
    length = b"content-length: %d\r\n" % len(body)
    return start + b"host: h\r\n" + b"".join(lines) + length + b"\r\n" + body


@settings(max_examples=400, deadline=None)
@given(st.lists(_messages(), min_size=1, max_size=3))
def test_whole_requests_are_read_as_byte_by_byte_whether_or_not_their_heads_are_known(
    messages: list[bytes],
) -> None:
    again = messages * 3
    seen, wrote, _ = _serve(again, piece=1_000_000)
    slowly, written, _ = _serve(again, piece=1)
    assert seen == slowly
    assert wrote == written


def test_a_plain_call_is_read_by_the_parser_once() -> None:
    calls = [PLAIN % (5, b"one %d" % number) for number in range(5)]
    seen, _, known = _serve(calls, piece=1_000_000)
    assert [one[-1] for one in seen] == [b"one %d" % number for number in range(5)]
    assert known == 1


def test_two_requests_in_one_piece_are_two() -> None:
    call = PLAIN % (3, b"one")
    seen, _, _ = _serve([call, call + PLAIN % (3, b"two"), call], piece=1_000_000)
    assert [one[-1] for one in seen] == [b"one", b"one", b"two", b"one"]


def test_known_heads_are_bounded_in_number_and_size() -> None:
    heads: KnownHeads[RequestHead] = KnownHeads()
    for number in range(MAX_KNOWN + 1):
        heads.learn(b"POST /%d HTTP/1.1\r\n\r\n" % number, b"POST ", RequestHead(), b"0")
    assert len(heads) == 1
    long = b"POST / HTTP/1.1\r\nx: %b\r\n\r\n" % (b"x" * MAX_BYTES)
    heads.learn(long, b"POST ", RequestHead(), b"0")
    assert heads.find(long) is None


def test_a_head_without_host_has_no_place() -> None:
    assert wrong_head(RequestHead(), 10) == 400


def test_a_head_is_measured_with_its_target_and_all_its_headers() -> None:
    head = RequestHead()
    head.target = b"/" * 100
    head.headers = {b"host": b"x"}
    head.wire_headers = [(b"host", b"x"), (b"a", b"b" * (MAX_HEAD - 106))]
    assert wrong_head(head, 10) == 0
    head.target += b"/"
    assert wrong_head(head, 10) == 431


def test_a_head_of_many_lines_is_not_kept() -> None:
    heads: KnownHeads[RequestHead] = KnownHeads()
    heads.learn(
        b"POST / HTTP/1.1\r\n" + b"x:\r\n" * MAX_LINES + b"\r\n", b"POST ", RequestHead(), b"0"
    )
    assert len(heads) == 0


class _Heard:
    """Who waits for a response, and what it was told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.body = b""

    def started(self, head: ResponseHead) -> None:
        self.told.append((head.status, list(head.headers)))

    def received(self, chunk: bytes) -> None:
        self.body += chunk

    def ended(self) -> None:
        self.told.append("ended")

    def failed(self, error: PeerError) -> None:
        self.told.append(error.kind)


def _ask(responses: list[list[bytes]], *, anew: bool = False) -> list[Any]:
    """Ask once for each response, of one pool or each of a new one; return what came of it."""
    pool = HttpPool("http://upstream/")
    came: list[Any] = []
    for parts in responses:
        pool = HttpPool("http://upstream/") if anew else pool
        connection, transport = http_client._Connection(pool), _Transport()
        connection.connection_made(transport)  # type: ignore[arg-type]  # all of it that is used
        heard = _Heard()
        connection.begin(ClientExchange(heard, b"asked"))
        for part in parts:
            if not transport.is_closed:
                connection.data_received(part)
        came.append((heard.told, heard.body, transport.is_closed))
    return came


_INTERIM = st.sampled_from([b"HTTP/1.1 103 Early Hints\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"])
_ANSWER_LINES = st.sampled_from(
    [
        b"content-type: application/json\r\n",
        b"connection: close\r\n",
        b"x: y\n",
        b"transfer-encoding: chunked\r\n",
        b"content-length: 2\r\n",
    ]
)


@st.composite
def _responses(draw: st.DrawFn) -> list[bytes]:
    """A response in the packets it comes in."""
    status = draw(st.sampled_from([b"200 OK", b"202 Accepted", b"204 No Content", b"404 No"]))
    body = draw(_BODIES)
    lines = b"".join(draw(st.lists(_ANSWER_LINES, max_size=2)))
    length = draw(st.sampled_from([b"content-length: %d\r\n" % len(body), b""]))
    final = b"HTTP/1.1 " + status + b"\r\n" + lines + length + b"\r\n" + body
    interim = draw(st.lists(_INTERIM, max_size=2))
    return [*interim, final] if draw(st.booleans()) else [b"".join(interim) + final]


@settings(max_examples=500, deadline=None)
@given(st.lists(_responses(), min_size=1, max_size=3))
def test_responses_are_read_the_same_whether_or_not_their_heads_are_known(
    responses: list[list[bytes]],
) -> None:
    again = responses * 3
    assert _ask(again) == _ask(again, anew=True)


def test_an_interim_response_is_never_taken_for_the_response() -> None:
    hint = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    accepted = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none"
    came = _ask([[hint, accepted], [hint, answer]])
    assert [body for _, body, _ in came] == [b"", b"one"]
