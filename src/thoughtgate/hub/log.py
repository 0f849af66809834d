"""The hub's log lines: from the standard logger to stderr, as JSON or for people."""

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
"""What a line tells beside its message, with the name it has in every component's lines."""

_LOGGER: Final = "thoughtgate"


class LogBridge(logging.Handler):
    """Writes what is logged through the gate's own log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; a failure to log is never a failure of the hub."""
        fields: dict[str, Any] = {
            shown: getattr(record, name) for name, shown in _SHOWN.items() if hasattr(record, name)
        }
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = type(record.exc_info[1]).__name__
        self._log.say(_level(record.levelno), record.getMessage(), record.created, **fields)


def open_log(level: str, form: str, redactor: Redactor) -> Log:
    """Begin to log on stderr, at this level and in this form."""
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
