"""A hub inside the test's own process: real governor, real record, real servers."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.hub import write_config

from thoughtgate.core.commands import ANSWER, ToAgent, ToServer
from thoughtgate.gate.config_files import Loaded, load_configuration
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.open_governor import open_governor
from thoughtgate.gate.outbox import Outbox
from thoughtgate.gate.session_driver import STDIO
from thoughtgate.hub.client import Client
from thoughtgate.hub.hub import Hub
from thoughtgate.upstream.connect import ServerSetup
from thoughtgate.wire.message import RequestId


class Frames:
    """The caller of a client's requests: collects what it is sent."""

    def __init__(self) -> None:
        self.replies: list[tuple[bytes, RequestId | None]] = []
        self.told_frames: list[tuple[bytes, RequestId | None]] = []
        self.client: Client | None = None

    def take(self, frame: ToAgent) -> None:
        """Take one frame of the gate's own."""
        taken = self.replies if frame.carries == ANSWER else self.told_frames
        taken.append((frame.data, frame.key))

    def forward(self, frame: ToServer) -> None:
        """Send an allowed request on, as the hub's backend does."""
        if self.client is not None and frame.key is not None:
            self.client.routes[frame.key].carry(frame, self)

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Take the server's answer."""
        del status, headers
        self.replies.append((data, None))

    def told(self, data: bytes) -> None:
        """Take what the server says before it."""
        self.told_frames.append((data, None))

    def can_be_asked(self, *, modern: bool) -> bool:
        """A line carries everything."""
        del modern
        return True

    def can_take_task(self) -> bool:
        return True

    def held(self, key: RequestId) -> None:
        """Nothing has to be kept alive."""

    def withdrawn(self) -> None:
        """Nothing has to be ended."""

    def keep_alive(self, at: float) -> None:
        """As above."""


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
    return Hub(loaded.settings, governor, ServerSetup(os.environ, str(tmp_path)), **more)


def connect(outbox: Outbox, ident: str = "1", *, sole: bool = True) -> tuple[Client, Frames]:
    """Return a client on one line, and what it is sent."""
    frames = Frames()
    client = Client(ident, "tester", outbox, STDIO, sole=sole)
    client.agent = client.line = frames
    frames.client = client
    return client, frames


def join(hub: Hub, *, sole: bool = True) -> tuple[Client, Frames]:
    """Return a client of the hub and what it is sent."""
    client, frames = connect(hub.gate.outbox, hub.new_session(), sole=sole)
    hub.join(client)
    return client, frames
