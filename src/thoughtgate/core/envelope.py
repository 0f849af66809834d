"""Envelope of a record event: renders a line with its sequence number and hash chain.

A line is one JSON object. Its last member, ``chain``, is the SHA-256 of the previous line's
chain and everything before the member in this line. Editing, removing or moving a line
therefore breaks the chain at a position that ``audit verify`` can report.
"""

import json
from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import sha256
from time import gmtime, strftime
from typing import Any, Final, NamedTuple

from thoughtgate.core.record_events import Record
from thoughtgate.wire.frame import escape_separators

CONTRACT: Final = "1.1"
"""Version of the record format. New members and types raise the minor number."""

TRAFFIC: Final = "traffic"
"""The stream of events that are not about calls, if they have a file of their own."""

TRAFFIC_LINE: Final = f'"stream":"{TRAFFIC}"'.encode()
"""Marks the lines of that stream; a value in a line cannot contain it, since quotes are escaped."""

GENESIS: Final = "0" * 64
"""The chain value before the first line of a record."""

CHAIN_MEMBER: Final = ',"chain":"'
_CHAIN_TAIL: Final = len(CHAIN_MEMBER) + 64 + len('"}')
_CHAIN_BEGINS: Final = CHAIN_MEMBER.encode()
_LINE_ENDS: Final = b'"}\n'

MAX_KEPT: Final = 1024
"""Cached line beginnings; bounded because sessions come and go."""

UNKNOWN: Final = "unknown"
CLIENTS: Final = frozenset({"claude", "codex", "headless", "custom"})
ENVIRONMENTS: Final = frozenset({"dev", "ci", "prod"})

dump_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dump_bytes(value: Any) -> bytes:
    """Render JSON as UTF-8, including lone surrogates, which arguments may hold."""
    return _encoded(dump_json(value))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


class Run(NamedTuple):
    """The identity that every event of a run carries."""

    run_id: str
    agent_id: str = UNKNOWN
    client: str = UNKNOWN
    env: str = UNKNOWN
    host_id: str = ""
    proc_id: str = ""
    shim_id: str = ""
    principal: str = ""
    workload: dict[str, Any] | None = None
    profile: str = "production"


class Envelope:
    """Adds the envelope and the sequence number to each event of one run."""

    def __init__(self, run: Run, stream: str = "") -> None:
        """Number the events of a run; ``stream`` names a second series of them."""
        self.run = run
        self.seq = 0
        identity: dict[str, Any] = {
            "run_id": run.run_id,
            "agent_id": run.agent_id,
            "client": run.client,
            "env": run.env,
            "source": {"host_id": run.host_id, "proc_id": run.proc_id, "shim_id": run.shim_id},
            "profile": run.profile,
        }
        if stream:
            identity["stream"] = stream
        if run.principal:
            identity["principal"] = run.principal
        if run.workload:
            identity["workload"] = run.workload
        self._identity = dump_json(identity)[1:-1]
        self._at: float | None = None
        self._time = b""
        """The time of the last line, and its rendering."""
        self._second = -1
        self._stamp = b""
        self._parts: dict[tuple[str, str, str], tuple[bytes, bytes, bytes]] = {}
        """The parts that lines of a type, session and server share: before and after the time, and after
        the sequence number."""

    def wrap(self, record: Record, dump: Callable[[Any], bytes] = dump_bytes) -> bytes:
        """Return the line of an event without its chain and closing brace.

        ``dump`` may be a faster encoder of the same JSON, if one is loaded; it may reject unusual
        values with a TypeError.
        """
        self.seq += 1
        kind, at, server, session, body = record
        parts = self._parts.get((kind, session, server))
        if parts is None:
            parts = self._keep(kind, session, server)
        if at != self._at:
            self._at = at
            self._tell_time(int(at * 1000))
        before, between, after = parts
        if not body:
            return b"%b%b%b%d%b" % (before, self._time, between, self.seq, after)
        try:
            members = dump(body)
        except TypeError:
            # Integers beyond 64 bits and lone surrogates, which arguments may hold.
            members = dump_bytes(body)
        return b"%b%b%b%d%b,%b" % (before, self._time, between, self.seq, after, members[1:-1])

    def _tell_time(self, moment: int) -> None:
        second, milli = divmod(moment, 1000)
        if second != self._second:
            self._second, self._stamp = second, _stamp(second).encode()
        self._time = b"%b.%03dZ" % (self._stamp, milli)

    def _keep(self, kind: str, session: str, server: str) -> tuple[bytes, bytes, bytes]:
        if len(self._parts) >= MAX_KEPT:
            self._parts.clear()
        parts = (
            _encoded(f'{{"v":"{CONTRACT}","type":"{kind}","ts":"'),
            _encoded(f'",{self._identity},"session_id":{dump_json(session)},"seq":'),
            _encoded(f',"server_name":{dump_json(server)}'),
        )
        self._parts[kind, session, server] = parts
        return parts


@lru_cache(maxsize=8)  # nearly all times are of the current second
def _stamp(second: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(second))


def render_time(at: float) -> str:
    """Return a time in the record's format: UTC, milliseconds, ``Z``."""
    second, milli = divmod(int(at * 1000), 1000)
    return f"{_stamp(second)}.{milli:03d}Z"


def seal(opened: bytes, previous: str) -> tuple[bytes, str]:
    """Complete a line with its chain; return the bytes with LF, and the chain for the next line."""
    return seal_all((opened,), previous)


def seal_all(lines: Iterable[bytes], previous: str) -> tuple[bytes, str]:
    """Complete consecutive lines; return all of them, and the chain for the next line."""
    parts: list[bytes] = []
    chain = previous.encode()
    for opened in lines:
        # Some readers also split lines at U+2028 and the like, so these are escaped in values.
        data = opened if opened.isascii() else escape_separators(opened)
        chain = sha256(chain + data).hexdigest().encode()
        parts += (data, _CHAIN_BEGINS, chain, _LINE_ENDS)
    return b"".join(parts), chain.decode()


def stated_chain(line: bytes) -> tuple[bytes, str] | None:
    """Split a line (without LF) into the part that its chain covers and the chain that it states."""
    covered, tail = line[:-_CHAIN_TAIL], line[-_CHAIN_TAIL:]
    text = tail.decode("ascii", "replace")
    if not text.startswith(CHAIN_MEMBER) or not text.endswith('"}'):
        return None
    return covered, text[len(CHAIN_MEMBER) : -2]


def expected_chain(covered: bytes, previous: str) -> str:
    """Return the chain that a line must state after ``previous``."""
    return sha256(previous.encode() + covered).hexdigest()
