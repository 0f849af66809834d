"""The hub's log: from the standard logger to stderr, as JSON or as text."""

import logging
from typing import Any, Final

from thoughtgate.policy.redaction import Redactor
from thoughtgate.telemetry.logs import DEBUG, ERROR, INFO, WARN, Log

_SHOWN: Final = {
    "server": "server_id",
    "method": "method",
    "tool": "tool",
    "id": "message_id",
    "reason": "reason",
}
"""Extra fields of a log line, with the names that all components use for them."""

_LOGGER: Final = "thoughtgate"


class LogBridge(logging.Handler):
    """Writes records of the standard logger to the gate's own log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        fields: dict[str, Any] = {
            shown: getattr(record, name) for name, shown in _SHOWN.items() if hasattr(record, name)
        }
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = type(record.exc_info[1]).__name__
        self._log.say(_level(record.levelno), record.getMessage(), record.created, **fields)


def open_log(level: str, form: str, redactor: Redactor) -> Log:
    """Start logging to stderr, at this level and in this format."""
    log = Log("serve", level=level, form=form, redactor=redactor)
    logger = logging.getLogger(_LOGGER)
    logger.handlers = [LogBridge(log)]
    logger.propagate = False
    logger.setLevel(logging.DEBUG if level == DEBUG else logging.INFO)
    return log


def _level(number: int) -> str:
    if number >= logging.ERROR:
        return ERROR
    if number >= logging.WARNING:
        return WARN
    return INFO if number >= logging.INFO else DEBUG
