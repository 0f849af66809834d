"""Heads of HTTP messages, and those that came before: an equal head has an equal reading.

A client sends the same head with call after call, but for the length. Whoever has read
one by the rules need not read its bytes again, nor decide again what follows from them:
``memo`` is where the handler keeps that. Only heads with one reading and a plain length
are kept, so a message with a known head is the head and that many bytes.
"""

from typing import Any, Final, Generic, TypeAlias, TypeVar

Headers: TypeAlias = list[tuple[bytes, bytes]]
"""Names in lower case, in the order they came."""

MAX_HEADERS: Final = 128
"""Headers of a request."""

HEAD_END: Final = b"\r\n\r\n"

MAX_KNOWN: Final = 1024
"""Heads kept; the lengths of one client's calls make a few dozen."""

MAX_BYTES: Final = 4096
"""Bytes of a head that is kept."""
MAX_LINES: Final = 34
"""Lines of a head that is kept: each costs more than its bytes once it is read."""


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
        """The last header of each name, names in lower case."""
        self.wire_headers: Headers = []
        """All headers in their order, names in lower case."""
        self.repeated: set[bytes] = set()
        """Names that came more than once."""
        self.keep_alive = True
        self.expects_continue = False
        self.speaks_chunks = True
        """False for an HTTP/1.0 client: its stream ends with the connection."""
        self.length = 0
        """Bytes of the body, where the head is kept."""
        self.memo: Any = None
        """For the handler: what follows from this head, whenever it comes."""


class ResponseHead:
    """The head of a response."""

    __slots__ = ("headers", "length", "memo", "status")

    def __init__(self, status: int, headers: Headers) -> None:
        self.status = status
        self.headers = headers
        self.length = 0
        """Bytes of the body, where the head is kept."""
        self.memo: Any = None
        """For the receiver: what follows from this head, whenever it comes."""


HeadT = TypeVar("HeadT", RequestHead, ResponseHead)


class KnownHeads(Generic[HeadT]):
    """The heads that came lately, by their bytes."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, HeadT] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, data: bytes) -> tuple[HeadT, int] | None:
        """Return the head that ``data`` begins with and where its body begins.

        None unless the head is known and ``data`` is exactly one whole message.
        """
        end = data.find(HEAD_END, 0, MAX_BYTES) + len(HEAD_END)
        head = self._known.get(data[:end])
        return (head, end) if head is not None and len(data) - end == head.length else None

    def learn(self, data: bytes, begins: bytes, head: HeadT, length: bytes) -> None:
        """Keep a head that was just read from the beginning of ``data``.

        One that begins otherwise, is unusually long or has lines which some readers end
        elsewhere is not kept.
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
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        head.length = int(length)
        self._known[raw] = head


def wrong_head(head: RequestHead, max_body: int) -> int:
    """Return the status for a head that has more than one reading or asks too much, or 0."""
    if len(head.wire_headers) > MAX_HEADERS:
        return 431
    headers = head.headers
    if b"host" in head.repeated or (head.speaks_chunks and b"host" not in headers):
        return 400
    if b"transfer-encoding" in headers and (
        b"content-length" in headers
        or headers[b"transfer-encoding"].lower() != b"chunked"
        or b"transfer-encoding" in head.repeated
    ):
        return 400
    length = headers.get(b"content-length")
    return 413 if length is not None and int(length) > max_body else 0
