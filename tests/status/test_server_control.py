"""Commands to gates about their servers."""

from pathlib import Path

import pytest

from thoughtgate.errors import PeerGone
from thoughtgate.status.server_control import ask_gate, read_log


def test_a_gate_without_a_socket_takes_no_commands(tmp_path: Path) -> None:
    with pytest.raises(PeerGone, match="cannot be controlled"):
        ask_gate(str(tmp_path), 5, "stop", "files")
    with pytest.raises(PeerGone, match="keeps no log"):
        read_log(str(tmp_path), 5, "files")
