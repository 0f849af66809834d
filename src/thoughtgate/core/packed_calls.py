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
from thoughtgate.wire.methods import GATED
from thoughtgate.wire.packed_message import MAX_PARSED


class PackedCall(NamedTuple):
    """What is needed to restore the arguments of a held call."""

    data: bytes
    """The request's frame; or the arguments and the extra params, if there is no frame."""
    is_frame: bool


SPENT: Final = PackedCall(b"", is_frame=True)
"""In place of the arguments of a call that was decided: it cannot be judged again."""


def pack_call(call: Call, size: int, frame: bytes) -> PackedCall | None:
    """Return the packed form of a call; None if it stays as it is."""
    if size <= MAX_PARSED or not call.args_hash:
        return None
    # Other methods name their targets in members that ``serve`` rewrites.
    if frame and call.method in GATED:
        return PackedCall(frame, is_frame=True)
    return PackedCall(json.dumps([call.arguments, call.extra]).encode(), is_frame=False)


def without_arguments(call: Call) -> Call:
    """Return a call without what its packed form holds."""
    return call._replace(arguments={}, extra=None)


def unpack_call(call: Call, packed: PackedCall) -> Call | None:
    """Return a call with its arguments; None if they are not those that were judged first."""
    try:
        arguments, extra = _read(call.method, packed)
        digest = sha256(canonical_quickly(arguments).encode()).hexdigest()
    except (NotCanonical, ValueError):
        return None
    if digest != call.args_hash or (hash_of(extra) if extra else "") != call.extra_hash:
        return None
    return call._replace(arguments=arguments, extra=extra)


def _read(method: str, packed: PackedCall) -> tuple[dict[str, Any], dict[str, Any] | None]:
    said = json.loads(packed.data)
    if not packed.is_frame:
        arguments, extra = said
        return arguments, extra
    params = said.get("params") or {}
    return params.get("arguments") or {}, extra_params(method, params)
