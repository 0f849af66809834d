import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.audit_cli import Done, command, sample_record
from tests.support.frames import call
from tests.support.proxy_process import ProxyProcess
from tests.support.records import RUN, T0, started, write_run
from tests.support.shim_peer import ALLOW_ALL, ShimPeer
from tests.support.waiting import wait_for

from thoughtgate.cli.audit import verify as audit_verify
from thoughtgate.core.envelope import Envelope, seal
from thoughtgate.gate.running_gates import list_gates
from thoughtgate.record.evidence import checkpoint
from thoughtgate.record.reader import verify_record
from thoughtgate.record.writer import RecordWriter

KEY = "a key of thirty-two characters, or more"
SIGNED = ALLOW_ALL + "audit: {sign_key_env: AUDIT_KEY}\n"


@pytest.fixture
def keyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold the key, and know the state directory of the test's gates."""
    monkeypatch.setenv("AUDIT_KEY", KEY)
    monkeypatch.setenv("THOUGHTGATE_STATE_DIR", str(tmp_path / "state"))


def verify(capsys: pytest.CaptureFixture[str], path: Path) -> Done:
    return command(capsys, "audit", "verify", str(path), "--key-env", "AUDIT_KEY", "--json")


def kinds(done: Done) -> list[tuple[str, bool]]:
    findings: list[dict[str, Any]] = done.json["findings"]
    return [(one["kind"], one["fault"]) for one in findings]


def test_a_sound_record_exits_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = sample_record(tmp_path)
    done = command(capsys, "audit", "verify", str(path))
    assert done.code == 0
    assert "sound: 19 lines, 1 run, 0 without an end; not signed" in done.out


def test_a_tampered_record_exits_1_and_names_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sample_record(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4].replace(b"ALLOW", b"BLOCK")
    path.write_bytes(b"".join(lines))
    done = command(capsys, "audit", "verify", str(path))
    assert done.code == 1
    assert f"FAULT: {path}:5: edited" in done.out
    listed = command(capsys, "audit", "verify", str(path), "--json")
    assert listed.code == 1
    assert listed.json["sound"] is False
    assert [(one["line"], one["fault"]) for one in listed.json["findings"]] == [(5, True)]


def test_a_cut_tail_is_found_with_the_key_or_an_anchor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 3, sign_key=b"secret key", checkpoint_every=4)
    monkeypatch.setenv("AUDIT_KEY", "secret key")
    whole = command(capsys, "audit", "verify", str(path), "--key-env", "AUDIT_KEY", "--json")
    assert whole.code == 0
    assert whole.json["signatures_checked"] is True
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    done = command(capsys, "audit", "verify", str(path), "--key-env", "AUDIT_KEY")
    assert done.code == 1
    assert "truncated" in done.out
    assert "secret key" not in done.out + done.err
    anchored = command(capsys, "audit", "verify", str(path), "--anchor", whole.json["head"])
    assert anchored.code == 1
    assert command(capsys, "audit", "verify", str(path)).code == 0


def test_a_key_that_is_not_set_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = command(capsys, "audit", "verify", str(sample_record(tmp_path)), "--key-env", "NO_KEY")
    assert done.code == 2
    assert "NO_KEY" in done.err


def test_a_long_list_of_faults_is_cut_for_people(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_text("rubbish\n" * 80)
    done = command(capsys, "audit", "verify", str(path), "--alone")
    assert done.code == 1
    assert "… and 30 more" in done.out


@pytest.mark.usefixtures("keyed")
def test_a_signed_record_is_sound_while_its_gate_runs_and_when_it_has_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Where the gate runs, its record's name says less than here.
    with ShimPeer(tmp_path, SIGNED, flags=["--audit", "own.jsonl"]) as peer:
        peer.ask(call(1, "echo", {"text": "a"}))
        running = verify(capsys, tmp_path / "own.jsonl")
        peer.finish()
    assert running.code == 0, running.out
    assert kinds(running) == [("being_written", False), ("open_run", False)]
    assert "not signed yet" in running.json["findings"][0]["message"]
    after = verify(capsys, tmp_path / "own.jsonl")
    assert (after.code, kinds(after)) == (0, [])
    path = tmp_path / "own.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    cut = verify(capsys, path)
    assert (cut.code, kinds(cut)) == (1, [("truncated", True), ("missing", True)])


@pytest.mark.usefixtures("keyed")
def test_the_signed_record_of_a_proxy_is_sound_while_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "thoughtgate.yaml"
    config.write_text(SIGNED)
    arguments = ["-c", str(config), "--upstream", "http://127.0.0.1:9/mcp", "--listen", "127.0.0.1:0"]  # fmt: skip
    path = tmp_path / "state" / "audit.jsonl"
    with ProxyProcess(tmp_path, arguments, environ={"AUDIT_KEY": KEY}) as proxy:
        running = verify(capsys, path)
        other = tmp_path / "copy.jsonl"
        other.write_bytes(path.read_bytes())
        copied = verify(capsys, other)
        proxy.stop()
    assert running.code == 0, running.out
    assert ("being_written", False) in kinds(running)
    assert ("truncated", True) in kinds(copied)
    assert (verify(capsys, path).code, kinds(verify(capsys, path))) == (0, [])


@pytest.mark.usefixtures("keyed")
def test_a_gate_that_begins_while_its_record_is_verified_accounts_for_the_open_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    writer = RecordWriter(path, Envelope(RUN), sign_key=KEY.encode())
    writer.write([started("run-1.1")])
    looks = iter([False, True])
    monkeypatch.setattr(audit_verify, "_is_being_written", lambda _: next(looks))
    done = verify(capsys, path)
    assert (done.code, kinds(done)) == (0, [("being_written", False)])
    writer.close()


@pytest.mark.usefixtures("keyed")
def test_the_signed_record_of_a_killed_gate_is_not_sound_until_the_next_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "state" / "audit.jsonl"
    with ShimPeer(tmp_path, SIGNED) as peer:
        peer.ask(call(1, "echo", {"text": "a"}))
        os.kill(peer.pid, signal.SIGKILL)
        wait_for(lambda: not list_gates(str(tmp_path / "state")), what="the gate's end")
    killed = verify(capsys, path)
    assert (killed.code, ("truncated", True) in kinds(killed)) == (1, True)
    with ShimPeer(tmp_path, SIGNED) as peer:
        peer.ask(call(1, "echo", {"text": "a"}))
        peer.finish()
    assert (verify(capsys, path).code, kinds(verify(capsys, path))) == (0, [("open_run", False)])


@pytest.mark.usefixtures("keyed")
def test_one_of_a_kind_is_told_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "audit.jsonl"
    envelope = Envelope(RUN)
    writer = RecordWriter(path, envelope)
    writer.write([started("run-1.1")])
    writer.close()
    done = command(capsys, "audit", "verify", str(path))
    assert ": sound: 1 line, 1 run, 0 without an end; not signed" in done.out
    chain = done.out.split()[-1]
    signed = checkpoint(T0, KEY.encode(), chain, closing=True)
    with path.open("ab") as file:
        file.write(seal(envelope.wrap(signed), chain)[0])
    done = command(capsys, "audit", "verify", str(path), "--key-env", "AUDIT_KEY")
    assert ": sound: 2 lines, 1 run, 0 without an end; 1 checkpoint checked" in done.out


@pytest.mark.usefixtures("keyed")
def test_a_fault_of_an_empty_record_names_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.jsonl"
    path.touch()
    done = command(capsys, "audit", "verify", str(path), "--key-env", "AUDIT_KEY")
    assert done.code == 1
    assert done.out.startswith(f"FAULT: {path}: unsigned: ")
    assert verify(capsys, path).json["findings"][0]["file"] == str(path)


@pytest.mark.parametrize("anchor", ["", "zz", "0" * 63, "0" * 65, "g" * 64])
def test_an_anchor_that_is_no_chain_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], anchor: str
) -> None:
    path = str(sample_record(tmp_path))
    done = command(capsys, "audit", "verify", path, "--anchor", anchor)
    assert (done.code, done.out) == (2, "")
    assert f"64 hex digits (got {anchor!r:.80})" in done.err


def test_an_anchor_may_be_in_capitals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(sample_record(tmp_path))
    head = command(capsys, "audit", "verify", path, "--json").json["head"]
    assert command(capsys, "audit", "verify", path, "--anchor", head.upper()).code == 0


def test_files_put_aside_are_verified_when_the_current_one_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 20, rotate_bytes=4_000, keep=100)
    path.unlink()
    done = command(capsys, "audit", "verify", str(path))
    assert done.code == 0
    assert done.out.startswith(f"note: {path}: current_gone: the current file is missing; ")
    assert command(capsys, "audit", "verify", str(path), "--alone").code == 2


@pytest.mark.usefixtures("keyed")
def test_no_running_gate_accounts_for_a_current_file_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    write_run(path, 20, rotate_bytes=4_000, keep=100, sign_key=KEY.encode())
    path.unlink()
    report = verify_record(path, key=KEY.encode(), being_written=True)
    assert [one.kind for one in report.findings if one.is_fault] == ["truncated"]


def test_its_help_says_what_only_an_anchor_finds(capsys: pytest.CaptureFixture[str]) -> None:
    told = " ".join(command(capsys, "audit", "verify", "--help").out.split())
    assert "unless whole runs are missing at the end" in told
    assert "An anchor that you keep elsewhere detects all of these" in told
