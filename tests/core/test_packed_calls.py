"""Large held calls are judged again with exactly the arguments that were judged first."""

import json
from typing import Any

import pytest

from thoughtgate.core.known_tools import hash_of
from thoughtgate.core.packed_calls import (
    SPENT,
    PackedCall,
    pack_call,
    unpack_call,
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
    ],
)
def test_a_packed_call_gets_its_arguments_back(method: str, frame: bytes, is_frame: bool) -> None:
    call = _call(method)

    packed = pack_call(call, LARGE, frame)

    assert packed is not None
    assert packed.is_frame is is_frame
    assert not is_frame or packed.data is frame
    bare = without_arguments(call)
    assert (bare.arguments, bare.extra) == ({}, None)
    assert unpack_call(bare, packed) == call


def test_small_calls_and_those_without_a_digest_are_not_packed() -> None:
    assert pack_call(_call(), MAX_PARSED, _frame()) is None
    assert pack_call(_call(args_hash=""), LARGE, _frame()) is None


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
    assert unpack_call(without_arguments(_call()), packed) is None
