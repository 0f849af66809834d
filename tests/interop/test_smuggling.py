"""The carriage return that makes the official server run a call nobody saw.

Many programs end a line at a raw CR, the official SDK's stdio server among them. A gate
that splits at LF alone judges one harmless message and forwards two.
"""

import sys
from pathlib import Path

import pytest
from tests.support.commands import shim
from tests.support.frames import call, initialize, notification, request
from tests.support.frames import line as frame
from tests.support.shim_peer import ALLOW_ALL
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for

SDK = [sys.executable, str(Path(__file__).with_name("sdk_server.py"))]
HIDE = ALLOW_ALL + "servers:\n  sample: {expose: {block: [hidden]}}\n"
ATTACK = frame(request(5, "ping")) + b"\r" + frame(call(6, "hidden"))


def _open(peer: StdioPeer) -> None:
    peer.ask(initialize())
    peer.send(notification("notifications/initialized"))


@pytest.mark.requirement("EC-STDIO-018", "S000-F-014")
def test_without_the_gate_the_hidden_call_runs(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with StdioPeer(SDK, env={"HIDDEN_TRACE": str(trace)}) as peer:
        _open(peer)
        peer.write_line(ATTACK)
        wait_for(trace.exists, what="the trace of the hidden tool")


@pytest.mark.requirement("EC-STDIO-018", "S000-F-014")
@pytest.mark.parametrize("config", [ALLOW_ALL, HIDE])
def test_with_the_gate_it_is_refused_and_never_runs(tmp_path: Path, config: str) -> None:
    trace = tmp_path / "trace"
    (tmp_path / "c.yaml").write_text(config)
    env = {"HIDDEN_TRACE": str(trace), "THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    with StdioPeer(shim(SDK, "-c", str(tmp_path / "c.yaml")), env=env) as peer:
        _open(peer)
        peer.write_line(ATTACK)
        refused = peer.receive()
        assert refused["error"]["data"]["check"] == "raw_cr"
        # Whatever the server was sent before this ping, it has handled by now.
        assert peer.ask(request(9, "ping"))["result"] == {}
        assert peer.finish() == 0
    assert not trace.exists()


@pytest.mark.promise("one-reading")
@pytest.mark.parametrize(
    "separator",
    [
        "\u2028",
        "\u0085",
        *(
            pytest.param(one, marks=pytest.mark.long)
            for one in ("\u2029", "\x0b", "\x0c", "\x1c", "\x1e")
        ),
    ],
)
def test_no_other_line_separator_smuggles_either(tmp_path: Path, separator: str) -> None:
    """Escaped on the way where JSON allows them raw, refused where it does not."""
    trace = tmp_path / "trace"
    (tmp_path / "c.yaml").write_text(HIDE)
    env = {"HIDDEN_TRACE": str(trace), "THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    inner = frame(call(6, "hidden")).decode()
    line = frame(request(5, "ping", {"x": "y"})).decode().replace("y", separator + inner)
    with StdioPeer(shim(SDK, "-c", str(tmp_path / "c.yaml")), env=env) as peer:
        _open(peer)
        peer.write_line(line.encode())
        peer.write_line(line.replace('"', '\\"').encode())
        assert peer.ask(request(9, "ping"))["result"] == {}
        peer.finish()
    assert not trace.exists()
