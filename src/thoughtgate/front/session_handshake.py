"""The handshake that opened a session, as the sealed session id contains it.

Another gate that continues the session has not seen its ``initialize``. It learns from the id what
it needs: the revision, the client's name, and which requests of a server the client accepts.
"""

import base64
import binascii
import json
from typing import Any, Final, NamedTuple

from thoughtgate.core.negotiation import carried_capabilities

MAX_TEXT: Final = 100
"""Maximum length of a client's name and of its version, each."""

MAX_SEALED: Final = 480
"""Maximum length of a sealed handshake: an id has to fit into a header with the server's own."""


class Handshake(NamedTuple):
    """The facts of an ``initialize`` request that a session needs later."""

    opened_at: int
    """When the session was opened."""
    version: str = ""
    """The revision that the client asked for."""
    client: tuple[str, str] = ("", "")
    """The client's name and version."""
    capabilities: dict[str, Any] = {}  # noqa: RUF012  never changed
    """Which of the server's requests the client accepts."""

    @property
    def params(self) -> dict[str, Any]:
        """The params of the ``initialize`` request, as far as they are known."""
        name, version = self.client
        return {
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "clientInfo": {"name": name, "version": version},
        }

    def render(self) -> str:
        """Return the text that a session id contains; it has no dot.

        Capabilities that are too long are left out: the session continues at other gates, but
        servers cannot send the client requests there.
        """
        text = _encode([self.opened_at, self.version, *self.client, self.capabilities])
        if len(text) <= MAX_SEALED:
            return text
        text = _encode([self.opened_at, self.version, *self.client, {}])
        return text if len(text) <= MAX_SEALED else _encode([self.opened_at, "", "", "", {}])


def handshake_of(params: Any, at: float) -> Handshake:
    """Return the handshake of an ``initialize`` request."""
    said = params if type(params) is dict else {}
    info = said.get("clientInfo")
    known = info if type(info) is dict else {}
    names = (_text(known.get("name")), _text(known.get("version")))
    capabilities = carried_capabilities(said.get("capabilities"))
    return Handshake(int(at), _text(said.get("protocolVersion")), names, capabilities)


def parse_handshake(text: str) -> Handshake | None:
    """Return the handshake that a session id contains; None if it contains none."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        said = json.loads(base64.urlsafe_b64decode(padded))
        opened_at, version, name, release, capabilities = said
    except (ValueError, TypeError, binascii.Error):
        return None
    # The types are not checked: the seal shows that a gate has written this text.
    return Handshake(int(opened_at), version, (name, release), capabilities)


def _text(value: Any) -> str:
    return value[:MAX_TEXT] if type(value) is str else ""


def _encode(value: list[Any]) -> str:
    data = json.dumps(value, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
