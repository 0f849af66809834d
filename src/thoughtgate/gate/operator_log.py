"""Messages from a gate to its operator: plain text on stderr, or JSON if configured.

With ``log_format: json`` every line on stderr is a JSON object, whether it is an event or a
message of the gate itself, so that a log collector can parse all of them.
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
    """Write to stderr what the production profile would have refused."""
    if record.type == CALL_DECISION and "outcome" in record.body["decision"]:
        decision, call = record.body["decision"], record.body["call"]
        kind = decision["explain"]["reason_code"].lower()
        complain(f"{decision['outcome']}: {call['tool_name']!r}, {decision['gate']} gate, {kind}")
    elif record.type == FRAME_REFUSED and "outcome" in record.body["frame"]:
        frame = record.body["frame"]
        complain(f"{frame['outcome']}: a frame {frame['direction']}, {frame['check']}")


def report_all(record: Record) -> None:
    """Write to stderr what would have been refused, and when a server starts or exits."""
    report_unenforced(record)
    if record.type == SERVER_STARTED:
        complain(f"server {record.server!r} is running (pid {record.body['server']['pid']})")
    elif record.type == SERVER_EXITED:
        complain(f"server {record.server!r} is down: {record.body['server']['reason']}")


def operator_log(
    component: str, loaded: Loaded, plain: Callable[[Record], None] = report_unenforced
) -> Callable[[Record], None] | None:
    """Return the observer that reports events to the operator, as JSON if configured, else as text."""
    log = json_log(component, loaded)
    if log is None and plain is report_unenforced and loaded.policy.profile == PRODUCTION:
        return None  # Production refuses calls instead of reporting them, and an observer would slow them down.
    return log or plain


def json_log(component: str, loaded: Loaded) -> Callable[[Record], None] | None:
    """Return an observer that logs events on stderr as JSON; None if JSON is not configured."""
    log = _open_log(component, loaded)
    return log.record if log is not None else None


def operator_messages(
    component: str,
    loaded: Loaded,
    plain: Callable[[str], None] = complain,
    *,
    level: str = "info",
) -> Callable[[str], None]:
    """Return the function that logs a message: ``plain``, or one that writes JSON with this level."""
    log = _open_log(component, loaded)
    return plain if log is None else lambda text: log.say(level, text)


def _open_log(component: str, loaded: Loaded) -> "Log | None":
    wanted = loaded.settings.telemetry
    if wanted.log_format != "json":
        return None
    from thoughtgate.telemetry.logs import JSON, Log  # imported only if configured: it costs memory

    return Log(component, level=wanted.log_level, form=JSON, redactor=loaded.policy.redactor)
