"""How a gate speaks to its operator: plain words on stderr, or JSON where the config asks for it.

With ``log_format: json`` every line on stderr is one JSON object, what happens and what the
gate itself has to say alike, so that a collector need not guess.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from thoughtgate.core.record_events import (
    CALL_DECISION,
    FRAME_REFUSED,
    SERVER_EXITED,
    SERVER_STARTED,
    Record,
)
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.poll_loop import complain
from thoughtgate.policy.call import PRODUCTION

if TYPE_CHECKING:
    from thoughtgate.telemetry.logs import Log


def report_unenforced(record: Record) -> None:
    """Say on stderr what the production profile would have refused."""
    if record.type == CALL_DECISION and "outcome" in record.body["decision"]:
        decision, call = record.body["decision"], record.body["call"]
        kind = decision["explain"]["reason_code"].lower()
        complain(f"{decision['outcome']}: {call['tool_name']!r}, {decision['gate']} gate, {kind}")
    elif record.type == FRAME_REFUSED and "outcome" in record.body["frame"]:
        frame = record.body["frame"]
        complain(f"{frame['outcome']}: a frame {frame['direction']}, {frame['check']}")


def report_all(record: Record) -> None:
    """Say on stderr what would have been refused, and when a server starts or ends."""
    report_unenforced(record)
    if record.type == SERVER_STARTED:
        complain(f"server {record.server!r} is running (pid {record.body['server']['pid']})")
    elif record.type == SERVER_EXITED:
        complain(f"server {record.server!r} is down: {record.body['server']['reason']}")


def operator_log(
    component: str, loaded: Loaded, plain: Callable[[Record], None] = report_unenforced
) -> Callable[[Record], None] | None:
    """Return what tells the operator of records: as JSON where the config asks for it, else in words."""
    log = json_log(component, loaded)
    if log is None and plain is report_unenforced and loaded.policy.profile == PRODUCTION:
        return None  # Production refuses, so there is nothing to say, and no call is slowed down.
    return log or plain


def json_log(component: str, loaded: Loaded) -> Callable[[Record], None] | None:
    """Return what logs records on stderr as JSON; None where the config does not ask for it."""
    log = _open_log(component, loaded)
    return log.record if log is not None else None


def operator_messages(
    component: str,
    loaded: Loaded,
    plain: Callable[[str], None] = complain,
    *,
    level: str = "info",
) -> Callable[[str], None]:
    """Return how to tell the operator something: ``plain``, or a JSON line of this level."""
    log = _open_log(component, loaded)
    return plain if log is None else lambda text: log.say(level, text)


def _open_log(component: str, loaded: Loaded) -> "Log | None":
    wanted = loaded.settings.telemetry
    if wanted.log_format != "json":
        return None
    from thoughtgate.telemetry.logs import JSON, Log  # only who asks for it pays for it

    return Log(component, level=wanted.log_level, form=JSON, redactor=loaded.policy.redactor)
