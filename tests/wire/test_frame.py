"""Reading a frame: one reading goes on byte for byte, anything else is refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.json_values import json_objects, json_values, texts

from thoughtgate.wire.frame import (
    MAX_DEPTH,
    MAX_ID,
    MAX_METHOD,
    MAX_NUMBER_ID,
    UNREAD,
    _read_any,
    escape_separators,
    find_id,
    is_deeper_than,
    parse_strict,
    read_frame,
    read_message,
    read_plain,
)
from thoughtgate.wire.lines import HEAD, MAX_LINE, LineSplitter, Oversized
from thoughtgate.wire.message import NOTIFICATION, REQUEST, RESPONSE, Fault, Message

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def _fault(line: bytes) -> Fault:
    found = read_frame(line)
    assert isinstance(found, Fault), found
    return found


def _message(line: bytes) -> Message:
    found = read_frame(line)
    assert isinstance(found, Message), found
    return found


ids = st.one_of(st.integers(-MAX_NUMBER_ID, MAX_NUMBER_ID), texts)
bodies = st.one_of(
    st.builds(
        lambda ident, method, params: {"id": ident, "method": method, "params": params},
        ids,
        texts,
        st.dictionaries(texts.filter(lambda key: key.casefold() == key), json_values(), max_size=3),
    ),
    st.builds(lambda ident, result: {"id": ident, "result": result}, ids, json_values()),
    st.builds(lambda ident, error: {"id": ident, "error": error}, ids, json_objects()),
    st.builds(lambda method: {"method": method}, texts),
)


@pytest.mark.requirement("S000-F-012", "S000-F-013")
@given(bodies, st.booleans(), st.sampled_from([b"", b"\r"]))
@settings(max_examples=200, deadline=None)
def test_a_frame_with_one_reading_goes_on_byte_for_byte(
    body: dict[str, Any], ascii_only: bool, end: bytes
) -> None:
    body = {"jsonrpc": "2.0", **body}
    line = json.dumps(body, ensure_ascii=ascii_only).encode()
    found = read_frame(line + end)
    if isinstance(found, Fault):
        # Chance may name a parameter as if it were a known one.
        assert found.check == "ambiguous_key"
        return

    assert found.raw == escape_separators(line)
    assert found.body == body
    assert json.loads(found.raw) == body
    assert (found.id, found.method) == (body.get("id"), body.get("method", ""))


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_a_message_or_a_fault(data: bytes) -> None:
    assert isinstance(read_frame(data), Message | Fault)
    find_id(data)


@given(st.text(alphabet='{}[]":,\\u0d8id\r\t 1.eE+-NaIfy\u2028', max_size=80))
@settings(max_examples=200, deadline=None)
def test_any_punctuation_is_a_message_or_a_fault(text: str) -> None:
    found = read_frame(text.encode())

    assert isinstance(found, Message | Fault)
    find_id(text.encode())


def test_the_three_shapes_are_told_apart_by_method_and_id() -> None:
    assert _message(PING).shape == REQUEST
    assert _message(b'{"jsonrpc":"2.0","method":"x"}').shape == NOTIFICATION
    assert _message(b'{"jsonrpc":"2.0","id":1,"result":null}').shape == RESPONSE
    assert _message(b'{"jsonrpc":"2.0","id":1,"error":{}}').shape == RESPONSE
    assert _message(b'{"jsonrpc":"2.0","error":{}}').shape == RESPONSE
    assert _message(b'{"jsonrpc":"2.0","id":null,"error":{}}').id is None


def test_the_type_of_an_id_is_kept() -> None:
    number, text = _message(PING), _message(PING.replace(b":1,", b':"1",'))

    assert (number.id, text.id) == (1, "1")
    assert _message(PING.replace(b":1,", b":0,")).shape == REQUEST


REFUSED = [
    (b"", "parse_error", "malformed_json", None),
    (b"{", "parse_error", "malformed_json", None),
    (b"not json", "parse_error", "malformed_json", None),
    (b'{"a":1} {"b":2}', "parse_error", "malformed_json", None),
    (b"\xef\xbb\xbf" + PING, "parse_error", "malformed_json", None),
    (b'{"jsonrpc":"2.0","id":1,"method":"a\x01b"}', "parse_error", "malformed_json", None),
    (b'{"a":' + b"9" * 5000 + b"}", "parse_error", "malformed_json", None),
    (b'{"jsonrpc":"2.0","id":7,"method":"\xff"}', "parse_error", "invalid_utf8", 7),
    (b'{"jsonrpc":"2.0","id":"\xff","method":"a"}', "parse_error", "invalid_utf8", None),
    (b'{"jsonrpc":"2.0","id":7,"method":"\xed\xa0\x80"}', "parse_error", "invalid_utf8", 7),
    (b"[" + PING + b"]", "invalid_request", "batch", None),
    (b"[]", "invalid_request", "batch", None),
    (b"5", "invalid_request", "not_an_object", None),
    (b'"text"', "invalid_request", "not_an_object", None),
    (b'{"id":3,"method":"x"}', "invalid_request", "missing_version", 3),
    (b'{"jsonrpc":"1.0","id":3,"method":"x"}', "invalid_request", "wrong_version", 3),
    (b'{"jsonrpc":2.0,"id":3,"method":"x"}', "invalid_request", "wrong_version", 3),
    (b'{"jsonrpc":"2.0"}', "invalid_request", "unclassifiable", None),
    (b'{"jsonrpc":"2.0","id":3}', "invalid_request", "unclassifiable", 3),
    (b'{"jsonrpc":"2.0","id":3,"method":"x","y":1}', "invalid_request", "extra_member", 3),
    (b'{"jsonrpc":"2.0","id":3,"method":"x","result":1}', "invalid_request", "two_shapes", 3),
    (b'{"jsonrpc":"2.0","id":3,"method":"x","error":1}', "invalid_request", "two_shapes", 3),
    (b'{"jsonrpc":"2.0","id":3,"result":1,"error":1}', "invalid_request", "two_shapes", 3),
    (b'{"jsonrpc":"2.0","id":3,"method":null}', "invalid_request", "wrong_method", 3),
    (b'{"jsonrpc":"2.0","id":3,"method":null,"result":1}', "invalid_request", "wrong_method", 3),
    (b'{"jsonrpc":"2.0","id":3,"method":5}', "invalid_request", "wrong_method", 3),
    (
        b'{"jsonrpc":"2.0","id":3,"method":"' + b"x" * (MAX_METHOD + 1) + b'"}',
        "invalid_request",
        "wrong_method",
        3,
    ),
    (b'{"jsonrpc":"2.0","id":null,"method":"x"}', "invalid_request", "wrong_id", None),
    (b'{"jsonrpc":"2.0","id":true,"method":"x"}', "invalid_request", "wrong_id", None),
    (b'{"jsonrpc":"2.0","id":1.0,"method":"x"}', "invalid_request", "wrong_id", None),
    (b'{"jsonrpc":"2.0","id":[1],"method":"x"}', "invalid_request", "wrong_id", None),
    (b'{"jsonrpc":"2.0","id":{},"result":1}', "invalid_request", "wrong_id", None),
    (b'{"jsonrpc":"2.0","id":null,"result":1}', "invalid_request", "wrong_id", None),
    (b'{"jsonrpc":"2.0","result":1}', "invalid_request", "wrong_id", None),
    (
        b'{"jsonrpc":"2.0","id":"' + b"x" * (MAX_ID + 1) + b'","method":"x"}',
        "invalid_request",
        "wrong_id",
        None,
    ),
    (b'{"jsonrpc":"2.0","id":3,"method":"x","params":[1]}', "invalid_params", "wrong_params", 3),
    (b'{"jsonrpc":"2.0","id":3,"method":"x","params":"a"}', "invalid_params", "wrong_params", 3),
    (b'{"jsonrpc":"2.0","id":3,"method":"x","id":3}', "invalid_request", "duplicate_key", None),
    (b'{"jsonrpc":"2.0","id":3,"method":"x","a":{"b":1,"b":1}}', "invalid_request", "duplicate_key", 3),
    (b'{"jsonrpc":"2.0","id":3,"method":"x","\\u006dethod":"y"}', "invalid_request", "duplicate_key", 3),
    (b'{"jsonrpc":"2.0","id":3,"method":"x","params":{"a":NaN}}', "invalid_request", "not_a_number", 3),
    (b'{"jsonrpc":"2.0","id":3,"result":-Infinity}', "invalid_request", "not_a_number", 3),
    (b'{"jsonrpc":"2.0","id":3,"result":1e999}', "invalid_request", "not_a_number", 3),
    (b'{"jsonrpc":"2.0","id":3,"result":-1e999}', "invalid_request", "not_a_number", 3),
    (b'{"jsonrpc":"2.0","id":3,"result":"\\ud800"}', "invalid_request", "lone_surrogate", 3),
    (b'{"jsonrpc":"2.0","id":3,"result":{"\\uDFFFx":1}}', "invalid_request", "lone_surrogate", 3),
]  # fmt: skip


@pytest.mark.requirement("S000-F-013", "S000-F-014", "EC-STDIO-015", "EC-STDIO-016")
@pytest.mark.parametrize(("line", "kind", "check", "ident"), REFUSED)
def test_a_frame_without_exactly_one_reading_is_refused(
    line: bytes, kind: str, check: str, ident: Any
) -> None:
    fault = _fault(line)

    assert (fault.kind, fault.check, fault.id) == (kind, check, ident)
    assert fault.reason


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":3,"result":1}',
        b'{"jsonrpc":"1.0","id":3,"error":{}}',
        b'{"jsonrpc":"2.0","id":{},"result":1}',
        b'{"jsonrpc":"2.0","result":1}',
        b'{"jsonrpc":"2.0","id":3,"result":1,"error":1}',
        b'{"jsonrpc":"2.0","id":3,"result":1,"Method":"x"}',
    ],
)
def test_nobody_is_answered_for_a_faulty_answer(line: bytes) -> None:
    assert not _fault(line).answerable


@pytest.mark.requirement("S000-F-014", "EC-STDIO-018")
@given(st.integers(0, len(PING)))
@settings(max_examples=50, deadline=None)
def test_a_raw_cr_is_refused_wherever_it_stands_but_at_the_end(place: int) -> None:
    found = read_frame(PING[:place] + b"\r" + PING[place:])

    if place == len(PING):
        assert isinstance(found, Message)
        assert found.raw == PING
    else:
        assert isinstance(found, Fault)
        assert found.check == "raw_cr"


def test_only_one_cr_belongs_to_the_line_end() -> None:
    assert _fault(PING + b"\r\r").check == "raw_cr"


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\u0085"])
def test_line_separators_outside_ascii_are_escaped_and_nothing_else(char: str) -> None:
    line = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "é" + char + "\u2027"}, ensure_ascii=False
    ).encode()
    message = _message(line)

    assert char.encode() not in message.raw
    assert json.loads(message.raw) == json.loads(line)
    assert message.raw == line.replace(char.encode(), rf"\u{ord(char):04x}".encode())
    assert len(message.raw.decode().splitlines()) == 1


@pytest.mark.parametrize(
    "key",
    ["Method", "METHOD", "Id", "ID", "Params", "param\u017f", "Re\u017fult", "jsonRpc", "ERROR"],
)
def test_a_member_that_a_case_blind_reader_takes_for_another_is_refused(key: str) -> None:
    body = {"jsonrpc": "2.0", "id": 4, "method": "ping", key: "tools/call"}
    fault = _fault(json.dumps(body).encode())

    assert (fault.check, fault.id) == ("ambiguous_key", 4)


@pytest.mark.parametrize(
    "params",
    [
        {"Name": "t"},
        {"name": "safe", "NAME": "t"},
        {"argument\u017f": {}},
        {"ta\u017fk": {}},
        {"ta\u017f\u212a": {}},
        {"Uri": "u"},
        {"_Meta": {}},
        {"requestid": 1},
        {"RequestId": 1},
        {"taskID": "x"},
        {"Ref": {}},
        {"ref": {"Name": "p"}},
        {"ref": {"name": "p", "URI": "u"}},
        {"notifications": {"resourcesubscriptions": ["u"]}},
        {"Notifications": {}},
        {"ref": {"name": "p", "Type": "ref/resource"}},
        {"notifications": {"toolslistchanged": True}},
        {"notifications": {"TaskIDs": ["t"]}},
        {"RequestState": "x"},
        {"inputresponses": {}},
        {"Cursor": "x"},
        {"task": {"TTL": 1}},
        {"name": "t", "_meta": {"progresstoken": 1}},
        {"name": "t", "_meta": {"io.modelcontextprotocol/protocolversion": "2026-07-28"}},
        {"name": "t", "_meta": {"io.modelcontextprotocol/clientCapabilitie\u017f": {}}},
        {"ur\u0131": "u"},
        {"ur\u0130": "u"},
        {"name\0": "t", "name": "safe"},
        {"NAME\0x": "t"},
        {"name": "t", "_meta": {"progressToken\0": 1}},
    ],
)
def test_a_parameter_that_a_case_blind_reader_takes_for_another_is_refused(params: Any) -> None:
    body = {"jsonrpc": "2.0", "id": 4, "method": "x", "params": params}

    assert _fault(json.dumps(body).encode()).check == "ambiguous_key"


@pytest.mark.parametrize(
    "params",
    [
        {"name": "t", "arguments": {"Name": 1, "NAME": 2}, "other": 1, "Other": 2},
        {"requestId": 1, "taskId": "x", "_meta": {"Name": 1}},
        {"ref": "text", "notifications": None},
        {"ref": {"name": "p", "Title": 1}},
    ],
)
def test_names_that_no_verdict_depends_on_may_have_any_case(params: Any) -> None:
    body = {"jsonrpc": "2.0", "id": 4, "method": "x", "params": params}

    assert isinstance(read_frame(json.dumps(body).encode()), Message)


@pytest.mark.promise("params-are-bound")
@pytest.mark.parametrize("ident", [4, "four"])
@pytest.mark.parametrize("name", ["extra", "arguments", "_meta", "name"])
def test_a_request_carries_nothing_beside_its_params(name: str, ident: Any) -> None:
    """An approval is bound to the params: what stands next to them would go on unseen."""
    params = {"name": "t", "arguments": {}}
    body = {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params, name: {"a": 1}}

    fault = _fault(json.dumps(body).encode())
    assert (fault.check, fault.id) == ("extra_member", ident)


@pytest.mark.parametrize("ident", [2**53, 2**53 + 1, -(2**53), 10**30])
def test_an_id_that_javascript_reads_as_another_is_refused(ident: int) -> None:
    """Two such ids are one to a server in Node: an unscreened list would pass for a ping's answer."""
    line = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % ident

    assert (_fault(line).check, _fault(line).id) == ("wrong_id", None)
    assert find_id(line) is None
    assert isinstance(read_frame(line.replace(b"%d" % ident, b"%d" % MAX_NUMBER_ID)), Message)


def test_unpaired_escapes_that_make_a_pair_are_read() -> None:
    message = _message(b'{"jsonrpc":"2.0","id":1,"result":"\\ud83d\\ude00"}')

    assert message.body["result"] == "\U0001f600"


def _nested(depth: int) -> bytes:
    """Return a request whose brackets nest so deep, itself included."""
    inner = b"[" * (depth - 2) + b"]" * (depth - 2)
    return b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":' + inner + b"}}"


def test_nesting_is_bounded() -> None:
    assert isinstance(read_frame(_nested(MAX_DEPTH)), Message)
    assert (_fault(_nested(MAX_DEPTH + 1)).check, _fault(_nested(MAX_DEPTH + 1)).id) == (
        "too_deep",
        1,
    )
    assert _fault(b'{"a":' + b"[" * 100_000).check == "too_deep"


def test_brackets_in_strings_do_not_nest() -> None:
    text = "[{" * 500 + '"\\' + "]"
    line = json.dumps({"jsonrpc": "2.0", "method": "x", "a": [text] * 3}).encode()

    assert isinstance(read_frame(line), Message)


@given(json_values(), st.integers(1, 8))
@settings(max_examples=100, deadline=None)
def test_depth_is_what_a_recursive_count_says(value: Any, limit: int) -> None:
    def depth(item: Any) -> int:
        members = item.values() if isinstance(item, dict) else item
        if isinstance(item, dict | list):
            return 1 + max(map(depth, members), default=0)
        return 0

    assert is_deeper_than(limit, json.dumps(value).encode()) == (depth(value) > limit)


@pytest.mark.parametrize("size", [1000, 200_000])
@pytest.mark.parametrize(
    ("text", "is_deep"),
    [
        (lambda n: b"[" * n + b"]" * n, True),
        (lambda n: b"[" * n, True),
        (lambda n: b"]" * n + b"[" * n, True),
        (lambda n: b"[" + b"[]," * n + b"[]]", False),
        (lambda n: b"[" + (b"[" * 127 + b"]" * 127 + b",") * (n // 250) + b"[]]", False),
        (lambda n: b"[" + (b"[" * 128 + b"]" * 128 + b",") * (n // 250) + b"[]]", True),
        (lambda n: b'["' + b"[" * n + b'"]', False),
        (lambda n: b'["' + b'\\"[' * n + b'"]', False),
        (lambda n: b'["' + b"\\\\" * n + b'",' + b"[" * 200 + b"]" * 200 + b"]", True),
    ],
)
def test_depth_is_right_at_any_size(
    text: Callable[[int], bytes], size: int, *, is_deep: bool
) -> None:
    assert is_deeper_than(MAX_DEPTH, text(size)) is is_deep


@pytest.mark.promise("linear-time")
def test_depth_is_found_without_a_pass_over_the_whole_text_per_level() -> None:
    # Each level used to cost one replacement over the whole text.
    text = b"[" * 5_000_000 + b"]" * 5_000_000
    copied = 0

    class Counted(bytes):
        def __getitem__(self, part: Any) -> Any:
            nonlocal copied
            copied += len(super().__getitem__(part))
            return super().__getitem__(part)

        def replace(self, *_: Any) -> bytes:
            raise AssertionError("the whole text is copied")

    assert is_deeper_than(MAX_DEPTH, Counted(text))
    assert copied < 1_000_000


@pytest.mark.parametrize(
    "hostile",
    [
        b"[" * 200 + b'"' + b"a" * 5_000_000,
        b"[" * 200 + b'"' + b'\\"' * 2_500_000,
        b"[" * 200 + b'"' + b"a" * 1_000_000 + b"\\",
        b"[" * 200 + b'""' * 2_500_000 + b'"',
        b"[]" * 2_500_000,
        (b"[" * 64 + b"]" * 64) * 40_000,
        b'{"a":' * 100_000,
    ],
    ids=["open string", "escapes", "backslash", "quotes", "flat", "waves", "deep"],
)
def test_hostile_text_is_refused_and_the_refusal_comes_to_an_end(hostile: bytes) -> None:
    # An expression that backtracks does not come to an end here within years.
    assert isinstance(read_frame(hostile), Fault)


@pytest.mark.requirement("EC-STDIO-014")
@pytest.mark.parametrize("where", ["first", "last"])
def test_an_oversized_request_is_refused_with_its_id_wherever_it_stands(where: str) -> None:
    long = {"params": {"name": "t", "arguments": {"text": "x" * MAX_LINE}}}
    head = {"jsonrpc": "2.0", "method": "tools/call"}
    for ident in (77, 'a\u00e9"b'):
        body = {"id": ident, **head, **long} if where == "first" else {**head, **long, "id": ident}
        data = json.dumps(body, ensure_ascii=False).encode()
        assert _fault(data).id == ident
        (line,) = LineSplitter().feed(data + b"\r\n")
        fault = _fault(line)
        assert (fault.kind, fault.check, fault.id) == ("invalid_request", "too_large", ident)


def test_a_frame_of_exactly_the_limit_is_read() -> None:
    empty = json.dumps({"jsonrpc": "2.0", "method": "x", "a": ""}).encode()
    line = empty.replace(b'""', b'"' + b"x" * (MAX_LINE - len(empty)) + b'"')

    assert len(line) == MAX_LINE
    assert isinstance(read_frame(line), Message)


FOUND = [
    (b'{"id":1}', 1),
    (b'{"id" : "a"}', "a"),
    (b'{"id":-5,"x":', -5),
    (b'{"x":{"id":9},"id":2}', 2),
    (b'{"x":[{"id":9}],"id":2', 2),
    (b'{"x":"\\"id\\":9","id":2', 2),
    (b'{"id":1,"id":1}', None),
    (b'{"id":1}{"id":2}', None),
    (b'{"id":1.5}', None),
    (b'{"id":null}', None),
    (b'{"id":true}', None),
    (b'{"id":[1]}', None),
    (b'{"id"', None),
    (b'{"id":', None),
    (b'{"id', None),
    (b'{"x":"id","y":1}', None),
    (b'{"id":"' + b"x" * (MAX_ID + 1) + b'"}', None),
    (b'{"id":"\xff"}', None),
    (b'{"id":"\\ud800"}', None),
    (b'{"id":"\\ude00\\ud83d","x":1}', None),
    (b'{"id":"\\ud83d\\ude00"}', "\U0001f600"),
    (b'["id",1]', None),
    (b"", None),
    (b"}}}", None),
    (b'{"x":"' + b"a" * HEAD + b'","id":8}', 8),
    (b'{"x":"' + b"a" * HEAD + b'","id":8 , "y":1}', None),
    (b'{"x":"' + b"a" * HEAD + b'","y":{"id":8}}', None),
    (b'{"x":"' + b"a" * HEAD + b'","id":1.5}', None),
    (b'{"x":"' + b"a" * HEAD + b'","y":"\\"id\\":8}', None),
    (b'{"x":"' + b"a" * HEAD + b'","id":"b\\"c"}\r', 'b"c'),
    (b'{"id":3,"x":"' + b"a" * HEAD + b'","id":8}', 3),
]


@pytest.mark.parametrize(("line", "ident"), FOUND)
def test_an_id_is_found_where_only_one_can_be_meant(line: bytes, ident: Any) -> None:
    assert find_id(line) == ident
    assert type(find_id(line)) is type(ident)


@given(ids.filter(lambda ident: type(ident) is int or "\ufffd" not in str(ident)), json_objects())
@settings(max_examples=100, deadline=None)
def test_the_id_that_is_found_is_the_one_that_is_read(ident: Any, rest: dict[str, Any]) -> None:
    rest.pop("id", None)
    for body in ({"id": ident, **rest}, {**rest, "id": ident}):
        line = json.dumps(body).encode()
        assert find_id(line) in (ident, None)
        if len(line) <= HEAD:
            assert find_id(line) == ident


def test_white_space_around_a_frame_is_json() -> None:
    assert parse_strict(b' \t {"a": 1} \t') == {"a": 1}
    assert _message(b"  " + PING + b"  ").raw == b"  " + PING + b"  "


def test_checks_that_leave_the_shape_unknown_are_listed() -> None:
    seen = {_fault(line).check for line, kind, _, _ in REFUSED if kind == "parse_error"}

    assert seen <= UNREAD
    assert {"raw_cr", "too_large", "duplicate_key"} <= UNREAD
    assert isinstance(read_message({}, b""), Fault)
    assert issubclass(Oversized, bytes)


@given(
    st.fixed_dictionaries(
        {"jsonrpc": st.sampled_from(["2.0", "1.0", 2])},
        optional={
            "id": st.sampled_from(
                [1, 0, -1, True, None, "a", 1.5, MAX_NUMBER_ID, MAX_NUMBER_ID + 1]
            ),
            "method": st.sampled_from(["tools/call", "", 5, None, "x" * (MAX_METHOD + 1)]),
            "params": st.one_of(
                st.sampled_from([None, [], "x", {"name": "a"}, {"Name": "a"}]),
                st.dictionaries(
                    st.sampled_from(["name", "NAME", "arguments", "uri", "_meta", "ref", "x"]),
                    st.sampled_from([1, "a", {}, {"Name": "b"}]),
                    max_size=3,
                ),
            ),
            "result": st.just({}),
            "error": st.just({}),
            "ID": st.just(1),
        },
    )
)
@settings(max_examples=500, deadline=None)
def test_what_is_read_at_once_is_read_the_same_as_slowly(body: dict[str, Any]) -> None:
    plain = read_plain(body, b"raw")
    assert plain is None or plain == _read_any(body, b"raw")


def test_a_call_and_its_result_are_read_at_once() -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x"}}
    assert read_plain(call, b"raw") == Message(REQUEST, 1, "tools/call", call, b"raw")
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert read_plain(answer, b"raw") == Message(RESPONSE, 1, "", answer, b"raw")


_LONG = [
    "0.10000000000000001",
    "1000.0000000000000001",
    "123456789012345678901234.0",
    "1e-400",
    "1e-99999999999999999999",
]


@pytest.mark.promise("one-reading")
@pytest.mark.promise("approver-sees-what-runs")
@pytest.mark.parametrize("number", _LONG)
def test_a_request_has_no_number_that_a_double_rounds(number: str) -> None:
    line = (
        '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t","arguments":{"a":%s}}}'
    )
    refused = read_frame((line % number).encode())
    assert isinstance(refused, Fault)
    assert (refused.kind, refused.check, refused.id) == ("invalid_request", "inexact_number", 3)


@pytest.mark.parametrize("number", _LONG)
def test_other_messages_may_have_long_numbers(number: str) -> None:
    for frame in (
        '{"jsonrpc":"2.0","id":3,"result":{"a":%s}}',
        '{"jsonrpc":"2.0","method":"n","params":{"a":%s}}',
    ):
        line = (frame % number).encode()
        message = read_frame(line)
        assert isinstance(message, Message)
        assert message.raw == line
    twice = read_frame(
        (f'{{"jsonrpc":"2.0","id":3,"result":{{"a":{number},"b":1,"b":2}}}}').encode()
    )
    assert isinstance(twice, Fault)
    assert twice.check == "duplicate_key"


@pytest.mark.parametrize(
    "number",
    [
        "0.1",
        "-0.0",
        "0e99999999999999999999",
        "1E5",
        "100000.000000000000000000",
        "1.7976931348623157e308",
        "5e-324",
        "0.30000000000000004",
        "-2.50e-7",
        "9007199254740993",
    ],
)
def test_every_other_spelling_of_a_number_passes(number: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":3,"method":"x","params":{{"arguments":{{"a":{number}}}}}}}'
    assert isinstance(read_frame(line.encode()), Message)
