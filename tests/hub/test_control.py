"""What the control socket of a hub answers."""

from pathlib import Path

import pytest
from tests.support.hub import sample, serving
from tests.support.waiting import wait_for

from thoughtgate.errors import PeerError
from thoughtgate.gate.control_socket import ask_control


def test_a_hub_is_looked_after_through_its_socket(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--stderr", "a line")}) as hub:
        hub.open()
        socket = hub.state / "gates" / f"{hub.pid}.sock"
        wait_for(socket.exists)

        assert ask_control(socket, "status")["servers"][0]["status"] == "stopped"
        assert "running" in ask_control(socket, "start", server="one")
        assert ask_control(socket, "logs", server="one", lines=5) == ["a line"]
        assert "restarted" in ask_control(socket, "restart", server="one")
        assert ask_control(socket, "stop", server="one") == "one is stopped"
        assert "no server changed" in ask_control(socket, "reload")
        with pytest.raises(PeerError, match="no server 'two'"):
            ask_control(socket, "start", server="two")
        with pytest.raises(PeerError, match="name a server"):
            ask_control(socket, "start")
        told = ask_control(socket, "status")
        assert (told["clients"], told["held"], told["active"]) == (1, 0, "")
