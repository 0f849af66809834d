import json
import os
import threading
from pathlib import Path

import pytest
from tests.support.records import RUN, call
from tests.support.waiting import read_some

from thoughtgate.core.envelope import Envelope
from thoughtgate.errors import RecordError
from thoughtgate.record import stream as record_stream
from thoughtgate.record.file import Tail
from thoughtgate.record.stream import RecordStream, is_stream
from thoughtgate.record.writer import RecordWriter


def test_pipes_and_devices_are_streams_and_files_are_not(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    assert is_stream("/dev/null")
    assert is_stream(str(tmp_path / "pipe"))
    assert not is_stream(str(tmp_path / "file"))
    assert not is_stream(str(tmp_path / "nothing"))


def test_a_named_pipe_gets_sealed_lines(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_bytes()), daemon=True)
    reader.start()
    writer = RecordWriter(pipe, Envelope(RUN))
    writer.write(call(1))
    writer.close()
    reader.join(timeout=10)
    assert [json.loads(line)["seq"] for line in heard[0].splitlines()] == [1, 2, 3]


def test_a_stream_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="missing"):
        RecordStream(str(tmp_path / "missing"))


def test_a_full_pipe_that_nobody_reads_is_an_error_and_halves_are_closed_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(record_stream, "WRITE_WAIT_S", 0.02)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    monkeypatch.setitem(record_stream.STREAMS, "stderr", writer)
    stream = RecordStream("stderr")
    big = b"x" * 200_000
    with pytest.raises(RecordError):
        stream.append(lambda _: (big, "a" * 64))
    half = len(read_some(reader, 1 << 20))
    assert 0 < half < len(big)
    seen = []

    def render(tail: Tail) -> tuple[bytes, str]:
        seen.append(tail)
        return b"y\n", "b" * 64

    stream.append(render)
    assert seen[0].needs_newline
    assert read_some(reader, 10) == b"y\n"
    stream.close()
    os.close(reader)
    os.close(writer)


def test_a_slow_reader_of_a_full_pipe_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    monkeypatch.setitem(record_stream.STREAMS, "stderr", writer)
    stream = RecordStream("stderr")
    heard = bytearray()

    def read_all() -> None:
        while chunk := read_some(reader):
            heard.extend(chunk)

    thread = threading.Thread(target=read_all, daemon=True)
    thread.start()
    stream.append(lambda _: (b"x" * 500_000, "a" * 64))
    os.close(writer)
    thread.join(timeout=10)
    assert len(heard) == 500_000
    os.close(reader)
