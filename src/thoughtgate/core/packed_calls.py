"""Large calls that wait for a person: only their frame stays in memory, and is parsed again.

A parsed call can take twenty times the memory of its frame. The session and the judge share the
frame, so a held call costs little more than its bytes. Calls of common size stay parsed.
"""

import json
from hashlib import sha256
from typing import Any, Final, NamedTuple

from thoughtgate.core.known_tools import hash_of
from thoughtgate.policy.call import Call
from thoughtgate.wire.canonical import NotCanonical
from thoughtgate.wire.extra_params import extra_params
from thoughtgate.wire.fast_frame import canonical_quickly
from thoughtgate.wire.methods import (
    INPUT_REQUIRED,
    SERVER_REQUESTS,
    input_requests,
    named_by,
    named_by_server,
    named_in_requests,
)
from thoughtgate.wire.packed_message import MAX_PARSED


class PackedCall(NamedTuple):
    """What is needed to restore the arguments of everything that a held request names."""

    data: bytes
    """The request's frame, or the message that carries a server's requests; or the arguments and
    the extra params, if there is no frame."""
    is_frame: bool


SPENT: Final = PackedCall(b"", is_frame=True)
"""In place of the arguments of a call that was decided: it cannot be judged again."""


def pack_calls(calls: tuple[Call, ...], size: int, frame: bytes) -> PackedCall | None:
    """Return the packed form of what a request names; None if it stays as it is."""
    if size <= MAX_PARSED or not all(call.args_hash for call in calls):
        return None
    if frame:
        packed = PackedCall(frame, is_frame=True)
        # ``serve`` rewrites members in which some methods name their targets.
        if unpack_calls(tuple(map(without_arguments, calls)), packed) is not None:
            return packed
    said = [[call.arguments for call in calls], calls[0].extra]
    return PackedCall(json.dumps(said).encode(), is_frame=False)


def without_arguments(call: Call) -> Call:
    """Return a call without what its packed form holds."""
    return call._replace(arguments={}, extra=None)


def unpack_calls(calls: tuple[Call, ...], packed: PackedCall) -> tuple[Call, ...] | None:
    """Return calls with their arguments; None if they are not those that were judged first."""
    try:
        said, extra = _read(calls[0].method, packed)
        digests = [sha256(canonical_quickly(one).encode()).hexdigest() for one in said]
    except (NotCanonical, ValueError):
        return None
    if digests != [call.args_hash for call in calls]:
        return None
    extra_hash = hash_of(extra) if extra else ""
    if any(call.extra_hash != extra_hash for call in calls):
        return None
    pairs = zip(calls, said, strict=True)
    return tuple(call._replace(arguments=one, extra=extra) for call, one in pairs)


def _read(method: str, packed: PackedCall) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Return the arguments of everything that a request names, and its extra params."""
    body = json.loads(packed.data)
    if not packed.is_frame:
        arguments, extra = body
        return arguments, extra
    params = body.get("params") or {}
    if method == INPUT_REQUIRED:
        # In the params of a notification, or anywhere in a response.
        named = named_in_requests(input_requests(params if "method" in body else body))
        params = {}
    elif method in SERVER_REQUESTS:
        named = named_by_server(method, params)
    else:
        named = named_by(method, params)
    arguments = [] if isinstance(named, str) else [one.arguments for one in named]
    return arguments, extra_params(method, params)
