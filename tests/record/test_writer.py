import errno
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import sample_server, shim
from tests.support.records import RUN, T0, call, ended, started, write_run
from tests.support.waiting import read_line

from thoughtgate.core.envelope import Envelope, Run, seal
from thoughtgate.core.record_events import Record
from thoughtgate.errors import RecordError
from thoughtgate.record import file as record_file
from thoughtgate.record.ledger import Ledger, ledger_path
from thoughtgate.record.reader import read_record, record_files, verify_record
from thoughtgate.record.verification import GAP, REPAIRED, TORN, TRUNCATED
from thoughtgate.record.writer import RecordWriter

ROOT = Path(__file__).parents[2]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def run_job(*arguments: str, timeout: float = 90) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    return subprocess.run(
        [sys.executable, "-m", "tests.support.record_process", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=True,
    )


@pytest.mark.requirement("EVT-001", "EVT-002", "EVT-004")
def test_each_event_is_one_line_with_the_whole_envelope(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 3)
    events = lines_of(path)
    assert len(events) == 2 + 3 * 3
    for event in events:
        assert event["v"] == "1.3"
        assert event["ts"].endswith("Z")
        assert {"type", "run_id", "agent_id", "client", "env", "source"} <= event.keys()
        assert set(event["source"]) == {"host_id", "proc_id", "shim_id"}
    assert {event["run_id"] for event in events} == {"run-1"}
    assert [event["seq"] for event in events] == list(range(1, 12))


@pytest.mark.requirement("EVT-003")
def test_a_run_is_on_record_in_the_order_it_happened(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 1)
    assert [event["type"] for event in lines_of(path)] == [
        "run_start",
        "tool_call_start",
        "tool_call_decision",
        "tool_call_end",
        "run_end",
    ]


def test_the_file_and_its_directory_are_private(tmp_path: Path) -> None:
    path = tmp_path / "state" / "audit.jsonl"
    write_run(path, 1)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.requirement("NFR-R1")
def test_what_was_written_is_there_when_the_writer_closes(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    for number in range(1, 200):
        writer.write(call(number))
        assert path.read_bytes().count(b"\n") == number * 3
    writer.close()
    assert lines_of(path)[-1]["call"]["call_id"] == "run-1.199"


def test_a_second_run_goes_on_with_the_chain_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 2)
    write_run(path, 2, run=Run("run-2"))
    report = verify_record(path)
    assert report.findings == ()
    assert report.lines == 16
    assert report.runs == 2


def test_values_that_orjson_refuses_are_recorded_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    writer.write(
        [Record("message", T0, "s", "1", {"big": 2**70, "lone": "\ud800", "é": "é\u2028"})]
    )
    writer.close()
    event = lines_of(path)[0]
    assert event["big"] == 2**70
    assert event["lone"] == "\ud800"
    assert event["é"] == "é\u2028"
    assert verify_record(path).is_sound


def test_an_empty_batch_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    writer.write([])
    writer.close()
    assert path.read_bytes() == b""


def test_the_stderr_sink_gets_sealed_lines_and_stdout_none() -> None:
    code = (
        "from tests.support.records import RUN, call\n"
        "from thoughtgate.core.envelope import Envelope\n"
        "from thoughtgate.record.writer import RecordWriter\n"
        "writer = RecordWriter('stderr', Envelope(RUN))\n"
        "writer.write(call(1)); writer.write(call(2)); writer.close()\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, timeout=20, check=True
    )
    assert done.stdout == b""
    assert [json.loads(line)["seq"] for line in done.stderr.splitlines()] == [1, 2, 3, 4, 5, 6]


def test_a_device_without_room_is_an_error_and_not_a_silent_loss() -> None:
    said: list[str] = []
    writer = RecordWriter("/dev/full", Envelope(RUN), say=said.append)
    with pytest.raises(RecordError, match="No space left"):
        writer.write(call(1))
    assert writer.lost == 3
    assert len(said) == 1
    assert "No space left" in said[0]
    assert said[0].endswith("; calls are refused")
    assert writer.envelope.seq == 0
    writer.close()


def test_a_place_that_cannot_hold_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    with pytest.raises(RecordError, match="plain"):
        RecordWriter(tmp_path / "plain" / "audit.jsonl", Envelope(RUN))


def test_with_continue_a_loss_is_noted_as_soon_as_there_is_room(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    said: list[str] = []
    writer = RecordWriter(path, Envelope(RUN), on_failure="continue", say=said.append)
    writer.write(call(1))
    hidden = tmp_path / "hidden"
    path.rename(hidden)
    path.mkdir()
    writer.write(call(2)[:1])
    writer.write(call(2)[1:])
    assert writer.lost == 3
    assert [text.rpartition("; ")[2] for text in said] == ["calls are still forwarded"]
    path.rmdir()
    hidden.rename(path)
    writer.write(call(3))
    writer.close()
    report = verify_record(path)
    assert report.is_sound
    assert [finding.kind for finding in report.findings] == [GAP]
    assert [event["type"] for event in lines_of(path)][3] == "record_gap"
    assert lines_of(path)[3]["record"]["lost"] == 3
    assert said[1:] == ["the record goes on; 3 events are missing and named as lost in it"]


def test_a_full_disk_refuses_and_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    said = run_job("fill", str(path), "20000").stdout
    written = int(said.split()[0])
    assert "File too large" in said
    report = verify_record(path)
    assert report.is_sound, report.findings
    calls = {entry.event["call"]["call_id"] for entry in read_record(path) if "call" in entry.event}
    assert calls == {f"run-full.{number}" for number in range(1, written + 2)}


@pytest.mark.requirement("LED-002")
def test_before_a_full_disk_refuses_previews_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    run_job("fill", str(path), "20000")
    shown = [
        entry.event["call"]["preview"]
        for entry in read_record(path)
        if entry.event["type"] == "tool_call_start"
    ]
    assert {"truncated": True} in shown
    assert "args_preview" in shown[0]


def test_four_processes_keep_one_valid_chain_across_rotations(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-m", "tests.support.record_process", "write", str(path)]
    writers = [
        subprocess.Popen([*command, f"run-{n}", "300", "200000"], cwd=ROOT, env=environment)
        for n in range(4)
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    report = verify_record(path)
    assert report.findings == ()
    assert len(record_files(path)) > 3
    opened = len(record_files(path)) - 1
    assert report.lines == 4 * 300 * 3 + opened


def test_two_hundred_killed_writers_lose_nothing_they_had_made_sure_of(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    sure = run_job("kill", str(path), "200", "7").stdout.split()
    assert len(sure) > 200
    report = verify_record(path)
    faults = [finding for finding in report.findings if finding.is_fault]
    assert all(finding.kind == TORN for finding in faults), faults
    assert len(faults) <= 1
    on_record = {
        entry.event["call"]["call_id"]
        for entry in read_record(path)
        if entry.event.get("type") == "tool_call_decision"
    }
    assert set(sure) <= on_record


def test_a_torn_line_is_closed_off_and_named(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 1)
    with path.open("ab") as file:
        file.write(b'{"v":"1.0","type":"tool_call_st')
    assert [finding.kind for finding in verify_record(path).findings] == [TORN]
    write_run(path, 1, run=Run("run-2"))
    report = verify_record(path)
    assert report.is_sound
    assert [(finding.kind, finding.line) for finding in report.findings] == [(REPAIRED, 6)]


def test_a_signed_record_ends_with_a_closing_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 5, sign_key=b"k" * 32, checkpoint_every=6)
    checkpoints = [event for event in lines_of(path) if event["type"] == "checkpoint"]
    assert [event["checkpoint"]["closing"] for event in checkpoints] == [False, False, False, True]
    assert verify_record(path, key=b"k" * 32).findings == ()
    assert not verify_record(path, key=b"j" * 32).is_sound


def checkpoint_places(path: Path) -> list[int]:
    events = enumerate(lines_of(path), start=1)
    return [number for number, event in events if event["type"] == "checkpoint"]


def test_a_writer_signs_its_first_batch_and_then_one_a_minute(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN), sign_key=b"k" * 32)
    for second in (0.0, 59.9, 60.0, 61.0, -30.0):
        writer.write([started(f"run-1.{second}", T0 + second)])
    assert checkpoint_places(path) == [2, 5, 8]
    report = verify_record(path, key=b"k" * 32, being_written=True)
    assert report.is_sound
    assert not verify_record(path, key=b"k" * 32).is_sound
    writer.close()
    assert verify_record(path, key=b"k" * 32).findings == ()


def test_a_checkpoint_that_could_not_be_written_comes_with_the_next_batch(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN), on_failure="continue", sign_key=b"k" * 32)
    path.unlink()
    path.mkdir()
    writer.write([started("run-1.1")])
    path.rmdir()
    writer.write([started("run-1.2")])
    assert [event["type"] for event in lines_of(path)] == [
        "record_gap",
        "tool_call_start",
        "checkpoint",
    ]
    writer.close()


def test_a_closing_checkpoint_that_fills_its_file_closes_the_record(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.jsonl", tmp_path / "audit.jsonl"
    write_run(whole, 1, sign_key=b"k" * 32)
    write_run(path, 1, sign_key=b"k" * 32, rotate_bytes=whole.stat().st_size)
    assert [event["type"] for event in lines_of(path)] == ["record_opened"]
    assert verify_record(path, key=b"k" * 32).findings == ()
    with path.open("ab") as file:
        line, _ = seal(Envelope(Run("run-2")).wrap(started("run-2.1")), lines_of(path)[0]["chain"])
        file.write(line)
    assert not verify_record(path, key=b"k" * 32).is_sound


def test_the_next_run_signs_over_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    killed = RecordWriter(path, Envelope(RUN), sign_key=b"k" * 32)
    killed.write(call(1))
    killed.write(call(2))
    [finding] = verify_record(path, key=b"k" * 32).findings
    assert finding.kind == TRUNCATED
    write_run(path, 1, run=Run("run-2"), sign_key=b"k" * 32)
    assert verify_record(path, key=b"k" * 32).findings == ()


def test_a_writer_that_wrote_nothing_signs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    RecordWriter(path, Envelope(RUN), sign_key=b"k").close()
    assert path.read_bytes() == b""


def test_closing_does_not_fail_when_the_last_checkpoint_cannot_be_written() -> None:
    writer = RecordWriter("/dev/full", Envelope(RUN), sign_key=b"k", on_failure="continue")
    writer.write([started("c")])
    writer.close()
    assert writer.lost == 1


@pytest.mark.promise("cut-tail-is-found")
@pytest.mark.parametrize("emptied", [False, True])
def test_a_record_that_is_removed_under_a_writer_goes_on_and_says_what_is_gone(
    tmp_path: Path, emptied: bool
) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    writer.write(call(1))
    size = path.stat().st_size
    path.unlink()
    if emptied:
        path.touch(0o600)
    writer.write([ended("run-1.2", time.time())])
    writer.write([ended("run-1.3", time.time())])
    writer.close()
    events = lines_of(path)
    kinds = ["record_opened", "record_gap", "tool_call_end", "tool_call_end"]
    assert [event["type"] for event in events] == kinds
    assert [event["seq"] for event in events] == [4, 5, 6, 7]
    assert events[1]["record"]["cut_bytes"] == size
    assert [finding.kind for finding in verify_record(path).findings] == ["begins", "removed"]


def cut_and_go_on(path: Path, change: Callable[[bytes], bytes], **options: Any) -> list[str]:
    """Have a writer go on after somebody changed its file; return what the operator is told."""
    said: list[str] = []
    writer = RecordWriter(path, Envelope(RUN), say=said.append, **options)
    writer.write(call(1))
    writer.write(call(2))
    path.write_bytes(change(path.read_bytes()))
    writer.write(call(3))
    writer.write(call(4))
    writer.close()
    return said


@pytest.mark.parametrize("key", [b"", b"k" * 32])
@pytest.mark.parametrize("cut", [1, 40, 400, 2000, 100_000])
def test_a_tail_that_is_cut_off_while_its_gate_runs_is_told_and_recorded(
    tmp_path: Path, cut: int, key: bytes
) -> None:
    path = tmp_path / "audit.jsonl"
    gone = 0

    def change(data: bytes) -> bytes:
        nonlocal gone
        gone = min(cut, len(data))
        return data[:-cut]

    said = cut_and_go_on(path, change, sign_key=key)
    assert said == [f"{gone} or more bytes were cut off the record's end; it goes on and says so"]
    events = [entry.event for entry in read_record(path)]
    [noted] = [event for event in events if event.get("type") == "record_gap"]
    assert noted["record"]["cut_bytes"] == gone
    faults = [finding for finding in verify_record(path, key=key).findings if finding.is_fault]
    assert {finding.kind for finding in faults} == {"removed"}
    assert any(finding.message.startswith(f"{gone} or more bytes") for finding in faults)


def test_a_tail_that_is_replaced_by_a_longer_one_is_told_and_recorded(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"

    def change(data: bytes) -> bytes:
        kept = data.splitlines(keepends=True)[:4]
        chain = json.loads(kept[-1])["chain"]
        forger = Envelope(RUN)
        forger.seq = 4
        for record in [*call(5), *call(6)]:
            line, chain = seal(forger.wrap(record), chain)
            kept.append(line)
        return b"".join(kept)

    assert len(cut_and_go_on(path, change)) == 1
    assert not verify_record(path).is_sound


def test_a_cut_off_tail_is_noted_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    said: list[str] = []
    writer = RecordWriter(path, Envelope(RUN), on_failure="continue", say=said.append)
    writer.write(call(1))
    path.write_bytes(b"")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(record_file, "_write_whole", full)
        writer.write(call(2))
    writer.write(call(3))
    writer.close()
    assert [text for text in said if "cut off" in text] == said[-1:]
    kinds = [event["type"] for event in lines_of(path)]
    assert kinds[:3] == ["record_opened", "record_gap", "record_gap"]
    assert [event["seq"] for event in lines_of(path)] == list(range(4, 10))


def test_another_writer_of_the_file_is_no_thief_of_its_tail(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    said: list[str] = []
    one = RecordWriter(path, Envelope(RUN), say=said.append, rotate_bytes=6000, keep=100)
    other = RecordWriter(path, Envelope(Run("run-2")), say=said.append, rotate_bytes=6000, keep=100)
    for number in range(1, 20):
        one.write(call(number))
        other.write(call(number, "run-2") * (number % 3))
    one.close()
    other.close()
    assert said == []
    assert verify_record(path).findings == ()


def test_a_file_that_cannot_be_removed_has_no_batch_written_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(Path, "unlink", refuse)
    write_run(path, 20, rotate_bytes=3000, keep=1)
    assert verify_record(path).findings == ()


@pytest.mark.requirement("NFR-P2")
def test_whoever_reads_or_asks_the_record_does_not_hold_up_its_writer(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN))
    writer.write(call(1))
    ledger = Ledger(ledger_path(path))
    ledger.connection.execute("BEGIN EXCLUSIVE")
    with path.open("rb") as reader:
        reader.readline()
        writer.write(call(2))
    ledger.connection.execute("ROLLBACK")
    ledger.close()
    writer.close()
    assert verify_record(path).lines == 6


@pytest.mark.requirement("FR19")
def test_no_setting_of_the_record_suppresses_a_decision(tmp_path: Path) -> None:
    path, config = tmp_path / "audit.jsonl", tmp_path / "thoughtgate.yaml"
    config.write_text(
        "schema: 1\nprofile: development\ndefault: forward\n"
        f"audit: {{file: {path}, ledger: false, preview: 0, on_failure: continue}}\n"
        "telemetry: {log_level: error, metrics: false}\n"
    )
    frame = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "x"}},
    }
    subprocess.run(
        shim(sample_server(), "-c", str(config)),
        input=json.dumps(frame) + "\n",
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
    )
    decisions = [event for event in lines_of(path) if event["type"] == "tool_call_decision"]
    assert [event["call"]["tool_name"] for event in decisions] == ["echo"]


def _kill_while_it_works(command: list[str], generation: int) -> None:
    """Run a shim under load and kill it at a moment that nobody chose."""
    victim = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    watchdog = threading.Timer(30, victim.kill)
    watchdog.start()
    assert victim.stdin is not None
    assert victim.stdout is not None
    for number in range(1, 400):
        params = {"name": "echo", "arguments": {"text": f"{generation}-{number}"}}
        frame = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        victim.stdin.write(json.dumps(frame).encode() + b"\n")
    victim.stdin.flush()
    for _ in range(random.Random(generation).randrange(1, 300)):
        read_line(victim.stdout)
    victim.kill()
    victim.wait(timeout=10)
    watchdog.cancel()
    victim.stdin.close()
    victim.stdout.close()


@pytest.mark.parametrize("kills", [8, pytest.param(200, marks=pytest.mark.long)])
def test_every_call_that_reached_a_server_has_its_decision_though_shims_are_killed(
    tmp_path: Path, kills: int
) -> None:
    path, log, config = tmp_path / "audit.jsonl", tmp_path / "log", tmp_path / "thoughtgate.yaml"
    config.write_text(f"schema: 1\ndefault: forward\naudit: {{file: {path}}}\n")
    command = shim(sample_server("--log", str(log)), "-c", str(config))
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda generation: _kill_while_it_works(command, generation), range(kills)))
    reached = set(re.findall(rb"\d+-\d+", log.read_bytes()))
    events = [entry.event for entry in read_record(path)]
    judged = {e["call"]["call_id"] for e in events if e.get("type") == "tool_call_decision"}
    recorded = {
        json.loads(e["call"]["preview"]["args_preview"])["text"].encode()
        for e in events
        if e.get("type") == "tool_call_start" and e["call"]["call_id"] in judged
    }
    assert len(reached) > 100
    assert reached <= recorded
    faults = [finding for finding in verify_record(path).findings if finding.is_fault]
    assert [finding.kind for finding in faults] in ([], [TORN])
