"""Splitting a stream into lines: any chunking gives the same lines, and none is kept too long."""

import itertools
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.wire.lines import HEAD, MAX_LINE, TAIL, LineSplitter, Oversized, length_of

LIMIT = 6000

pieces = st.lists(
    st.one_of(
        st.binary(max_size=40),
        st.just(b"\n"),
        st.integers(LIMIT - 2, LIMIT + 2).map(lambda size: b"x" * size),
        st.just(b"y" * (HEAD + TAIL)),
    ),
    max_size=12,
).map(b"".join)


def _split(data: bytes, cuts: list[int]) -> list[tuple[bytes, bool, int]]:
    splitter = LineSplitter(LIMIT)
    lines = []
    edges = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in itertools.pairwise(edges):
        lines += splitter.feed(data[start:end])
    lines += splitter.close()
    return [(bytes(line), isinstance(line, Oversized), length_of(line)) for line in lines]


@given(pieces, st.lists(st.integers(0, 20_000), max_size=30))
@settings(max_examples=150, deadline=None)
def test_any_chunking_gives_the_same_lines_as_the_whole_at_once(
    data: bytes, cuts: list[int]
) -> None:
    whole = data.split(b"\n")
    expected = [
        (line, False, len(line))
        if len(line) <= LIMIT
        else (line[:HEAD] + line[-TAIL:], True, len(line))
        for line in (whole if whole[-1] else whole[:-1])
    ]

    assert _split(data, cuts) == expected
    assert _split(data, []) == expected


def test_an_empty_chunk_and_an_empty_stream_give_nothing() -> None:
    splitter = LineSplitter()

    assert splitter.feed(b"") == []
    assert splitter.close() == []


def test_a_line_waits_for_its_end() -> None:
    splitter = LineSplitter()

    assert splitter.feed(b"half a ") == []
    assert splitter.feed(b"line\nand") == [b"half a line"]
    assert splitter.close() == [b"and"]
    assert splitter.close() == []


@pytest.mark.requirement("EC-STDIO-014")
def test_a_line_over_the_limit_costs_its_two_ends_and_the_next_line_is_whole() -> None:
    splitter = LineSplitter(LIMIT)
    for _ in range(100):
        assert splitter.feed(b"x" * 1000) == []
        assert len(splitter._held) <= LIMIT

    long, short = splitter.feed(b"end\nnext\n")

    assert isinstance(long, Oversized)
    assert length_of(long) == 100_003
    assert len(long) == HEAD + TAIL
    assert long.endswith(b"xend")
    assert (short, isinstance(short, Oversized)) == (b"next", False)


def test_ten_mebibytes_are_the_limit() -> None:
    assert MAX_LINE == 10 * 1024 * 1024
    line, longer = LineSplitter().feed(b"x" * MAX_LINE + b"\n" + b"x" * (MAX_LINE + 1) + b"\n")

    assert (type(line), len(line)) == (bytes, MAX_LINE)
    assert (type(longer), length_of(longer)) == (Oversized, MAX_LINE + 1)


def test_a_line_that_comes_in_tiny_pieces_costs_no_more_than_its_length() -> None:
    splitter = LineSplitter()
    for _ in range(200_000):
        splitter.feed(b"xy")

    assert sys.getsizeof(splitter._held) < 600_000
    assert splitter.feed(b"\n") == [b"xy" * 200_000]
