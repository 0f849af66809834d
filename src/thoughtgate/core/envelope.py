"""From a record to a line: the envelope every event has, its place in the run, the chain.

A line is one JSON object. Its last member, ``chain``, is the SHA-256 over the chain of the
line before it and everything of this line that stands before the member. Editing, removing
or moving a line therefore breaks the chain at a position that ``audit verify`` can name.
"""

import hashlib
import json
from collections.abc import Callable
from time import gmtime
from typing import Any, Final, NamedTuple

from thoughtgate.core.record import Record
from thoughtgate.wire.frame import escape_separators

CONTRACT: Final = "1.0"
"""Version of the record's contract. New members and types raise the minor number."""

GENESIS: Final = "0" * 64
"""The chain before the first line of a record."""

CHAIN_MEMBER: Final = ',"chain":"'
_CHAIN_TAIL: Final = len(CHAIN_MEMBER) + 64 + len('"}')

MAX_QUOTED: Final = 1024
"""Ids kept in their quoted form; sessions come and go."""

UNKNOWN: Final = "unknown"
CLIENTS: Final = frozenset({"claude", "codex", "headless", "custom"})
ENVIRONMENTS: Final = frozenset({"dev", "ci", "prod"})

dump_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class Run(NamedTuple):
    """Who records: the identity that every event of a run carries."""

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
    """Gives each record of one run its envelope and its sequence number."""

    def __init__(self, run: Run) -> None:
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
        if run.principal:
            identity["principal"] = run.principal
        if run.workload:
            identity["workload"] = run.workload
        self._identity = dump_json(identity)[1:-1]
        self._second = -1
        self._stamp = ""
        self._quoted: dict[str, str] = {}

    def wrap(self, record: Record, dump: Callable[[Any], str] = dump_json) -> str:
        """Return the line of a record but for its chain and the closing brace.

        ``dump`` may be a faster encoder of the same JSON, where one is loaded.
        """
        self.seq += 1
        body = dump(record.body)
        members = f",{body[1:-1]}" if record.body else ""
        return (
            f'{{"v":"{CONTRACT}","type":"{record.type}","ts":"{self._time(record.at)}",'
            f'{self._identity},"session_id":{self._quote(record.session)},"seq":{self.seq},'
            f'"server_name":{self._quote(record.server)}{members}'
        )

    def _quote(self, text: str) -> str:
        """Quote an id; the same few come again and again."""
        quoted = self._quoted.get(text)
        if quoted is None:
            if len(self._quoted) >= MAX_QUOTED:
                self._quoted.clear()
            quoted = self._quoted[text] = dump_json(text)
        return quoted

    def _time(self, at: float) -> str:
        second, milli = divmod(int(at * 1000), 1000)
        if second != self._second:
            self._second = second
            self._stamp = _stamp(second)
        return f"{self._stamp}.{milli:03d}Z"


def _stamp(second: int) -> str:
    when = gmtime(second)
    return (
        f"{when.tm_year:04d}-{when.tm_mon:02d}-{when.tm_mday:02d}"
        f"T{when.tm_hour:02d}:{when.tm_min:02d}:{when.tm_sec:02d}"
    )


def render_time(at: float) -> str:
    """Return a time as the record writes it: UTC, milliseconds, ``Z``."""
    second, milli = divmod(int(at * 1000), 1000)
    return f"{_stamp(second)}.{milli:03d}Z"


def seal(opened: str, previous: str) -> tuple[bytes, str]:
    """Close a line with its chain; return the bytes with LF, and the chain for the next line."""
    # A line for every reader: nobody's words may begin another one.
    data = escape_separators(opened.encode("utf-8", "backslashreplace"))
    chain = hashlib.sha256(previous.encode() + data).hexdigest()
    return b'%b,"chain":"%b"}\n' % (data, chain.encode()), chain


def stated_chain(line: bytes) -> tuple[bytes, str] | None:
    """Split a line (without LF) into what its chain covers and the chain it states."""
    covered, tail = line[:-_CHAIN_TAIL], line[-_CHAIN_TAIL:]
    text = tail.decode("ascii", "replace")
    if not text.startswith(CHAIN_MEMBER) or not text.endswith('"}'):
        return None
    return covered, text[len(CHAIN_MEMBER) : -2]


def expected_chain(covered: bytes, previous: str) -> str:
    """Return the chain that a line must state after ``previous``."""
    return hashlib.sha256(previous.encode() + covered).hexdigest()
