"""Gates that announce themselves."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

from tests.support.commands import sample_server, shim
from tests.support.frames import request
from tests.support.stdio_peer import StdioPeer

from thoughtgate.core.record_events import server_started
from thoughtgate.gate.running_gates import GateAnnouncer, announce, list_gates


def test_a_gate_is_listed_while_it_lives(tmp_path: Path) -> None:
    presence = announce(str(tmp_path), "serve", config="a.yaml")

    assert presence is not None
    [gate] = list_gates(str(tmp_path))
    assert (gate["kind"], gate["config"]) == ("serve", "a.yaml")
    assert stat.S_IMODE(presence.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(presence.path.parent.stat().st_mode) == 0o700
    presence.withdraw()
    presence.withdraw()
    assert list_gates(str(tmp_path)) == []


def test_a_run_is_announced_from_its_start_to_its_end(tmp_path: Path) -> None:
    announcer = GateAnnouncer(str(tmp_path), profile="production")
    announcer.end()
    announcer.begin("shim", "files")

    [gate] = list_gates(str(tmp_path))
    assert (gate["kind"], gate["server"], gate["profile"]) == ("shim", "files", "production")
    announcer.server_changed(server_started(1.0, "files", "0", 7))
    [later] = list_gates(str(tmp_path))
    assert (later["started_at"], later["servers"][0]["pid"]) == (gate["started_at"], 7)
    announcer.end()
    assert list_gates(str(tmp_path)) == []


def test_a_shim_is_seen_while_it_runs(tmp_path: Path) -> None:
    command = shim(sample_server(), "--state-dir", str(tmp_path), server_id="files")
    with StdioPeer(command) as peer:
        peer.ask(request(1, "ping"))
        [gate] = list_gates(str(tmp_path))
        peer.finish()

    assert (gate["kind"], gate["server"], gate["pid"]) == ("shim", "files", peer.pid)
    assert list_gates(str(tmp_path)) == []


def test_a_killed_gate_is_cleared_away(tmp_path: Path) -> None:
    script = (
        f"from thoughtgate.gate.running_gates import announce; announce({str(tmp_path)!r}, 'serve')"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=20)
    [left] = (tmp_path / "gates").glob("*.json")
    left.with_suffix(".sock").touch()

    assert list_gates(str(tmp_path)) == []
    assert list((tmp_path / "gates").iterdir()) == []


def test_what_is_no_presence_file_is_passed_over(tmp_path: Path) -> None:
    folder = tmp_path / "gates"
    folder.mkdir()
    (folder / "1.json").write_text("not JSON")
    (folder / "2.json").write_text(json.dumps({"pid": "x", "owner": "y"}))
    (folder / "3.json").write_text("[]")
    (folder / "4.json").symlink_to(folder / "1.json")

    assert list_gates(str(tmp_path)) == []


def test_a_gate_that_cannot_be_announced_still_works(tmp_path: Path) -> None:
    (tmp_path / "gates").write_text("in the way")

    assert announce(str(tmp_path), "serve") is None


def test_a_pipe_among_the_announcements_is_not_waited_for(tmp_path: Path) -> None:
    presence = announce(str(tmp_path), "serve")
    assert presence is not None
    os.mkfifo(presence.path.with_name("1.json"), 0o600)

    assert [gate["kind"] for gate in list_gates(str(tmp_path))] == ["serve"]
