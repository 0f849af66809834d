"""A hub inside the test's own process: real governor, real record, real servers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.hub import write_config

from thoughtgate.gate.config_files import Loaded, load_configuration
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.open_governor import open_governor
from thoughtgate.hub.client import Client
from thoughtgate.hub.hub import Hub
from thoughtgate.hub.servers import Surroundings
from thoughtgate.wire.message import RequestId


class Frames:
    """Collects what a client is sent."""

    def __init__(self) -> None:
        self.replies: list[tuple[bytes, RequestId | None]] = []
        self.told: list[tuple[bytes, RequestId | None]] = []

    def send(self, data: bytes, about: RequestId | None, final: bool) -> None:
        """Take one frame."""
        (self.replies if final else self.told).append((data, about))


def load(tmp_path: Path, servers: dict[str, Any], **more: Any) -> Loaded:
    """Load a config that allows everything."""
    config = write_config(tmp_path / "thoughtgate.yaml", servers, **more)
    return load_configuration(str(config), {}, str(tmp_path))


@contextmanager
def governed(loaded: Loaded, state: Path) -> Iterator[Governor]:
    """Open a governor, and close it."""
    state.mkdir(exist_ok=True)
    governor = open_governor(loaded, {}, str(state))
    try:
        yield governor
    finally:
        governor.finish("SUCCEEDED", 0.0)


def make_hub(loaded: Loaded, governor: Governor, tmp_path: Path, **more: Any) -> Hub:
    """Return a hub; call it on a running loop."""
    return Hub(loaded.settings, governor, Surroundings(os.environ, str(tmp_path)), **more)


def join(hub: Hub, *, sole: bool = True) -> tuple[Client, Frames]:
    """Return a client of the hub and what it is sent."""
    frames = Frames()
    client = Client(hub.new_session(), "tester", "mcp_stdio", frames.send, sole=sole)
    hub.join(client)
    return client, frames
