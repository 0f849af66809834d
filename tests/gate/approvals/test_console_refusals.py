"""Refused requests of a console, on the record of its gate or on stderr."""

import asyncio
from typing import cast

import pytest
from tests.support.waiting import run_async

from thoughtgate.channels.answer_places import AnswerPlaces
from thoughtgate.core.record_events import Record
from thoughtgate.gate.approvals.console_refusals import ConsoleRefusals
from thoughtgate.gate.governor import Governor


class RecordSink:
    """A record in memory."""

    def __init__(self) -> None:
        self.noted: list[Record] = []
        self.written = 0
        self.answer_places = AnswerPlaces()

    def note(self, record: Record) -> None:
        self.noted.append(record)

    def flush_quietly(self) -> None:
        self.written = len(self.noted)


def test_without_a_gate_they_are_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    ConsoleRefusals()("wrong host", "/\x1b[2J" + "x" * 500)
    said = capsys.readouterr().err

    assert "wrong host" in said
    assert "\x1b" not in said
    assert len(said) < 250


def test_another_thread_reports_to_the_gates_record(capsys: pytest.CaptureFixture[str]) -> None:
    refusals, sink = ConsoleRefusals(), RecordSink()

    async def main() -> None:
        refusals.record_with(cast("Governor", sink))
        await asyncio.to_thread(refusals, "token expired", "/" + "x" * 500)
        await asyncio.sleep(0)

    run_async(main())
    (record,) = sink.noted
    assert record.type == "agent_auth_rejected"
    assert record.body["agent"]["method"] == "console"
    assert record.body["agent"]["reason"].startswith("token expired at /xxx")
    assert len(record.body["agent"]["reason"]) < 150
    assert sink.written == 1
    assert capsys.readouterr().err == ""


def test_nothing_is_recorded_after_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    refusals, sink = ConsoleRefusals(), RecordSink()

    async def main() -> None:
        refusals.record_with(cast("Governor", sink))
        refusals("token expired", "/")
        refusals.end()
        await asyncio.sleep(0)

    run_async(main())
    refusals("token expired", "/late")
    assert sink.noted == []
    assert "/late" in capsys.readouterr().err


@pytest.mark.parametrize("is_first", [True, False])
def test_the_gate_learns_where_its_console_is(is_first: bool) -> None:
    refusals, sink = ConsoleRefusals(), RecordSink()

    async def main() -> None:
        if is_first:
            refusals.console_opened("http://127.0.0.1:4000")
        refusals.record_with(cast("Governor", sink))
        if not is_first:
            refusals.console_opened("http://127.0.0.1:4000")

    run_async(main())
    assert sink.answer_places.console_url == "http://127.0.0.1:4000"
