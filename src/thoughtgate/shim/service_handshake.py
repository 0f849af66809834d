"""How a shim finds the governance service of its run and opens a session with it.

Kept small because every shim under ``wrap`` loads it. Later requests are made by
``shim.service_authority``.
"""

import json
import os
import select
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from thoughtgate.core.commands import CONTENT_SEEN, InspectLater
from thoughtgate.core.events import Event
from thoughtgate.core.record_events import Record
from thoughtgate.errors import PeerGone, UsageError
from thoughtgate.gate.clock import monotonic
from thoughtgate.gate.run_file import RunFile, find_run_file, has_ended, run_path, variables_of
from thoughtgate.policy.call import INSPECT_AFTER, INSPECT_BEFORE, PRODUCTION
from thoughtgate.shim.service_connection import Link

if TYPE_CHECKING:
    from thoughtgate.telemetry.logs import Log

EVALUATE_S: Final = 2.0
"""Timeout of a request for a verdict (F-016b)."""

FIRST_WAIT_S: Final = 0.05
LONGEST_WAIT_S: Final = 2.0
ATTEMPTS: Final = 20
"""Attempts to reach a service that is still starting (F-016a)."""

SUCCESS: Final = 200

UNRECORDED: Final = "record"
"""The gate that the service names if it refuses a call because its verdict cannot be recorded."""

MAX_UNSENT: Final = 1_000_000
"""Bytes of messages that may wait to be sent for inspection; beyond this, they are only counted."""

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_PARTS: Final = 3  # of a finding: check, tier, place

Reply: TypeAlias = dict[str, Any] | None
"""The service's reply to a request; None if there is none, or not a valid one."""

TOKEN_VARIABLE: Final = "THOUGHTGATE_GOVERNANCE_TOKEN"  # noqa: S105 - the name, not the token


def find_run(key: str, endpoint: str, environ: Mapping[str, str]) -> RunFile:
    """Return where the service is: the given endpoint, else the address in the run file.

    Raises:
        UsageError: the run file or the endpoint is invalid.
    """
    if not endpoint:
        return find_run_file(run_path(key, environ))
    # Loopback only: the token and the arguments of calls would be sent unencrypted.
    host, _, port = endpoint.removeprefix("http://").rstrip("/").rpartition(":")
    if host not in {"127.0.0.1", "localhost"} or not port.isdigit():
        raise UsageError("--governance-endpoint is http://127.0.0.1:PORT")
    token = environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise UsageError(f"--governance-endpoint needs {TOKEN_VARIABLE}")
    return RunFile("127.0.0.1", int(port), token, PRODUCTION, 0)


def server_variables(run: RunFile, entry: str) -> dict[str, str]:
    """Return the variables of an entry's server that the run file holds.

    Raises:
        UsageError: the server must not start, because its variables are not known.
    """
    if not entry:
        return {}
    return variables_of(
        run.entries.get(entry, {"problem": "the run does not know this entry; start it again"})
    )


def open_session(run: RunFile, server: str, command: tuple[str, ...] = ()) -> dict[str, Any]:
    """Wait until the service is healthy, because it may still be starting, then open a session.

    Raises:
        PeerGone: the service does not answer, or its process has ended.
    """
    wait_s = FIRST_WAIT_S
    for _ in range(ATTEMPTS):
        status, _ = exchange(run, "GET", "/healthz", b"")
        if status or has_ended(run.pid):
            break
        time.sleep(wait_s)
        wait_s = min(wait_s * 2, LONGEST_WAIT_S)
    # The command line distinguishes servers with the same id; the service keeps a digest of it.
    hello = {"server_id": server, "hello": True, "pid": os.getpid(), "command": command}
    reply = read_object(*exchange(run, "POST", "/governance/heartbeat", json.dumps(hello).encode()))
    if reply is None:
        raise PeerGone(
            "the governance service does not answer; start the agent through `thoughtgate wrap`, "
            "or put its config back with `thoughtgate unwrap`"
        )
    return reply


def exchange(run: RunFile, method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """Send one request and wait for its reply; status 0 if there is none."""
    said: list[tuple[int, bytes]] = []

    def answer(status: int, reply: bytes) -> list[Event]:
        said.append((status, reply))
        return []

    link = Link(run.host, run.port, run.token)
    deadline = monotonic() + EVALUATE_S
    link.request(method, path, body, answer, deadline)
    while not said and monotonic() < deadline:
        wait_on(link, deadline)
    link.close()
    return said[0] if said else (0, b"")


def wait_on(link: Link, deadline: float) -> None:
    """Drive one connection until it has an event or the deadline passes."""
    if link.descriptor < 0:
        link.fail()
        return
    poll = select.poll()
    poll.register(link.descriptor, link.mask)
    for _, mask in poll.poll(max(0.0, deadline - monotonic()) * 1000):
        link.ready(mask)


def read_object(status: int, body: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a successful reply; None for everything else."""
    if status != SUCCESS:
        return None
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def text_in(reply: Reply, key: str) -> str:
    """Return a text of a reply; empty if there is none."""
    value = reply.get(key) if reply is not None else None
    return value if isinstance(value, str) else ""


def findings_in(reply: Reply) -> tuple[tuple[str, str, str], ...]:
    """Return what the content checks found: the check, tier and place of each finding."""
    told = (reply or {}).get("findings")
    listed = told if isinstance(told, list) else []
    return tuple((str(one[0]), str(one[1]), str(one[2])) for one in listed if len(one) == _PARTS)


def open_log(reply: dict[str, Any]) -> "Log | None":
    """Return the configured log; None for plain text."""
    if text_in(reply, "log_format") != "json":
        return None
    from thoughtgate.telemetry.logs import INFO, JSON, Log  # costs memory, so only if needed

    return Log("shim", level=text_in(reply, "log_level") or INFO, form=JSON)


def is_recorded(reply: Reply) -> bool:
    """Tell whether the service could record its verdict."""
    return bool(text_in(reply, "call_id")) and text_in(reply, "gate") != UNRECORDED


def inspection_in(reply: dict[str, Any]) -> int:
    """Return when the service wants the answer to a call inspected."""
    when = reply.get("inspect")
    return INSPECT_BEFORE if when is True else INSPECT_AFTER if when == "after" else 0


def content_seen(
    command: InspectLater, server: str, session: str, unsent: int
) -> tuple[Record, int]:
    """Return the event for a message to inspect, and how many of the message's bytes are in it."""
    body: dict[str, Any] = {"call_id": command.call_id, "size": command.size}
    size = command.size if unsent + command.size <= MAX_UNSENT else 0
    if size:
        body["body"] = command.body
    return Record(CONTENT_SEEN, command.at, server, session, body), size


def seen_bytes(records: Iterable[Record]) -> int:
    """Return the number of bytes of the messages that some events contain."""
    return sum(
        one.body["size"] for one in records if one.type == CONTENT_SEEN and "body" in one.body
    )


def as_body(value: dict[str, Any]) -> bytes:
    """Return a request's body; strings from argv or a frame may hold lone surrogates."""
    return _encode(value).encode("utf-8", "surrogatepass")
