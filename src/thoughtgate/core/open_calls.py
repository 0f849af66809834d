"""Requests that are judged, and the calls that are open: forwarded or waiting for a person.

Of a large call that waits for a person, only the frame stays in memory, and is parsed again: a
parsed call can take twenty times the memory. The session and the judge share the frame, so a held
call costs little more than its bytes. Calls of common size stay parsed.
"""

import json
from hashlib import sha256
from typing import Any, Final, NamedTuple

from thoughtgate.core.known_tools import hash_of
from thoughtgate.core.record_events import Record
from thoughtgate.policy.call import Call, Verdict
from thoughtgate.wire.canonical import NotCanonical
from thoughtgate.wire.extra_params import extra_params
from thoughtgate.wire.fast_frame import canonical_quickly
from thoughtgate.wire.message import Json, RequestId
from thoughtgate.wire.methods import (
    INPUT_REQUIRED,
    SERVER_REQUESTS,
    Named,
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
"""Replaces the arguments of a call that was decided, which is never judged again."""


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


def in_full(calls: tuple[Call, ...]) -> list[Any]:
    """Return the things that a request names, as the reviewer sees them."""
    return [
        {"name": call.name, "arguments": call.arguments} if call.arguments else call.name
        for call in calls
    ]


_NOTHING: Final[dict[str, Json]] = {}
"""The annotations and the definition of a tool that its server has not listed."""


class CallRequest(NamedTuple):
    """A request that needs a verdict, with its principal and its origin."""

    server: str
    session: str
    principal: str
    method: str
    named: tuple[Named, ...]
    size: int
    transport: str
    at: float
    params: dict[str, Json] = _NOTHING
    """The request's params: what they carry beyond ``named`` is bound and recorded, not judged."""
    trace: str = ""
    """The caller's W3C ``traceparent`` if the transport carries it, as HTTP does."""
    claims: dict[str, Any] | None = None
    """The principal's claims from authentication."""
    must_hold: bool = False
    """Whether its caller was told that a person decides: then it is held even if the rules forward
    it."""
    listed: str = ""
    """Whether the gate has fetched the server's tools for this request; see ``JudgeCall``."""
    frame: bytes = b""
    """The request as it was received, if this process also holds it; see ``pack``."""
    client: str = ""
    """Name and version of the agent's client, as it gave them in its handshake."""
    address: str = ""
    """The address of the client, if it came over HTTP."""
    session_name: str = ""
    """The name of an HTTP session that other gates know too."""
    message_id: RequestId | None = None
    """The id that the agent gave its request."""


class Ruling(NamedTuple):
    """A verdict on a request, with the events that must be recorded before it takes effect."""

    verdict: Verdict
    call_id: str
    records: tuple[Record, ...]


class OpenCall(NamedTuple):
    """A call that has a first verdict and has not ended."""

    call: Call
    verdict: Verdict
    at: float
    calls: tuple[Call, ...] = ()
    """For a held call: everything that the request names, each as a call of its own."""
    approval_id: str = ""
    """For a held call: the id of its approval request."""
    size: int = 0
    frame: bytes = b""
    packed: PackedCall | None = None
    """For a large held call whose approval was requested: its arguments."""
    client: str = ""
    """For a held call: what the agent's client says it is. Nothing vouches for that."""
    answers: str = ""
    """For a held result: the id of the call that it answers."""
    session_name: str = ""  # as in ``CallRequest``
    definitions: tuple[str, ...] = ()
    """For a held call: the definition of each of ``calls`` that the server had listed last."""
