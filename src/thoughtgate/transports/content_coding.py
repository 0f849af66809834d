"""Compressed answers: gzip and deflate, decompressed piece by piece in bounded memory.

Answers without compression do not pass through this module. Servers are not trusted: a few bytes
must not become a large answer, so the ratio of the sizes is limited here, and the receiver limits
the size itself.
"""

import zlib
from typing import Final, Protocol

from thoughtgate.errors import PeerError, upstream_error
from thoughtgate.transports.http_heads import ResponseHead

OFFERED: Final = (b"accept-encoding", b"gzip, deflate")
"""The header that tells a server which encodings the gate reads."""

PIECE: Final = 65_536
"""Maximum bytes of decompressed data in memory before the receiver gets them."""

MAX_RATIO: Final = 256
"""Maximum size of an answer as a multiple of its compressed size. Repetitive logs reach a hundred;
deflate itself can reach a thousand."""

RATIO_FROM: Final = 1_048_576
"""Answers below this size may have any ratio: small ones are often mostly repetition."""

INPUT: Final = 16_384
"""Maximum compressed bytes in one step: zlib copies everything that follows a member."""

FREE_MEMBERS: Final = 64
MIN_MEMBER: Final = 256
"""A gzip body may have ``FREE_MEMBERS`` members, and one more per ``MIN_MEMBER`` unpacked bytes.

Otherwise an endless row of empty members would keep the gate busy, and no limit on sizes would stop
it."""

MAX_NAME: Final = 32
"""Maximum length of an unknown encoding's name in a message."""

_GZIP: Final = frozenset({b"gzip", b"x-gzip"})
_DEFLATE: Final = b"deflate"
_GZIP_BITS: Final = zlib.MAX_WBITS | 16


class Receiver(Protocol):
    """What gets the decompressed body; see ``http_client.Receiver``."""

    def started(self, head: ResponseHead) -> None:
        """The head has arrived."""

    def received(self, chunk: bytes) -> None:
        """A part of the body."""

    def ended(self) -> None:
        """The body is complete."""

    def failed(self, error: PeerError) -> None:
        """There will be no complete body."""


class Exchange(Protocol):
    """The exchange whose answer is decompressed."""

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for the rest."""

    def abort(self) -> None:
        """Close the connection."""


def is_known(encoding: bytes) -> bool:
    """Tell whether the gate can decompress an encoding."""
    return encoding in _GZIP or encoding == _DEFLATE


def unknown_encoding(encoding: bytes, status: int) -> PeerError:
    """Return the error for an encoding that was not offered; the server chose its name."""
    name = "".join(
        char if char.isalnum() or char in "-_., " else "?"
        for char in encoding[:MAX_NAME].decode("latin-1")
        if char.isascii()
    )
    reason = f"the server's answer has the content encoding {name!r}, which the gate cannot read"
    return upstream_error("wrong_encoding", reason, status=status)


class Decompressor:
    """Decompresses an answer between the exchange and its receiver."""

    def __init__(self, exchange: Exchange, receiver: Receiver, encoding: bytes) -> None:
        self._exchange = exchange
        self._receiver = receiver
        self._is_gzip = encoding in _GZIP
        self._stream: zlib._Decompress | None = None
        self._held = b""
        """The first byte of a deflate body, which does not yet tell its format."""
        self._taken = 0
        self._given = 0
        self._members = 0
        """The members after the first."""

    def started(self, head: ResponseHead) -> None:
        """Do nothing: the receiver already has the head, from which it knew the encoding."""

    def received(self, chunk: bytes) -> None:
        """Decompress a part of the body and pass it on."""
        self._taken += len(chunk)
        try:
            for at in range(0, len(chunk), INPUT):
                self._decompress(chunk[at : at + INPUT])
        except zlib.error:
            self._fail(upstream_error("wrong_encoding", "the server's compression is broken"))

    def ended(self) -> None:
        """Pass on the end, unless the compressed data breaks off."""
        is_whole = self._stream is not None and self._stream.eof
        if is_whole or not self._taken:
            self._receiver.ended()
        else:
            self._receiver.failed(upstream_error("connection_lost"))

    def failed(self, error: PeerError) -> None:
        """Pass on a failure."""
        self._receiver.failed(error)

    def _decompress(self, data: bytes) -> None:
        is_full = False
        while (data or is_full) and not self._exchange.is_over:
            if self._stream is None:
                data = self._held + data
                self._stream = self._open(data)
                if self._stream is None:
                    self._held = data
                    return
            piece = self._stream.decompress(data, PIECE)
            # A full piece may have more behind it, even if all the input has been read.
            is_full = len(piece) == PIECE
            self._given += len(piece)
            if self._given > max(RATIO_FROM, self._taken * MAX_RATIO):
                self._fail(upstream_error("too_large", "the server's answer unpacks to too much"))
                return
            if piece:
                self._receiver.received(piece)
            data = self._stream.unconsumed_tail
            if self._stream.eof:
                data, is_full = self._stream.unused_data, False
                if data:
                    self._begin_member()

    def _begin_member(self) -> None:
        """Prepare for another member: a gzip body may consist of several (RFC 1952, 2.2)."""
        if not self._is_gzip:
            raise zlib.error("bytes after the end")
        self._members += 1
        if self._members > FREE_MEMBERS + self._given // MIN_MEMBER:
            raise zlib.error("too many members")
        self._stream, self._held = None, b""

    def _open(self, data: bytes) -> "zlib._Decompress | None":
        """Return a decompressor; None if more bytes are needed to tell the format of deflate."""
        if self._is_gzip:
            return zlib.decompressobj(_GZIP_BITS)
        if len(data) < 2:  # noqa: PLR2004  the zlib header
            return None
        # RFC 9110 (8.4.1.2) demands the zlib format, but some servers send bare deflate data.
        is_zlib = data[0] & 0x0F == zlib.DEFLATED and int.from_bytes(data[:2], "big") % 31 == 0
        return zlib.decompressobj(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)

    def _fail(self, error: PeerError) -> None:
        if not self._exchange.is_over:
            self._exchange.abort()
            self._receiver.failed(error)
