"""Standard streams that no event loop can wait for."""

import os
from pathlib import Path

from thoughtgate.transports.blocking_streams import BlockingStreams


def test_files_are_read_and_written_through_pipes(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"a question\n")
    source = os.open(tmp_path / "in", os.O_RDONLY)
    target = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT, 0o600)
    streams = BlockingStreams(source, target)
    with os.fdopen(os.dup(streams.stdin_fd), "rb") as questions:
        assert questions.read() == b"a question\n"
    os.write(streams.stdout_fd, b"an answer\n")
    streams.close()
    os.close(source)

    assert (tmp_path / "out").read_bytes() == b"an answer\n"


def test_pipes_are_left_as_they_are() -> None:
    read_end, write_end = os.pipe()
    streams = BlockingStreams(read_end, write_end)
    assert (streams.stdin_fd, streams.stdout_fd) == (read_end, write_end)
    streams.close()
    os.close(read_end)
    os.close(write_end)
