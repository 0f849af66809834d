"""Splitting and writing server-sent events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.wire.sse import (
    Event,
    EventSplitter,
    EventTooLongError,
    parse_event,
    render_event,
    replace_data,
    with_one_reading,
)

_TEXT = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=20)
_LINE_END = st.sampled_from([b"\n", b"\r\n", b"\r"])


def test_an_event_is_given_with_its_fields_and_its_bytes() -> None:
    raw = b'id: 7\nretry: 500\n: comment\nevent: message\ndata: {"a":1}\n\n'
    assert EventSplitter().feed(raw) == [Event(raw, b'{"a":1}', b"7", b"message")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_an_event_may_come_byte_by_byte(end: bytes) -> None:
    raw = b"data: one" + end + b"data: two" + end + end + b": ping" + end + end
    splitter = EventSplitter()
    events = [event for byte in raw for event in splitter.feed(bytes([byte]))]
    assert [event.data for event in events] == [b"one\ntwo", None]
    assert b"".join(event.raw for event in events) == raw


def test_a_lone_cr_at_the_end_of_a_chunk_waits_for_what_follows() -> None:
    splitter = EventSplitter()
    assert splitter.feed(b"data: a\r\n\r") == []
    assert [event.data for event in splitter.feed(b"\ndata: b\n\n")] == [b"a", b"b"]


def test_a_stream_that_ends_in_a_bare_cr_has_its_last_event() -> None:
    splitter = EventSplitter()
    assert splitter.feed(b"data: a\r\r") == []
    assert [event.data for event in splitter.close()] == [b"a"]


def test_what_stands_without_a_blank_line_is_no_event() -> None:
    splitter = EventSplitter()
    assert splitter.feed(b"data: a\n") == []
    assert splitter.close() == []


def test_a_byte_order_mark_is_skipped() -> None:
    assert [event.data for event in EventSplitter().feed(b"\xef\xbb\xbfdata: a\n\n")] == [b"a"]


def test_an_event_that_never_ends_is_refused() -> None:
    splitter = EventSplitter(limit=100)
    for _ in range(4):
        splitter.feed(b"data: " + b"x" * 14)
    with pytest.raises(EventTooLongError):
        splitter.feed(b"data: " + b"x" * 20)


def test_only_the_first_space_after_the_colon_is_left_out() -> None:
    assert parse_event(b"data:  a\n\n").data == b" a"
    assert parse_event(b"data:a\n\n").data == b"a"
    assert parse_event(b"data\n\n").data == b""


def test_an_id_with_a_nul_is_no_id() -> None:
    assert parse_event(b"id: a\0b\ndata: x\n\n").id is None


def test_other_event_names_are_no_messages() -> None:
    assert not parse_event(b"event: ping\ndata: x\n\n").is_message
    assert not parse_event(b"data:\n\n").is_message
    assert parse_event(b"data: x\n\n").is_message


def test_replacing_the_data_keeps_everything_else() -> None:
    event = parse_event(
        b": note\r\nid: 3\r\nretry: 9\r\nevent: message\r\ndata: a\r\ndata: b\r\n\r\n"
    )
    expected = b": note\nid: 3\nretry: 9\nevent: message\ndata: new\n\n"
    assert replace_data(event, b"new") == expected
    emptied = parse_event(replace_data(event, None))
    assert (emptied.id, emptied.data) == (b"3", b"")


def test_a_rendered_event_reads_back() -> None:
    event = parse_event(render_event(b"{}"))
    assert (event.data, event.name) == (b"{}", b"message")


@given(st.lists(st.tuples(_TEXT, _TEXT), min_size=1, max_size=5), _LINE_END, st.integers(1, 7))
@settings(max_examples=150, deadline=None)
def test_events_are_the_same_however_they_are_cut(
    pairs: list[tuple[str, str]], end: bytes, size: int
) -> None:
    parts = [
        b"id: " + ident.encode() + end + b"data: " + data.encode() + end + end
        for ident, data in pairs
    ]
    raw = b"".join(parts)
    splitter = EventSplitter()
    events = []
    for start in range(0, len(raw), size):
        events += splitter.feed(raw[start : start + size])
    events += splitter.close()
    assert [event.data for event in events] == [data.encode() for _, data in pairs]
    assert b"".join(event.raw for event in events) == raw


@pytest.mark.parametrize(
    "end", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
)
@pytest.mark.parametrize("head", [": x", "id: 1", "event: message", "x"])
def test_no_line_of_an_event_hides_another_from_any_reader(head: str, end: str) -> None:
    hidden = f"{head}{end}data: hidden{end}{end}\ndata: shown\n\n"
    event = with_one_reading(parse_event(hidden.encode()))
    lines = event.raw.decode().splitlines()
    assert [line for line in lines if line.startswith("data")] == ["data: shown"]
    assert event.data == b"shown"


def test_an_event_that_everybody_splits_alike_stays_as_it_is() -> None:
    for raw in (b": x\r\ndata: a\r\n\r\n", b"id: 1\ndata: a\n\n"):
        assert with_one_reading(parse_event(raw)).raw == raw
    assert with_one_reading(parse_event(b": x\rdata: a\r\r")).raw == b": x\ndata: a\n\n"


@pytest.mark.parametrize(
    "field", [b"\xef\xbb\xbfdata", b" data", b"DATA", b"data ", b"datas", b"x"]
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_an_unknown_field_is_removed(field: bytes, end: bytes) -> None:
    for rest in (b": hidden", b""):
        for place in (b"%b%b", b"id: 1%b%b"):
            first = b"" if place == b"%b%b" else end
            raw = place % (first, field + rest) + end + b"data: shown" + end + end
            event = with_one_reading(parse_event(raw))
            assert b"hidden" not in event.raw
            assert parse_event(event.raw).data == event.data == b"shown"
