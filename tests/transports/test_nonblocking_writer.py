"""Writing without ever blocking, to pipes, sockets and files that others share."""

import _socket
import fcntl
import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from thoughtgate.transports.nonblocking_writer import PIPE_BUF, NonblockingWriter

BIG = b"x" * 5_000_000


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:
            continue


def _pump(outlet: NonblockingWriter, reader: int) -> bytes:
    """Push and read in turns until nothing waits."""
    got = bytearray()
    for _ in range(100_000):
        outlet.push(writable=bool(select.select([], [outlet.watched], [], 0)[1]))
        while select.select([reader], [], [], 0)[0]:
            got += os.read(reader, 1 << 20)
        if not outlet.waiting:
            return bytes(got)
    raise AssertionError("it never came to an end")


def test_a_shared_pipe_is_written_without_blocking_and_stays_blocking(
    pipe: tuple[int, int],
) -> None:
    reader, writer = pipe
    outlet = NonblockingWriter(writer, shared=True)
    outlet.put(BIG)
    outlet.push(writable=False)

    assert 0 < len(outlet.waiting) < len(BIG)
    assert _pump(outlet, reader) == BIG + b"\n"
    assert not fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK
    if outlet.watched != writer:
        os.close(outlet.watched)


def test_a_pipe_of_our_own_is_written_in_order(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.set_blocking(writer, False)
    outlet = NonblockingWriter(writer, shared=False)
    for number in range(20_000):
        outlet.put(b"line %d" % number)

    assert _pump(outlet, reader).split(b"\n")[:-1] == [b"line %d" % n for n in range(20_000)]
    assert outlet.watched == writer


def test_a_socket_is_written_with_a_flag_for_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair()
    duplicates: list[_socket.socket] = []

    def keep(fileno: int, make: type[_socket.socket] = _socket.socket) -> _socket.socket:
        duplicates.append(make(fileno=fileno))
        return duplicates[-1]

    monkeypatch.setattr(_socket, "socket", keep)
    with ours, theirs:
        outlet = NonblockingWriter(ours.fileno(), shared=True)
        outlet.put(BIG)
        outlet.push(writable=False)
        assert outlet.waiting
        assert _pump(outlet, theirs.fileno()) == BIG + b"\n"
        assert os.get_blocking(ours.fileno())
        duplicates[0].close()  # a shim keeps it until it ends


def test_anything_else_gets_what_it_surely_takes(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    outlet = NonblockingWriter(descriptor, shared=True)
    outlet.put(b"y" * (PIPE_BUF + 10))
    outlet.push(writable=False)
    assert len(outlet.waiting) == PIPE_BUF + 11
    outlet.push(writable=True)
    assert len(outlet.waiting) == 11
    outlet.push(writable=True)
    os.close(descriptor)

    assert (tmp_path / "out").read_bytes() == b"y" * (PIPE_BUF + 10) + b"\n"


def test_a_pipe_that_cannot_be_opened_anew_is_written_with_care(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr("thoughtgate.transports.nonblocking_writer.os.open", fail)
    reader, writer = pipe
    outlet = NonblockingWriter(writer, shared=True)
    outlet.put(b"z" * 200_000)

    assert outlet.watched == writer
    assert _pump(outlet, reader) == b"z" * 200_000 + b"\n"


def test_a_reader_that_is_gone_breaks_the_outlet_and_nothing_is_kept(
    pipe: tuple[int, int],
) -> None:
    reader, writer = pipe
    os.set_blocking(writer, False)
    outlet = NonblockingWriter(writer, shared=False)
    os.close(reader)
    outlet.put(b"x")
    outlet.push(writable=True)

    assert outlet.broken
    assert not outlet.waiting
    outlet.put(BIG)
    assert not outlet.waiting
    outlet.push(writable=True)
