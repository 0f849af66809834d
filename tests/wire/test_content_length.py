"""Content-Length framing beside lines."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.wire.content_length import HEADERS, LINES, MAX_HEADER, FrameSplitter
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.lines import Oversized
from thoughtgate.wire.message import Fault, Message

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def headed(data: bytes, name: bytes = b"Content-Length") -> bytes:
    return b"%b: %d\r\n\r\n%b" % (name, len(data), data)


@pytest.mark.requirement("S002-12")
def test_lines_are_read_as_lines() -> None:
    splitter = FrameSplitter()

    assert splitter.feed(PING + b"\n" + PING + b"\n") == [PING, PING]
    assert splitter.framing == LINES
    assert splitter.frame(PING) == PING + b"\n"


@pytest.mark.requirement("S002-11", "S002-12")
def test_frames_with_a_length_are_read_and_answered_in_kind() -> None:
    splitter = FrameSplitter()

    assert splitter.feed(headed(PING) + headed(PING)) == [PING, PING]
    assert splitter.framing == HEADERS
    assert splitter.frame(b"{}") == b"Content-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize("name", [b"content-length", b"CONTENT-LENGTH"])
def test_the_header_may_be_written_in_any_case(name: bytes) -> None:
    assert FrameSplitter().feed(headed(PING, name)) == [PING]


def test_other_headers_may_stand_beside_the_length() -> None:
    head = b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(PING)

    assert FrameSplitter().feed(head + PING) == [PING]


def test_a_body_laid_out_over_lines_is_one_message() -> None:
    body = b'{\r\n  "jsonrpc": "2.0",\r\n  "id": 1,\r\n  "method": "ping"\r\n}'
    [frame] = FrameSplitter().feed(headed(body))

    message = read_frame(frame)
    assert isinstance(message, Message)
    assert message.method == "ping"


@pytest.mark.requirement("S002-59")
def test_a_head_without_a_length_is_refused_and_the_stream_goes_on() -> None:
    splitter = FrameSplitter()

    first, second = splitter.feed(b"Content-Type: text/plain\r\n\r\n" + headed(PING))

    assert isinstance(read_frame(first), Fault)
    assert second == PING


def test_a_head_that_never_ends_is_refused() -> None:
    splitter = FrameSplitter()

    [frame] = splitter.feed(b"Content-Length: 1\r\nx: " + b"y" * (MAX_HEADER + 10))

    assert isinstance(read_frame(frame), Fault)


def test_a_frame_over_the_limit_is_skipped_whole() -> None:
    splitter = FrameSplitter(limit=64)
    large = b"x" * 100

    frames = splitter.feed(headed(large)[:50])
    frames += splitter.feed(headed(large)[50:] + headed(b"{}"))

    assert isinstance(frames[0], Oversized)
    assert frames[1:] == [b"{}"]


def test_nothing_is_decided_before_the_first_byte() -> None:
    splitter = FrameSplitter()

    assert splitter.feed(b"\r\n") == []
    assert splitter.feed(b"Cont") == []
    assert splitter.feed(b"ent-Length: 2\r\n\r\n{}") == [b"{}"]


def test_what_is_left_at_the_end_is_given() -> None:
    lines, headers, empty = FrameSplitter(), FrameSplitter(), FrameSplitter()
    lines.feed(b"{}")
    headers.feed(b"Content-Length: 9\r\n\r\n{}")

    assert lines.close() == [b"{}"]
    assert headers.close() == [b"Content-Length: 9\r\n\r\n{}"]
    assert empty.close() == []


@given(
    bodies=st.lists(
        st.binary(min_size=1, max_size=40).map(lambda b: b'"' + b.hex().encode() + b'"')
    ),
    cuts=st.lists(st.integers(0, 2000), max_size=8),
)
@settings(max_examples=150, deadline=None)
def test_frames_come_out_however_the_stream_is_cut(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(headed(body) for body in bodies)
    splitter = FrameSplitter()
    edges = sorted({0, len(stream), *(min(cut, len(stream)) for cut in cuts)})

    frames: list[bytes] = []
    for start, stop in pairwise(edges):
        frames += splitter.feed(stream[start:stop])

    assert frames == bodies
