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

CONTRACT: Final = "1.3"
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

MAX_KEPT: Final = 4096
"""Cached line beginnings, several per session; bounded because sessions come and go."""

MAX_SESSIONS: Final = 10_000
"""Sessions whose agents are known: as many as a listener accepts."""

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
    calls_prefix: str = ""
    """What the ids of calls begin with, if it is not the run id: several gates may share one."""


class SessionPeers:
    """What is known about the agent of each session, for the envelopes of one run."""

    def __init__(self) -> None:
        self._facts: dict[str, dict[str, str]] = {}
        self._envelopes: list[Envelope] = []

    def add(self, envelope: "Envelope") -> None:
        """Notify an envelope of changes from now on."""
        self._envelopes.append(envelope)

    def introduce(self, session: str, facts: dict[str, str]) -> None:
        """Add facts about the agent of a session; those without a value are left out."""
        before = self._facts.get(session)
        known = {**(before or {}), **{name: value for name, value in facts.items() if value}}
        if known == before:
            return
        if before is None and len(self._facts) >= MAX_SESSIONS:
            del self._facts[next(iter(self._facts))]
        self._facts[session] = known
        for envelope in self._envelopes:
            envelope.forget(session)

    def rendered(self, session: str) -> str:
        """Return the facts as a further member of a line; empty if there are none."""
        known = self._facts.get(session)
        return f',"peer":{dump_json(known)}' if known else ""


class Envelope:
    """Adds the envelope and the sequence number to each event of one run."""

    def __init__(self, run: Run, stream: str = "", peers: SessionPeers | None = None) -> None:
        """Number the events of a run; ``stream`` names a second series of them."""
        self._peers = peers or SessionPeers()
        self._peers.add(self)
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
        """The parts that lines of a type, server and session share: before and after the time, and
        after the sequence number."""

    def wrap(self, record: Record) -> bytes:
        """Return the line of an event without its chain and closing brace."""
        return self.wrap_all((record,))[0]

    def wrap_all(
        self, records: Iterable[Record], dump: Callable[[Any], bytes] = dump_bytes
    ) -> list[bytes]:
        """Return the lines of events without their chains and closing braces.

        ``dump`` may be a faster encoder of the same JSON, if one is loaded; it may reject unusual
        values with a TypeError.
        """
        lines = []
        for kind, at, server, session, body in records:
            self.seq += 1
            parts = self._parts.get((kind, server, session))
            before, between, after = parts or self._keep(kind, server, session)
            if at != self._at:
                self._at = at
                self._tell_time(int(at * 1000))
            try:
                members = dump(body)
            except TypeError:
                # Integers beyond 64 bits and lone surrogates, which arguments may hold.
                members = dump_bytes(body)
            comma = b"," if body else b""
            said = (before, self._time, between, self.seq, after, comma, members[1:-1])
            lines.append(b"%b%b%b%d%b%b%b" % said)
        return lines

    def _tell_time(self, moment: int) -> None:
        second, milli = divmod(moment, 1000)
        if second != self._second:
            self._second, self._stamp = second, _stamp(second).encode()
        self._time = b"%b.%03dZ" % (self._stamp, milli)

    def _keep(self, kind: str, server: str, session: str) -> tuple[bytes, bytes, bytes]:
        if len(self._parts) >= MAX_KEPT:
            self._parts.clear()
        parts = (
            _encoded(f'{{"v":"{CONTRACT}","type":"{kind}","ts":"'),
            _encoded(f'",{self._identity},"session_id":{dump_json(session)},"seq":'),
            _encoded(f',"server_name":{dump_json(server)}{self._peers.rendered(session)}'),
        )
        self._parts[kind, server, session] = parts
        return parts

    def forget(self, session: str) -> None:
        """Render the beginnings of a session's lines again: its agent has introduced itself."""
        for known in [known for known in self._parts if known[2] == session]:
            del self._parts[known]


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
