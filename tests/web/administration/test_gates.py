"""The page of gates."""

from pathlib import Path
from typing import Any

from tests.support.consoles import LocalConsole
from tests.support.hub import sample, serving
from tests.support.shim_peer import ShimPeer

RULES = "schema: 1\ndefault: forward\n"


def test_a_running_gate_is_shown_until_it_ends(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    with ShimPeer(tmp_path, RULES) as peer, LocalConsole(state) as console:
        client = console.client()
        peer.ask({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        text = client.get("/gates").text
        assert f"process {peer.pid}" in text
        assert "thoughtgate.yaml" in text
        peer.finish()
        assert "No gate is running on this machine" in client.get("/gates").text


def test_servers_are_shown_as_their_gate_describes_them(tmp_path: Path) -> None:
    servers: dict[str, Any] = {"one": sample(), "bad": {"command": "/nonexistent", "eager": True}}
    with serving(tmp_path, servers) as hub:
        hub.open()
        hub.names()
        with LocalConsole(hub.state) as console:
            text = console.client().get("/gates").text

    assert "<td>one</td>" in text
    assert '<span class="chip good">running</span>' in text
    assert "start_failed" in text
