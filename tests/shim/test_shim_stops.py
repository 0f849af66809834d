"""How a shim and its server end: by EOF, by signals, by SIGKILL, with nothing left behind."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.support.commands import shim
from tests.support.frames import call, request
from tests.support.shim_peer import ShimPeer
from tests.support.stdio_peer import StdioPeer, marked_processes
from tests.support.waiting import wait_for


def _up(peer: ShimPeer) -> None:
    assert peer.ask(request("up", "ping"))["result"] == {}


def _group_members(peer: ShimPeer) -> list[str]:
    """Return the command lines of what the shim has brought about."""
    paths = (Path(f"/proc/{pid}/cmdline") for pid in peer.descendants())
    return [path.read_bytes().replace(b"\0", b" ").decode() for path in paths]


@pytest.mark.requirement("PROC-002", "S000-F-018", "S000-F-021")
def test_the_end_of_stdin_ends_server_and_shim(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        _up(peer)
        assert peer.finish() == 0
        peer.assert_nothing_left()
        assert peer.record()[-1]["run"]["status"] == "SUCCEEDED"
        assert peer.events("server_exited")[0]["server"] == {
            "state": "exited",
            "cause": "exited",
            "kind": "upstream_connection_failed",
            "exit_code": 0,
            "reason": "the server exited with code 0",
        }


def test_the_servers_exit_code_is_passed_on(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, options=["--exit-code", "3"]) as peer:
        _up(peer)
        assert peer.finish() == 3
        assert peer.record()[-1]["run"]["status"] == "FAILED"


@pytest.mark.requirement("EVT-010")
def test_run_end_is_last_although_answers_were_outstanding(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        _up(peer)
        peer.send(call(1, "slow", {"seconds": 0.5}))
        peer.send(call(2, "echo", {"text": "x"}))
        peer.close_stdin()
        assert len(peer.remaining_lines()) == 2
        assert peer.wait() == 0
        kinds = [event["type"] for event in peer.record()]
        assert kinds[-1] == "run_end"
        assert kinds.count("run_end") == 1
        assert kinds.count("tool_call_end") == 2


@pytest.mark.requirement("S000-F-018", "PROC-002")
def test_a_server_that_ignores_the_end_of_its_input_is_terminated_after_five_seconds(
    tmp_path: Path,
) -> None:
    with ShimPeer(tmp_path, options=["--ignore-eof", "--never-answer", "slow"]) as peer:
        _up(peer)
        peer.send(call(1, "slow"))
        began = time.monotonic()
        peer.close_stdin()
        assert peer.receive()["error"]["data"]["kind"] == "upstream_connection_failed"
        peer.wait()
        # Not a measure of speed: the grace must not be cut short.
        assert time.monotonic() - began > 4.5
        peer.assert_nothing_left()
        assert peer.record()[-1]["run"]["status"] == "SUCCEEDED"


@pytest.mark.requirement("S000-F-018")
@pytest.mark.long
def test_a_server_that_ignores_everything_is_killed(tmp_path: Path) -> None:
    options = ["--ignore-eof", "--ignore-sigterm", "--spawn-grandchild"]
    with ShimPeer(tmp_path, options=options) as peer:
        _up(peer)
        peer.finish(timeout=15)
        peer.assert_nothing_left()
        assert peer.events("server_exited")[0]["server"]["exit_code"] == 128 + signal.SIGKILL


@pytest.mark.requirement("S000-F-021")
def test_a_grandchild_that_holds_the_pipes_does_not_outlive_the_server(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, options=["--spawn-grandchild"]) as peer:
        _up(peer)
        assert any("time.sleep(600)" in line for line in _group_members(peer))
        assert peer.finish() == 0
        peer.assert_nothing_left()


@pytest.mark.requirement("PROC-001")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("options", [[], ["--ignore-sigterm", "--spawn-grandchild"]])
def test_a_signal_ends_server_grandchild_and_shim_within_five_seconds(
    tmp_path: Path, number: int, options: list[str]
) -> None:
    with ShimPeer(tmp_path, options=options) as peer:
        _up(peer)
        peer.signal(number)
        peer.wait(5)
        peer.assert_nothing_left(1)
        last = peer.record()[-1]
        assert (last["type"], last["run"]["status"]) == ("run_end", "TERMINATED")


def test_a_call_that_runs_when_the_signal_comes_is_answered_and_ends_on_the_record(
    tmp_path: Path,
) -> None:
    with ShimPeer(tmp_path, options=["--never-answer", "slow"]) as peer:
        _up(peer)
        peer.send(call(1, "slow"))
        wait_for(lambda: "slow" in peer.calls_reached(), what="the call")
        peer.signal(signal.SIGTERM)
        assert peer.receive()["error"]["data"]["kind"] == "upstream_connection_failed"
        peer.wait()
        assert peer.events("tool_call_end")[0]["status"] == "ERROR"


def test_a_signal_while_the_server_starts_is_not_lost(tmp_path: Path) -> None:
    """Wherever in the start it comes: the shim ends, and nothing is left."""
    for pause in (0.0, 0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5):
        with ShimPeer(tmp_path) as peer:
            time.sleep(pause)
            peer.signal(signal.SIGTERM)
            peer.wait(10)
            peer.assert_nothing_left()


def test_two_signals_and_a_kill_as_impatient_agents_send_them_leave_nothing(
    tmp_path: Path,
) -> None:
    """Some agents send SIGINT, SIGTERM 0.1 s and SIGKILL 0.4 s later, and never close stdin."""
    with ShimPeer(tmp_path, options=["--ignore-sigterm", "--spawn-grandchild"]) as peer:
        _up(peer)
        peer.signal(signal.SIGINT)
        time.sleep(0.1)
        peer.signal(signal.SIGTERM)
        time.sleep(0.4)
        peer.signal(signal.SIGKILL)
        peer.wait()
        peer.assert_nothing_left()


@pytest.mark.promise("no-process-left")
@pytest.mark.parametrize(
    "options", [[], ["--ignore-sigterm", "--ignore-eof", "--spawn-grandchild"]]
)
def test_the_server_and_its_children_die_with_a_killed_shim(
    tmp_path: Path, options: list[str]
) -> None:
    with ShimPeer(tmp_path, options=options) as peer:
        _up(peer)
        assert peer.descendants()
        peer.signal(signal.SIGKILL)
        assert peer.wait() == -signal.SIGKILL
        peer.assert_nothing_left()


def test_the_server_leads_a_group_of_its_own(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        _up(peer)
        (started,) = peer.events("server_started")
        pid = started["server"]["pid"]
        assert pid in peer.descendants()
        assert os.getpgid(pid) == pid
        assert os.getpgid(peer.pid) != pid


def test_no_zombie_is_left_while_the_shim_answers_for_a_dead_server(tmp_path: Path) -> None:
    """The shim still has to tell somebody who does not read; the server is already reaped."""
    code = "import sys\nsys.stdin.readline()\nsys.stdout.write('x' * 9000000)\n"
    with ShimPeer(tmp_path, server=[sys.executable, "-c", code]) as peer:
        peer.send(request(1, "ping"))
        peer.wait()
        assert not list(marked_processes(peer.mark))


def test_a_flood_of_signals_does_not_stop_the_stop(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, options=["--ignore-sigterm"]) as peer:
        _up(peer)
        for _ in range(300):
            if peer.process.poll() is not None:
                break
            peer.signal(signal.SIGTERM)
        peer.wait(10)
        peer.assert_nothing_left()


def test_the_servers_end_is_seen_by_a_shim_that_was_started_with_blocked_signals(
    tmp_path: Path,
) -> None:
    # What the server leaves behind holds its pipes open, so that only the signal tells of its end.
    server = "import subprocess, sys; subprocess.Popen(['sleep', '600']); sys.stdin.readline()"
    flags = ["--audit", str(tmp_path / "audit.jsonl"), "--state-dir", str(tmp_path)]
    command = shim([sys.executable, "-c", server], *flags)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, signal.SIGTERM})
    try:
        peer = StdioPeer(command)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with peer:
        peer.send(request(1, "ping"))
        assert peer.wait() == 0
        peer.assert_nothing_left()
