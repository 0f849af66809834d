"""Large held calls are judged again with exactly the arguments that were judged first."""

import json
from typing import Any

import pytest

from thoughtgate.core.known_tools import hash_of
from thoughtgate.core.open_calls import (
    SPENT,
    PackedCall,
    pack_calls,
    unpack_calls,
    without_arguments,
)
from thoughtgate.policy.call import Call
from thoughtgate.wire.canonical import args_hash
from thoughtgate.wire.packed_message import MAX_PARSED

ARGUMENTS: dict[str, Any] = {"text": "x" * MAX_PARSED, "list": [1, 1.5, True, None, "é"]}
EXTRA: dict[str, Any] = {"other": {"b": 1}}
LARGE = MAX_PARSED + 1


def _call(method: str = "tools/call", **more: Any) -> Call:
    digests = {"args_hash": args_hash(ARGUMENTS), "extra_hash": hash_of(EXTRA)}
    known = {"arguments": ARGUMENTS, "extra": EXTRA, **digests, **more}
    return Call("srv", "tool", "a", method=method, **known)


def _frame(**more: Any) -> bytes:
    params = {"name": "one.a", "arguments": ARGUMENTS, **EXTRA, **more}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    ("method", "frame", "is_frame"),
    [
        ("tools/call", _frame(), True),
        ("tools/call", b"", False),
        ("completion/complete", _frame(), False),
        ("no/such", _frame(), False),
    ],
)
def test_a_packed_call_gets_its_arguments_back(method: str, frame: bytes, is_frame: bool) -> None:
    call = _call(method)

    packed = pack_calls((call,), LARGE, frame)

    assert packed is not None
    assert packed.is_frame is is_frame
    assert not is_frame or packed.data is frame
    bare = without_arguments(call)
    assert (bare.arguments, bare.extra) == ({}, None)
    assert unpack_calls((bare,), packed) == (call,)


def test_small_calls_and_those_without_a_digest_are_not_packed() -> None:
    assert pack_calls((_call(),), MAX_PARSED, _frame()) is None
    assert pack_calls((_call(), _call(args_hash="")), LARGE, _frame()) is None


@pytest.mark.parametrize(
    "packed",
    [
        PackedCall(_frame(arguments={}), is_frame=True),
        PackedCall(_frame(more=1), is_frame=True),
        PackedCall(_frame(arguments={"a": 1e400}), is_frame=True),
        SPENT,
    ],
)
def test_other_arguments_are_not_those_of_the_call(packed: PackedCall) -> None:
    assert unpack_calls((without_arguments(_call()),), packed) is None


def _several(method: str, body: dict[str, Any]) -> tuple[tuple[Call, ...], bytes]:
    """Return two calls with these arguments, and the frame that names them."""
    one = Call("srv", "elicitation", "form", PROMPT, method, args_hash=args_hash(PROMPT))
    return (one, one), json.dumps({"jsonrpc": "2.0", **body}).encode()


PROMPT: dict[str, Any] = {"mode": "form", "message": "x" * MAX_PARSED}
REQUEST = {"method": "elicitation/create", "params": PROMPT}
INPUTS = {"inputRequests": {"a": REQUEST, "b": REQUEST}}


@pytest.mark.promise("held-calls-bounded")
@pytest.mark.parametrize(
    ("body", "is_frame"),
    [
        ({"id": 1, "result": INPUTS}, True),
        ({"method": "notifications/tasks/status", "params": {"result": INPUTS}}, True),
        ({"id": 1, "result": {"inputRequests": {"a": REQUEST}}}, False),
        ({"id": 1, "result": {"inputRequests": {"a": 1}}}, False),
    ],
)
def test_several_requests_in_one_message_get_their_arguments_back(
    body: dict[str, Any], is_frame: bool
) -> None:
    calls, frame = _several("input_required", body)

    packed = pack_calls(calls, LARGE, frame)

    assert packed is not None
    assert packed.is_frame is is_frame, "only a frame that restores them is kept"
    assert unpack_calls(tuple(map(without_arguments, calls)), packed) == calls


@pytest.mark.promise("held-calls-bounded")
def test_a_request_of_a_server_gets_its_arguments_back() -> None:
    calls, frame = _several("elicitation/create", {"id": 1, **REQUEST})
    packed = pack_calls(calls[:1], LARGE, frame)
    assert packed == PackedCall(frame, is_frame=True)
    assert unpack_calls((without_arguments(calls[0]),), packed) == calls[:1]
