"""Compressed answers: what is read, and what is refused."""

import gzip
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.errors import PeerError
from thoughtgate.transports.content_coding import (
    FREE_MEMBERS,
    MAX_RATIO,
    MIN_MEMBER,
    PIECE,
    RATIO_FROM,
    Decompressor,
    is_known,
    unknown_encoding,
)
from thoughtgate.transports.http_heads import ResponseHead


class _Exchange:
    is_over = False

    def abort(self) -> None:
        self.is_over = True


class _Receiver:
    def __init__(self, limit: int = 1 << 40) -> None:
        self.body = b""
        self.pieces: list[int] = []
        self.error: PeerError | None = None
        self.has_ended = False
        self.exchange = _Exchange()
        self._limit = limit

    def started(self, head: ResponseHead) -> None:
        raise AssertionError(f"the head was received before: {head.status}")

    def received(self, chunk: bytes) -> None:
        assert not self.exchange.is_over
        self.body += chunk
        self.pieces.append(len(chunk))
        if len(self.body) > self._limit:
            self.exchange.abort()

    def ended(self) -> None:
        self.has_ended = True

    def failed(self, error: PeerError) -> None:
        self.error = error


def _bare(data: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(data) + made.flush()


FORMS: dict[str, tuple[bytes, Any]] = {
    "gzip": (b"gzip", gzip.compress),
    "x-gzip": (b"x-gzip", gzip.compress),
    "deflate": (b"deflate", zlib.compress),
    "bare deflate": (b"deflate", _bare),
}


def _read(encoding: bytes, data: bytes, step: int = 1 << 20, limit: int = 1 << 40) -> _Receiver:
    receiver = _Receiver(limit)
    decompressor = Decompressor(receiver.exchange, receiver, encoding)
    for start in range(0, len(data), step):
        if not receiver.exchange.is_over:
            decompressor.received(data[start : start + step])
    if not receiver.exchange.is_over:
        decompressor.ended()
    return receiver


@pytest.mark.parametrize("form", FORMS)
@given(data=st.binary(max_size=500), step=st.integers(1, 40))
def test_an_answer_comes_out_as_it_was_however_it_arrives(
    form: str, data: bytes, step: int
) -> None:
    encoding, compress = FORMS[form]

    receiver = _read(encoding, compress(data), step)

    assert receiver.body == data
    assert receiver.has_ended
    assert receiver.error is None


def test_several_members_of_gzip_are_one_body() -> None:
    receiver = _read(b"gzip", gzip.compress(b"one") + gzip.compress(b"two"), 7)

    assert receiver.body == b"onetwo"
    assert receiver.has_ended


def test_an_empty_body_is_no_broken_compression() -> None:
    assert _read(b"gzip", b"").has_ended


@pytest.mark.parametrize(
    ("encoding", "data", "cause"),
    [
        (b"gzip", b"plain text", "wrong_encoding"),
        (b"deflate", b"\xff\xff\xff\xff", "wrong_encoding"),
        (b"deflate", zlib.compress(b"a") + b"more", "wrong_encoding"),
        (b"gzip", gzip.compress(b"a") + b"more", "wrong_encoding"),
        (b"gzip", gzip.compress(b"a" * 100)[:-1], "connection_lost"),
        (b"deflate", b"x", "connection_lost"),
    ],
    ids=["plain", "noise", "deflate and more", "gzip and more", "cut off", "one byte"],
)
def test_broken_compression_is_a_failure(encoding: bytes, data: bytes, cause: str) -> None:
    receiver = _read(encoding, data)

    assert receiver.error is not None
    assert receiver.error.cause == cause
    assert not receiver.has_ended


def test_a_bomb_is_stopped_by_its_ratio_before_it_unpacks() -> None:
    bomb = gzip.compress(b"\0" * (MAX_RATIO * RATIO_FROM))

    receiver = _read(b"gzip", bomb, 4096)

    assert receiver.error is not None
    assert receiver.error.cause == "too_large"
    assert len(receiver.body) <= max(RATIO_FROM, len(bomb) * MAX_RATIO)
    assert max(receiver.pieces) <= PIECE


def test_a_receiver_that_gave_up_gets_no_more() -> None:
    receiver = _read(b"gzip", gzip.compress(b"\0" * RATIO_FROM), limit=PIECE)

    assert len(receiver.body) == 2 * PIECE
    assert receiver.error is None


def test_a_failure_of_the_connection_is_passed_on() -> None:
    receiver = _Receiver()
    error = PeerError("upstream_connection_failed", "gone")
    decompressor = Decompressor(receiver.exchange, receiver, b"gzip")

    decompressor.started(ResponseHead(200, []))
    decompressor.failed(error)

    assert receiver.error is error


def test_an_unknown_encoding_is_named_without_what_could_deceive() -> None:
    assert not is_known(b"br")
    assert not is_known(b"gzip, gzip")
    error = unknown_encoding(b"br\x1b[2J" + b"z" * 100, 200)

    assert "'br??2Jzzz" in str(error)
    assert "z" * 40 not in str(error)
    assert (error.cause, error.status) == ("wrong_encoding", 200)


def test_members_that_hold_nothing_are_refused_before_they_keep_the_gate_busy() -> None:
    receiver = _Receiver()
    decompressor = Decompressor(receiver.exchange, receiver, b"gzip")

    decompressor.received(gzip.compress(b"") * (FREE_MEMBERS + 2))

    assert receiver.exchange.is_over
    assert receiver.error is not None
    assert receiver.error.cause == "wrong_encoding"


def test_members_that_hold_something_are_read_without_end() -> None:
    receiver = _Receiver()
    decompressor = Decompressor(receiver.exchange, receiver, b"gzip")
    member, number = b"x" * MIN_MEMBER, 4 * FREE_MEMBERS

    decompressor.received(gzip.compress(member) * number)
    decompressor.ended()

    assert receiver.body == member * number
    assert receiver.has_ended


@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE])
def test_a_bare_body_is_complete_whatever_its_size(size: int) -> None:
    receiver = _Receiver()
    decompressor = Decompressor(receiver.exchange, receiver, b"deflate")
    made = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)

    decompressor.received(made.compress(b"a" * size) + made.flush())
    decompressor.ended()

    assert len(receiver.body) == size
    assert receiver.has_ended
