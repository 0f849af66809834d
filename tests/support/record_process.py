"""Processes that write a record, to be killed, starved or run against one another."""

import os
import random
import resource
import signal
import sys
from pathlib import Path

from tests.support.records import T0, call
from tests.support.waiting import read_some, reap

from thoughtgate.core.envelope import Envelope, Run
from thoughtgate.errors import RecordError
from thoughtgate.record.writer import RecordWriter


def kill_again_and_again(path: Path, times: int, seed: int) -> None:
    """Fork writers of one record and kill each at a random moment; print what they had made sure of."""
    dice = random.Random(seed)
    for generation in range(times):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            _write_forever(path, f"run-{generation}", writer)
        os.close(writer)
        wanted = dice.randrange(1, 60)
        heard = b""
        while heard.count(b"\n") < wanted:
            chunk = read_some(reader, 4096)
            if not chunk:
                break
            heard += chunk
        os.kill(child, signal.SIGKILL)
        while chunk := read_some(reader):
            heard += chunk
        reap(child)
        os.close(reader)
        sys.stdout.write(heard.decode())


def _write_forever(path: Path, run: str, told: int) -> None:
    record = RecordWriter(path, Envelope(Run(run, shim_id=run)), rotate_bytes=1_500_000, keep=1000)
    number = 0
    while True:
        number += 1
        preview = "x" * (9_000 if number % 3 == 0 else 50)
        record.write(call(number, run, preview=preview))
        os.write(told, f"{run}.{number}\n".encode())


def write_calls(path: Path, run: str, calls: int, rotate_bytes: int) -> None:
    """Write some calls, as one of several processes."""
    record = RecordWriter(
        path, Envelope(Run(run, shim_id=run)), rotate_bytes=rotate_bytes, keep=1000
    )
    for number in range(1, calls + 1):
        record.write(call(number, run))
    record.close()


def fill_the_disk(path: Path, limit: int) -> None:
    """Write until the file may not grow; say how many calls are on record, then go on elsewhere."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    record = RecordWriter(path, Envelope(Run("run-full")), rotate_bytes=0)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    written = 0
    try:
        while True:
            record.write(call(written + 1, "run-full", preview="y" * 4000))
            written += 1
    except RecordError as error:
        print(written, error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    record.write(call(written + 1, "run-full"))
    record.close()


if __name__ == "__main__":
    assert T0
    job, target, *numbers = sys.argv[1:]
    if job == "kill":
        kill_again_and_again(Path(target), int(numbers[0]), int(numbers[1]))
    elif job == "write":
        write_calls(Path(target), numbers[0], int(numbers[1]), int(numbers[2]))
    else:
        fill_the_disk(Path(target), int(numbers[0]))
