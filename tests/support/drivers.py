"""Session drivers without a transport: callers that keep what they are given, and an engine."""

from collections.abc import Callable

from thoughtgate.core.commands import ToAgent, ToServer
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.gate.outbox import Outbox
from thoughtgate.gate.session_driver import STDIO, Authority, Engine, SessionDriver
from thoughtgate.wire.message import Json, RequestId


class Listener:
    """A caller that keeps what it is given, in order."""

    def __init__(self, *, can_be_asked: bool = True) -> None:
        self.taken: list[ToAgent] = []
        self.forwarded: list[ToServer] = []
        self.happened: list[tuple[str, object]] = []
        self._can_be_asked = can_be_asked

    def take(self, frame: ToAgent) -> None:
        """Keep a frame for the agent."""
        self.taken.append(frame)

    def forward(self, frame: ToServer) -> None:
        """Keep a frame for the server."""
        self.forwarded.append(frame)

    def can_be_asked(self, *, modern: bool) -> bool:
        """Answer as told."""
        del modern
        return self._can_be_asked

    def can_take_task(self) -> bool:
        return True

    def held(self, key: RequestId) -> None:
        """Note that the call is held."""
        self.happened.append(("held", key))

    def withdrawn(self) -> None:
        """Note that the call was withdrawn."""
        self.happened.append(("withdrawn", None))

    def keep_alive(self, at: float) -> None:
        """Note that time passed."""
        self.happened.append(("keep_alive", at))


class Workbench:
    """An engine whose outbox is flushed by hand, and what leaves it without a caller."""

    def __init__(self, authority: Authority) -> None:
        self.scheduled: list[Callable[[], None]] = []
        """Flushes that an event loop would have made by now."""
        self.outbox = Outbox(authority.flush, self.scheduled.append)
        self.notified: list[tuple[SessionDriver, ToServer]] = []
        self.detached: list[tuple[SessionDriver, ToServer]] = []
        self.lists: list[tuple[str, tuple[dict[str, Json], ...]]] = []
        self.engine = Engine(
            authority,
            self.outbox,
            notify=lambda driver, frame: self.notified.append((driver, frame)),
            run_detached=lambda driver, frame: self.detached.append((driver, frame)),
            on_list=lambda method, entries: self.lists.append((method, entries)),
        )

    def driver(
        self,
        setup: SessionSettings = SessionSettings("srv", "1"),  # noqa: B008  a tuple, which nobody can change
        principal: str = "me",
        *,
        transport: str = STDIO,
        is_modern: bool = False,
    ) -> SessionDriver:
        """Return a driver of this engine."""
        return SessionDriver(
            self.engine, setup, principal, transport=transport, is_modern=is_modern
        )


def open_driver(authority: Authority) -> SessionDriver:
    """Return a driver of an engine of its own."""
    return Workbench(authority).driver()
