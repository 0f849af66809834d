"""Log lines of the hub."""

import json
import logging
import os
from pathlib import Path
from typing import Any

from thoughtgate.hub.log import LogBridge, open_log
from thoughtgate.policy.redaction import Redactor
from thoughtgate.telemetry.logs import Log


def lines_of(path: Path, level: str) -> list[dict[str, Any]]:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    log = Log("serve", level=level, form="json", redactor=Redactor(), descriptor=descriptor)
    bridge = LogBridge(log)
    for number, text in ((10, "details"), (20, "news"), (30, "trouble"), (40, "failure")):
        record = logging.LogRecord("x", number, "", 0, text, (), None)
        record.server = "one"
        record.id = 7
        record.other = "hidden"
        bridge.emit(record)
    os.close(descriptor)
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_carry_level_and_server(tmp_path: Path) -> None:
    lines = lines_of(tmp_path / "log", "debug")

    assert [line["level"] for line in lines] == ["debug", "info", "warn", "error"]
    assert {line["server_id"] for line in lines} == {"one"}
    assert {line["message_id"] for line in lines} == {7}
    assert "server" not in lines[0]
    assert "other" not in lines[0]


def test_what_is_below_the_level_is_not_written(tmp_path: Path) -> None:
    assert [line["message"] for line in lines_of(tmp_path / "log", "warn")] == [
        "trouble",
        "failure",
    ]


def test_the_standard_logger_is_bridged_once() -> None:
    logger = logging.getLogger("thoughtgate")
    before = logger.handlers, logger.propagate, logger.level
    try:
        open_log("warning", "human", Redactor())
        open_log("debug", "human", Redactor())

        assert len(logger.handlers) == 1
        assert logger.level == logging.DEBUG
    finally:
        logger.handlers, logger.propagate = before[0], before[1]
        logger.setLevel(before[2])
