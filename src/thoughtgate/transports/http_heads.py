"""Heads of HTTP messages, and a cache of parsed heads.

A client sends nearly the same head with every call. A cached head need not be parsed again, and
the handler keeps what it derived from the head in ``memo``. Only unambiguous heads with a plain
length are cached, so a message with a cached head is that head followed by that many bytes.
"""

from typing import Any, Final, Generic, TypeAlias, TypeVar

Headers: TypeAlias = list[tuple[bytes, bytes]]
"""Headers in order, with names in lower case."""

MAX_HEAD: Final = 32_768
"""Maximum bytes of a request's head; enough for tokens and mirrored arguments."""

MAX_HEADERS: Final = 128
"""Maximum number of headers of a request."""

HEAD_END: Final = b"\r\n\r\n"

MAX_KNOWN: Final = 1024
"""Maximum number of cached heads; one client's calls need a few dozen."""

MAX_BYTES: Final = 4096
"""Maximum bytes of a cached head."""
MAX_LINES: Final = 34
"""Maximum lines of a cached head: a parsed line takes more memory than its bytes."""


class RequestHead:
    """The head of a request."""

    __slots__ = (
        "expects_continue",
        "headers",
        "keep_alive",
        "length",
        "memo",
        "method",
        "repeated",
        "speaks_chunks",
        "target",
        "wire_headers",
    )

    def __init__(self) -> None:
        self.method = b""
        self.target = b""
        self.headers: dict[bytes, bytes] = {}
        """The last header of each name, with names in lower case."""
        self.wire_headers: Headers = []
        """All headers in order, with names in lower case."""
        self.repeated: set[bytes] = set()
        """Names that occur more than once."""
        self.keep_alive = True
        self.expects_continue = False
        self.speaks_chunks = True
        """False for an HTTP/1.0 client: its stream ends with the connection."""
        self.length = 0
        """Bytes of the body, if the head is cached."""
        self.memo: Any = None
        """For the handler: facts derived from this head, valid for every request that has it."""


class ResponseHead:
    """The head of a response."""

    __slots__ = ("headers", "length", "memo", "status")

    def __init__(self, status: int, headers: Headers) -> None:
        self.status = status
        self.headers = headers
        self.length = 0
        """Bytes of the body, if the head is cached."""
        self.memo: Any = None
        """For the receiver: facts derived from this head, valid for every response that has it."""


HeadT = TypeVar("HeadT", RequestHead, ResponseHead)


class KnownHeads(Generic[HeadT]):
    """A cache of recent heads, by their bytes."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, HeadT] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, data: bytes) -> tuple[HeadT, int] | None:
        """Return the head at the start of ``data`` and the offset of the body.

        None unless the head is cached and ``data`` is exactly one complete message.
        """
        end = data.find(HEAD_END, 0, MAX_BYTES) + len(HEAD_END)
        head = self._known.get(data[:end])
        return (head, end) if head is not None and len(data) - end == head.length else None

    def learn(self, data: bytes, begins: bytes, head: HeadT, length: bytes) -> None:
        """Cache a head that was just parsed from the start of ``data``.

        Not cached if it does not start with ``begins``, is unusually long, or contains bare CR
        or LF characters, which parsers interpret differently.
        """
        end = data.find(HEAD_END, 0, MAX_BYTES) + len(HEAD_END)
        raw = data[:end]
        lines = raw.count(b"\r\n")
        if (
            end < len(HEAD_END)
            or lines > MAX_LINES
            or not raw.startswith(begins)
            or raw.count(b"\n") != lines
            or raw.count(b"\r") != lines
            or not length.isdigit()
        ):
            return
        # Cleared as a whole: tracking which head was used last would cost every request.
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        head.length = int(length)
        self._known[raw] = head


def wrong_head(head: RequestHead, max_body: int) -> int:
    """Return the status to refuse an ambiguous or too large request with, or 0."""
    if len(head.wire_headers) > MAX_HEADERS or _size(head) > MAX_HEAD:
        return 431
    headers = head.headers
    if b"host" in head.repeated or (head.speaks_chunks and b"host" not in headers):
        return 400
    # Request smuggling: proxies and servers differ on which of these decides the body's length.
    if b"transfer-encoding" in headers and (
        b"content-length" in headers
        or headers[b"transfer-encoding"].lower() != b"chunked"
        or b"transfer-encoding" in head.repeated
    ):
        return 400
    length = headers.get(b"content-length")
    return 413 if length is not None and int(length) > max_body else 0


def _size(head: RequestHead) -> int:
    """Return the bytes of a head, without its line ends.

    Counted from the parsed head: a head that arrives in one piece is complete before the bytes that
    have arrived can be counted.
    """
    headers = head.wire_headers
    return len(head.target) + sum(len(name) + len(value) for name, value in headers)


def render_request(head: bytes, body: bytes) -> bytes:
    """Return a complete request."""
    if body or head.startswith(b"POST"):
        return b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)
    return head + b"\r\n"
