"""A gate inside another program: governs MCP connections whose messages the program carries.

The program owns the transports. It passes each message of an agent or a server to a
connection, and sends what the connection passes to its callbacks. Everything else is the same as
in the commands: sessions, judge, approvals and record.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from thoughtgate.config.settings import ServerSettings
from thoughtgate.core.commands import ToAgent, ToServer
from thoughtgate.core.events import AgentGone, AgentSent, Event, NotSent, ServerGone, ServerSent
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.embed.policies import load_config
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.event_loop import HeldCallTimer, open_outbox
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.open_governor import open_governor
from thoughtgate.gate.operator_log import operator_log, operator_messages
from thoughtgate.gate.reload import Reloader, watch_config
from thoughtgate.gate.run_identity import principal_of
from thoughtgate.gate.session_driver import STDIO, Engine, PipeCaller, SessionDriver
from thoughtgate.gate.state_directory import ensure_directory, state_directory
from thoughtgate.policy.call import PRODUCTION

SendMessage = Callable[[bytes], None]
"""Sends one message, a JSON text without a line end. It must return at once."""

TICK_S: Final = 1.0
"""How often calls are checked for timeouts."""

COMPONENT: Final = "embedded"
"""The name of an embedded gate in the record and in the operator's log."""


@asynccontextmanager
async def open_gate(
    config: str | os.PathLike[str] | None = None,
    *,
    text: str | None = None,
    state: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    profile: str | None = None,
) -> AsyncIterator["EmbeddedGate"]:
    """Open a gate on the running event loop, for as long as the context lasts.

    ``config`` and ``text`` are as for ``load_policy``. ``state`` is the directory for the record
    and the approvals, by default the one that the commands use, so that ``thoughtgate approvals``
    and ``thoughtgate audit`` find them. Use the gate only from the thread of its event loop.

    Example:
        >>> async with open_gate("thoughtgate.yaml", state="state") as gate:
        ...     connection = gate.connect("files", to_agent=agent.send, to_server=server.send)
        ...     connection.from_agent(await agent.receive())

    Raises:
        ConfigError: the config is missing or wrong, or a secret that it names is not set.
        StoreError: the state directory cannot be used.
        RecordError: the record cannot be written.
    """
    around = os.environ if environ is None else environ
    loaded = load_config(config, text, around, profile)
    governor = _open_governor(loaded, around, state)
    reloader = watch_config(
        governor, loaded, around, operator_messages(COMPONENT, loaded, level="warn")
    )
    governor.start(now(), command=COMPONENT)
    status = "FAILED"
    try:
        gate = EmbeddedGate(governor, reloader)
        try:
            yield gate
        finally:
            gate.close()
        status = "SUCCEEDED"
    finally:
        governor.finish(status, now())


def _open_governor(
    loaded: Loaded, environ: Mapping[str, str], state: str | os.PathLike[str] | None
) -> Governor:
    place = str(Path(state).absolute()) if state is not None else state_directory(environ)
    log = operator_log(COMPONENT, loaded)
    return open_governor(loaded, environ, ensure_directory(place), observe=log)


class EmbeddedGate:
    """A gate inside another program; ``open_gate`` opens one.

    Example:
        >>> async with open_gate("thoughtgate.yaml") as gate:
        ...     first = gate.connect("files", to_agent=..., to_server=...)
        ...     second = gate.connect("mail", principal="ann", to_agent=..., to_server=...)
    """

    def __init__(self, governor: Governor, reloader: Reloader) -> None:
        self._governor = governor
        self._reloader = reloader
        self._authority = LocalAuthority(governor)
        self._timer = HeldCallTimer(self._authority)
        self._outbox = open_outbox(self._authority)
        self._connections: set[EmbeddedConnection] = set()
        self._opened = 0
        self._loop = asyncio.get_running_loop()
        self._ticker = self._loop.call_later(TICK_S, self._tick)

    def connect(
        self,
        server: str,
        *,
        to_agent: SendMessage,
        to_server: SendMessage,
        principal: str = "",
    ) -> "EmbeddedConnection":
        """Govern one connection between an agent and a server.

        ``server`` is the server's id, as rules name it. The callbacks send a message to the agent
        or to the server; the gate calls them from the event loop once the record is written.
        ``principal`` says who calls, if your program has authenticated them; by default it is the
        principal of the process.

        Example:
            >>> connection = gate.connect("files", to_agent=agent.send, to_server=server.send)
        """
        self._opened += 1
        callbacks = _Callbacks(to_agent, to_server)
        engine = Engine(
            self._authority,
            self._outbox,
            notify=lambda _driver, frame: callbacks.forward(frame),
            run_detached=lambda _driver, frame: callbacks.forward(frame),
        )
        caller = principal or principal_of(self._governor.run)
        driver = SessionDriver(engine, self._setup(server), caller, transport=STDIO)
        driver.person = principal
        driver.agent = callbacks
        callbacks.driver = driver
        connection = EmbeddedConnection(driver, callbacks, self._forget)
        self._connections.add(connection)
        return connection

    def close(self) -> None:
        """Close all connections and write the rest of the record; ``open_gate`` does this.

        Example:
            >>> gate.close()
        """
        for connection in list(self._connections):
            connection.close()
        self._authority.held.withdraw_all("the gate stopped")
        self._ticker.cancel()
        self._timer.close()
        self._outbox.flush()

    def _setup(self, server: str) -> SessionSettings:
        settings = self._reloader.loaded.settings
        known = settings.servers.get(server) or settings.servers.get("*") or ServerSettings(server)
        return SessionSettings(
            server,
            str(self._opened),
            enforce=self._governor.policy.profile == PRODUCTION,
            timeout_s=known.timeout_s,
            max_held=settings.holds.connection,
        )

    def _forget(self, connection: "EmbeddedConnection", driver: SessionDriver) -> None:
        self._authority.held.withdraw_all("the agent is gone", driver)
        self._connections.discard(connection)

    def _tick(self) -> None:
        # First, so that a failure below does not end the checks.
        self._ticker = self._loop.call_later(TICK_S, self._tick)
        at = now()
        for connection in list(self._connections):
            connection._driver.tick(at)  # noqa: SLF001 - the two classes are one part; a public method would be API
        self._authority.tell(self._governor.tasks.tick(at))


class EmbeddedConnection:
    """One agent and one server that talk through an embedded gate.

    Pass each message as soon as it arrives; messages that may go on are passed to the callbacks
    after the record is written. Messages after ``close`` are ignored.

    Example:
        >>> connection = gate.connect("files", to_agent=replies.append, to_server=sent.append)
        >>> connection.from_agent(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
        >>> await asyncio.sleep(0)
        >>> sent
        [b'{"jsonrpc":"2.0","id":1,"method":"ping"}']
        >>> connection.close()
    """

    def __init__(
        self,
        driver: SessionDriver,
        callbacks: "_Callbacks",
        on_closed: "Callable[[EmbeddedConnection, SessionDriver], None]",
    ) -> None:
        self._driver = driver
        self._callbacks = callbacks
        self._on_closed = on_closed

    def from_agent(self, message: bytes) -> None:
        r"""Take one message from the agent: a JSON text, with or without a line end.

        Example:
            >>> connection.from_agent(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
        """
        self._feed(AgentSent(message.removesuffix(b"\n"), now()))

    def from_server(self, message: bytes) -> None:
        r"""Take one message from the server: a JSON text, with or without a line end.

        Example:
            >>> connection.from_server(b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}\n')
        """
        self._feed(ServerSent(message.removesuffix(b"\n"), now()))

    def server_closed(self, reason: str = "the server closed the connection") -> None:
        """Report that the server is gone: the agent gets errors for its open requests.

        Example:
            >>> connection.server_closed("the server exited with code 1")
        """
        self._feed(ServerGone(reason, now(), facts={"cause": "connection_lost"}))

    def close(self) -> None:
        """End the connection because the agent is gone; held calls are withdrawn.

        Nothing is sent to the agent any more.

        Example:
            >>> connection.close()
        """
        if self._callbacks.is_closed:
            return
        # First, so that the events below can no longer send anything to the agent.
        self._callbacks.is_closed = True
        driver = self._driver
        driver.feed(AgentGone(now()), self._callbacks)
        self._on_closed(self, driver)
        driver.stop("the connection is closed", now())
        driver.outbox.schedule()

    def _feed(self, event: Event) -> None:
        if not self._callbacks.is_closed:
            self._driver.feed(event, self._callbacks)


class _Callbacks(PipeCaller):
    """The program's callbacks, as the session sees them: the caller of every request."""

    def __init__(self, to_agent: SendMessage, to_server: SendMessage) -> None:
        self.driver: SessionDriver | None = None
        self.is_closed = False
        self._to_agent = to_agent
        self._to_server = to_server

    def take(self, frame: ToAgent) -> None:
        """Send the agent a frame once the record is written."""
        if self.driver is not None:
            self.driver.outbox.later(self._send_to_agent, frame.data)

    def forward(self, frame: ToServer) -> None:
        """Send the server a frame; if the callback fails, the agent gets an error."""
        try:
            self._to_server(frame.data)
        # The callback is the program's own code: whatever it raises must not end the session.
        except Exception as error:
            if self.driver is None or frame.key is None:
                raise
            reason = f"the message could not be sent: {type(error).__name__}"
            kind = "upstream_connection_failed"
            facts = {"cause": "connection_failed", "reason": reason}
            self.driver.feed(NotSent(frame.key, kind, now(), facts), self)

    def _send_to_agent(self, data: bytes) -> None:
        if not self.is_closed:
            self._to_agent(data)
