"""Messages from a gate to its operator: plain text on stderr, or JSON if configured.

With ``log_format: json`` every line on stderr is a JSON object, whether it is an event or a
message of the gate itself, so that a log collector can parse all of them.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from thoughtgate.core.record_events import (
    CALL_DECISION,
    CONTENT_FOUND,
    FRAME_REFUSED,
    SERVER_EXITED,
    SERVER_RECOVERED,
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
    elif record.type == CONTENT_FOUND and "outcome" in record.body["content"]:
        content, call = record.body["content"], record.body["call"]
        found = ", ".join(f"{one['check']} at {one['where']}" for one in content["findings"][:5])
        complain(f"{content['outcome']}: {call['tool_name']!r}, contents gate, {found}")


def report_server(record: Record) -> None:
    """Write to stderr how the state of a server changed."""
    complain(f"server {record.server!r} {_server_text(record.type, record.body['server'])}")


def _server_text(event: str, facts: dict[str, Any]) -> str:
    if event == SERVER_STARTED:
        return f"is running (pid {facts['pid']})" if facts["pid"] else "is up"
    if event == SERVER_RECOVERED:
        return f"is back after {facts['down_s']:.0f} s"
    state = "down" if event == SERVER_EXITED else facts["state"]
    text = f"is {state}: {facts.get('reason', '')}"
    # A server that the gate stopped itself has no error kind.
    return f"{text} ({facts['kind']}, {facts['cause']})" if "kind" in facts else text


def operator_log(component: str, loaded: Loaded) -> Callable[[Record], None] | None:
    """Return the observer that reports events to the operator, as JSON if configured, else as text."""
    log = json_log(component, loaded)
    if log is None and loaded.policy.profile == PRODUCTION:
        return None  # Production refuses calls instead of reporting them, and an observer would slow them down.
    return log or report_unenforced


def server_log(loaded: Loaded) -> Callable[[Record], None] | None:
    """Return the function that reports changes of servers; None if the JSON log has them."""
    return None if loaded.settings.telemetry.log_format == "json" else report_server


def json_log(component: str, loaded: Loaded) -> Callable[[Record], None] | None:
    """Return an observer that logs events on stderr as JSON; None if JSON is not configured."""
    log = _open_log(component, loaded)
    return log.record if log is not None else None


def operator_events(
    component: str, loaded: Loaded, *, verbose: bool
) -> Callable[[Record], None] | None:
    """Return an observer that logs events on stderr: all of them if ``verbose``, else JSON or none."""
    if not verbose:
        return json_log(component, loaded)
    from thoughtgate.telemetry.logs import DEBUG, Log

    form = loaded.settings.telemetry.log_format
    return Log(component, level=DEBUG, form=form, redactor=loaded.policy.redactor).record


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
