"""Desktop notifications: through the real program, to a recording service on a real session bus."""

import os
import stat
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.approvals import an_approval
from tests.support.desktop import a_desktop, needs_desktop
from tests.support.shim_peer import ShimPeer
from tests.support.waiting import wait_for
from tests.support.wraps import Machine

from thoughtgate.channels import desktop
from thoughtgate.channels.answer_places import AnswerPlaces
from thoughtgate.channels.desktop import DesktopNotifications, command_line, find_program

PLACES = AnswerPlaces("http://127.0.0.1:4000")
SESSION = {"DISPLAY": ":0", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere"}
RULES = """\
schema: 1
default: forward
rules:
  - {tool: delete_note, action: approve, reason: gone is gone}
"""


@needs_desktop
def test_a_held_call_is_shown_with_its_tool_and_a_link(tmp_path: Path) -> None:
    with a_desktop(tmp_path) as screen:
        said: list[str] = []
        channel = DesktopNotifications("/usr/bin/notify-send", screen.environ, PLACES, said.append)
        channel.show_request(an_approval(tool="--help <b>x</b> & \x1b[1m"))
        wait_for(lambda: screen.shown, what="the notification")
        channel.stop()

    ((program, title, body),) = screen.shown
    assert (program, title) == ("ThoughtGate", "ThoughtGate: a call waits for you")
    assert body.startswith("--help &lt;b&gt;x&lt;/b&gt; &amp; [U+001B][1m on files\n")
    assert "http://127.0.0.1:4000/approvals/k3f9ab" in body
    assert "/tmp/x" not in body
    assert said == []


@needs_desktop
def test_thirty_held_calls_are_two_notifications(tmp_path: Path) -> None:
    with a_desktop(tmp_path) as screen:
        channel = DesktopNotifications(
            "/usr/bin/notify-send", screen.environ, PLACES, print, pause_s=0.5
        )
        channel.show_request(an_approval(id="first"))
        wait_for(lambda: screen.shown, what="the first notification")
        for number in range(29):
            channel.show_request(an_approval(id=f"a{number}"))
        channel.show_outcome(an_approval(id="a0"))
        wait_for(lambda: len(screen.shown) > 1, what="the second notification")
        channel.stop()

    assert [title for _, title, _ in screen.shown] == [
        "ThoughtGate: a call waits for you",
        "ThoughtGate: 28 calls wait for you",
    ]
    assert "delete_file on files and 27 more" in screen.shown[1][2]


@needs_desktop
def test_a_real_shim_in_a_desktop_session_notifies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_desktop(tmp_path) as screen:
        for name, value in screen.environ.items():
            monkeypatch.setenv(name, value)
        with ShimPeer(tmp_path, RULES) as peer:
            call = {"name": "delete_note", "arguments": {"name": "draft"}}
            peer.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
            wait_for(lambda: screen.shown, what="the notification")
        assert "delete_note on sample" in screen.shown[0][2]
        assert "thoughtgate approvals watch" in screen.shown[0][2]


@needs_desktop
@pytest.mark.parametrize("is_on", [True, False])
def test_a_wrapped_agent_notifies_unless_it_is_turned_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_on: bool
) -> None:
    with a_desktop(tmp_path) as screen:
        for name, value in screen.environ.items():
            monkeypatch.setenv(name, value)
        off = "" if is_on else "notify: {desktop: false}\n"
        machine = Machine(tmp_path, f"{RULES}{off}")
        machine.write_sample()
        with machine.wrap() as wrapped:
            wrapped.open()
            wrapped.tell_call("delete_note", {"name": "draft"})
            held = machine.wait_for_event("approval_requested")["approval"]["approval_id"]
            if is_on:
                wait_for(lambda: screen.shown, what="the notification")
            assert machine.run("approvals", "deny", held).returncode == 0
            assert wrapped.peer.receive()
            wrapped.finish()
    assert len(screen.shown) == int(is_on)
    assert all("/approvals/" in body for _, _, body in screen.shown), "the console's page"


def test_a_program_that_fails_is_reported_once_and_not_started_again(tmp_path: Path) -> None:
    program = _program(tmp_path, "exit 7")
    said: list[str] = []
    channel = DesktopNotifications(program, {}, PLACES, said.append, pause_s=0.0)
    channel.show_request(an_approval())
    wait_for(lambda: said, what="the report")
    channel.show_request(an_approval(id="other"))
    channel.stop()
    assert said == [f"desktop notifications are off until the next start: {program} exited with 7"]


def test_a_program_that_is_gone_or_hangs_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desktop, "GIVE_UP_S", 0.2)
    hangs, reported = _program(tmp_path, "exec sleep 60"), threading.Event()
    for program, what in ((hangs, "did not end"), (str(tmp_path / "gone"), "No such file")):
        said: list[str] = []

        def say(text: str, said: list[str] = said) -> None:
            said.append(text)
            reported.set()

        channel = DesktopNotifications(program, {}, PLACES, say)
        channel.show_request(an_approval())
        assert reported.wait(20)
        reported.clear()
        channel.stop()
        assert what in said[0]


def test_the_program_gets_no_secret_of_the_gate_and_no_shell(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    program = _program(
        tmp_path, f'env > {seen}.part; printf "%s\\n" "$@" >> {seen}.part; mv {seen}.part {seen}'
    )
    environ = {"SLACK_BOT_TOKEN": "xoxb-1", "LD_PRELOAD": "/evil.so", "DISPLAY": ":3"}
    channel = DesktopNotifications(program, environ, PLACES, print)
    channel.show_request(an_approval(tool="$(touch pwned); `id`"))
    wait_for(seen.exists, what="the program")
    channel.stop()
    text = seen.read_text("utf-8")
    assert "DISPLAY=:3" in text
    assert "xoxb" not in text
    assert "LD_PRELOAD" not in text
    assert "$(touch pwned); `id` on files" in text


def test_a_request_that_was_answered_meanwhile_is_not_shown(tmp_path: Path) -> None:
    shown = tmp_path / "shown"
    channel = DesktopNotifications(_program(tmp_path, f"touch {shown}"), {}, PLACES, print)
    channel.show_outcome(an_approval())
    channel.stop()
    channel.show_request(an_approval())
    channel.stop()
    assert not shown.exists()


@pytest.mark.parametrize(
    ("environ", "platform"),
    [
        ({}, "linux"),
        ({"DISPLAY": ":0"}, "linux"),
        ({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/x"}, "linux"),
        ({"DISPLAY": ":0", "XDG_RUNTIME_DIR": "/nowhere"}, "linux"),
        ({**SESSION, "SSH_CONNECTION": "1.2.3.4 1 5.6.7.8 22"}, "linux"),
        ({"SSH_TTY": "/dev/ttys1"}, "darwin"),
    ],
)
def test_without_a_desktop_session_there_is_no_program(
    environ: Mapping[str, str], platform: str
) -> None:
    assert not find_program(environ, platform)


def test_the_program_is_never_taken_from_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _program(tmp_path, "true", "notify-send")
    monkeypatch.setattr(desktop, "DIRECTORIES", ("/nowhere",))
    assert not find_program({**SESSION, "PATH": str(tmp_path)}, "linux")
    monkeypatch.setattr(desktop, "DIRECTORIES", ("/nowhere", str(tmp_path)))
    assert find_program(SESSION, "linux") == program


def test_the_owner_of_the_console_has_the_desktop_of_a_mac(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _program(tmp_path, "true", "osascript")
    monkeypatch.setattr(desktop, "DIRECTORIES", (str(tmp_path),))
    owner = Path("/dev/console").stat().st_uid if Path("/dev/console").exists() else -1
    assert find_program({}, "darwin") == (program if owner == os.getuid() else "")


def test_texts_never_become_part_of_a_script() -> None:
    line = command_line("/usr/bin/osascript", 'a" & (do shell script "id") & "', "b")
    assert line[-2:] == ['a" & (do shell script "id") & "', "b"]
    assert not any("do shell" in part for part in line[:-2])


def _program(folder: Path, body: str, name: str = "notify") -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n", "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)
