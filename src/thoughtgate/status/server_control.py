"""Commands to the gates of this machine about one of their servers."""

from typing import Any, Final

from thoughtgate.errors import PeerGone
from thoughtgate.gate.control_socket import ask_control
from thoughtgate.status.overview import PATIENCE_S, control_path

ACTIONS: Final = ("start", "stop", "restart")

MAX_LINES: Final = 400
MAX_LINE: Final = 2000
"""Limits on the log that is shown."""


def ask_gate(state: str, gate: int, operation: str, server: str, **more: Any) -> Any:
    """Send a command about a server to the gate with a process id; return its reply.

    Raises:
        PeerGone: the gate has exited, or it takes no commands.
        PeerError: the gate refused; the message says why.
    """
    path = control_path(state, {"pid": gate})
    if not path.exists():
        raise PeerGone("this gate cannot be controlled")
    return ask_control(path, operation, server=server, **more)


def read_log(state: str, gate: int, server: str) -> list[str]:
    """Return the last lines of a server's log, as far as they can be shown.

    Raises:
        PeerGone: the gate has exited, or it keeps no log.
        PeerError: the gate does not have this server.
    """
    path = control_path(state, {"pid": gate})
    if not path.exists():
        raise PeerGone("this gate keeps no log of its servers")
    lines = ask_control(path, "logs", PATIENCE_S, server=server, lines=MAX_LINES)
    found = lines if isinstance(lines, list) else []
    # Cut again here, so that a page stays small whatever the gate sends.
    return [str(line)[:MAX_LINE] for line in found[-MAX_LINES:]]
