"""``proxy --stdio``: serves one agent on this process's stdin and stdout.

In front of a stdio server the shim's poll loop does the work, as for entries in an agent's
config. In front of an HTTP server the frames go through a session driver like that of the HTTP
proxy, so that the same code governs both.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from thoughtgate.core.answers import login_instructions, relay_change
from thoughtgate.core.commands import NOTICE, ToAgent, ToServer
from thoughtgate.core.events import AgentGone, ServerSent
from thoughtgate.core.negotiation import changed_lists, initialize_result
from thoughtgate.core.record_events import Record
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.errors import LOGIN_REQUIRED, PeerError, PeerGone
from thoughtgate.front.stdio import StdioFront
from thoughtgate.gate.background import finish, spawn
from thoughtgate.gate.clock import now
from thoughtgate.gate.event_loop import HeldCallTimer, open_outbox
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.open_governor import identity_of, open_governor, record_place, refuse_stdout
from thoughtgate.gate.operator_log import operator_log, operator_messages, server_log
from thoughtgate.gate.outbox import Sink
from thoughtgate.gate.poll_loop import PollLoop
from thoughtgate.gate.reload import watch_config
from thoughtgate.gate.run_identity import principal_of
from thoughtgate.gate.running_gates import describe_governed
from thoughtgate.gate.session_driver import STDIO, Engine, SessionDriver
from thoughtgate.gate.tool_headers import ToolHeaders
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.process.ancestry import find_agent
from thoughtgate.proxy.http import ProxyPlan, run_on_loop
from thoughtgate.transports.authorized_pool import AuthorizedPool
from thoughtgate.transports.stdio import protect_stdout
from thoughtgate.upstream.client import not_sent
from thoughtgate.upstream.health import ServerHealth
from thoughtgate.upstream.http_carrier import HttpCarrier
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import Fault, Message, RequestId
from thoughtgate.wire.methods import CANCELLED
from thoughtgate.wire.replies import render

STAND_IN: Final = {name: {"listChanged": True} for name in ("tools", "resources", "prompts")}
"""What the gate declares in place of a server that needs a login."""

LOOK_S: Final = 1.0
"""How often to look for a login."""

SESSION = "1"
"""There is one agent, and therefore one session."""

MAX_RESTORED = 1000
MAX_URI = 8192
"""Limits on the number and length of resource URIs that are subscribed to again."""


def run_stdio(plan: ProxyPlan) -> int:
    """Serve the agent on stdin and stdout; return the exit code.

    Raises:
        ThoughtGateError: the record or the server cannot be used.
    """
    # Before stdout is redirected: afterwards, a record on stdout could not be told from stderr.
    refuse_stdout(record_place(plan.loaded, plan.state, plan.audit), plan.audit)
    if not plan.server.url:
        return _run_shim(plan)
    stdout = protect_stdout()
    governor = _open(plan)

    async def main() -> None:
        status = "FAILED"
        try:
            await _serve(plan, governor, stdout)
            status = "SUCCEEDED"
        finally:
            governor.finish(status, now())

    run_on_loop(main)
    return 0


def _open(plan: ProxyPlan) -> Governor:
    governor = open_governor(
        plan.loaded,
        plan.environ,
        plan.state,
        audit=plan.audit,
        observe=operator_log("proxy", plan.loaded),
        governed=describe_governed(find_agent()),
    )
    governor.identify(plan.server.id, identity_of(plan.server))
    say = operator_messages("proxy", plan.loaded, level="warn")
    watch_config(governor, plan.loaded, plan.environ, say)
    governor.start(now(), server=plan.server.id, command="proxy")
    return governor


def _setup(plan: ProxyPlan) -> SessionSettings:
    return SessionSettings(
        plan.server.id,
        SESSION,
        enforce=plan.loaded.policy.profile == PRODUCTION,
        timeout_s=plan.server.timeout_s,
        max_held=plan.settings.holds.connection,
        relay_key=plan.relay_key,
        is_relay=bool(plan.relay_key),
    )


def _run_shim(plan: ProxyPlan) -> int:
    governor = _open(plan)
    principal = principal_of(governor.run, by_agent=True)
    authority = LocalAuthority(governor)
    command = plan.server_setup().command(plan.server, plan.settings)
    argv = [command.command, *command.args]
    return PollLoop(argv, _setup(plan), authority, command.env, principal).run()


class HttpServer:
    """The HTTP server behind the agent's session.

    If it needs a login before it answers the handshake, the gate answers in its place: most agents
    would not try again. The agent is told that the lists changed once somebody has signed in.
    """

    def __init__(
        self,
        carrier: HttpCarrier,
        driver: SessionDriver,
        agent: Sink,
        is_signed_in: Callable[[], Awaitable[bool]] | None = None,
        *,
        name: str = "",
    ) -> None:
        """``is_signed_in`` tells whether there is a login by now; ``name`` is the server's id."""
        self._name = name
        self._carrier = carrier
        self._driver = driver
        self._agent = agent
        self._is_signed_in = is_signed_in
        self._handshake: tuple[dict[str, Any], bytes] | None = None
        """The ``initialize`` that has no answer yet."""
        self._awaiting: asyncio.Task[None] | None = None
        """Waits for a login."""
        self._settings: dict[tuple[str, str], dict[str, Any]] = {}
        """The subscriptions and the log level of the session, by method and resource."""
        self._restoring: set[RequestId] = set()
        """The gate's own requests that repeat them in a new session."""
        # Random, so that the agent does not use the same ids by accident.
        self._prefix = f"thoughtgate-{os.urandom(6).hex()}"

    def send(self, frame: ToServer) -> None:
        """Send a frame of the session."""
        message = frame.message
        if message is not None:
            if message.method == "initialize":
                self._handshake = message.body, frame.data
            if message.method != CANCELLED or not self._cancel(message, frame.cause):
                self._keep_settings(message)
                self._carrier.post(message.body, frame.data)
        elif frame.key is not None:
            self.failed(frame.key, PeerError("invalid_request", "the frame cannot be read"))

    def took(self, line: bytes, message: Message | Fault) -> None:
        """Handle a message from the server."""
        # The answer to a request of the gate's own, which the agent does not know.
        if self._restoring and message.id in self._restoring:
            self._restoring.discard(message.id)
            return
        self._driver.feed(ServerSent(line, now(), message), self._agent)

    def failed(self, ident: RequestId, error: PeerError) -> None:
        """Fail a request that will not be answered."""
        if ident in self._restoring:
            self._restoring.discard(ident)
            return
        handshake, self._handshake = self._handshake, None
        if handshake is not None and self._stand_in(handshake, ident, error):
            return
        self._driver.feed(not_sent(ident, error), self._agent)

    def lost(self, gone: PeerGone) -> None:
        """Do nothing: the agent learns it from the request that failed."""

    def reopened(self, result: dict[str, Any]) -> None:
        """Restore the agent's subscriptions, and tell it that lists may have changed."""
        if self._awaiting is not None:
            # The agent knows the stand-in's capabilities, not those of the server.
            result = {"capabilities": STAND_IN}
            self._awaiting.cancel()
            self._awaiting = None
        for number, ((method, _), params) in enumerate(self._settings.items()):
            ident = f"{self._prefix}-{number}"
            self._restoring.add(ident)
            self._carrier.send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        for line in map(render, changed_lists(result)):
            self.took(line, read_frame(line))

    async def close(self) -> None:
        """Stop waiting for a login."""
        await finish(self._awaiting)

    def _stand_in(
        self, handshake: tuple[dict[str, Any], bytes], ident: RequestId, error: PeerError
    ) -> bool:
        """Answer the handshake in place of a server that needs a login; False for other errors."""
        body, _ = handshake
        if error.cause != LOGIN_REQUIRED or body["id"] != ident or self._is_signed_in is None:
            return False
        self._carrier.open_later(handshake)
        asked = (body.get("params") or {}).get("protocolVersion")
        result = initialize_result(asked, STAND_IN, login_instructions(self._name))
        line = render({"jsonrpc": "2.0", "id": ident, "result": result})
        self.took(line, read_frame(line))
        if self._awaiting is None:
            self._awaiting = spawn(self._await_login(self._is_signed_in))
        return True

    async def _await_login(self, is_signed_in: Callable[[], Awaitable[bool]]) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if await is_signed_in():
                # Once the session is open, ``reopened`` cancels this task; until then, try again.
                self._carrier.reopen()

    def _keep_settings(self, message: Message) -> None:
        """Keep what the agent sets for its session, to set it again in a new one."""
        params = message.body.get("params") or {}
        if message.method == "logging/setLevel":
            self._settings[message.method, ""] = params
        elif message.method in {"resources/subscribe", "resources/unsubscribe"}:
            uri = params.get("uri")
            if type(uri) is not str or len(uri) > MAX_URI:
                return
            if message.method == "resources/unsubscribe":
                self._settings.pop(("resources/subscribe", uri), None)
            elif len(self._settings) < MAX_RESTORED:
                self._settings[message.method, uri] = {"uri": uri}

    def _cancel(self, message: Message, cause: str) -> bool:
        """Close the stream of a cancelled request; return whether that replaces the notification."""
        ident: Any = (message.body.get("params") or {}).get("requestId")
        return type(ident) in {str, int} and self._carrier.abandon(ident, cause)


async def _serve(plan: ProxyPlan, governor: Governor, stdout: int) -> None:
    """Serve one agent on stdio in front of one HTTP server."""
    tools = ToolHeaders()
    authority = LocalAuthority(governor)
    timer, outbox = HeldCallTimer(authority), open_outbox(authority)
    front = StdioFront(stdout)
    agent = front.agent
    engine = Engine(
        authority,
        outbox,
        notify=lambda _driver, frame: server.send(frame),
        run_detached=lambda _driver, frame: server.send(frame),
        on_list=tools.learn,
    )
    principal = principal_of(governor.run, by_agent=True)
    driver = SessionDriver(engine, _setup(plan), principal, transport=STDIO)
    driver.agent = agent
    log = server_log(plan.loaded)

    def changed(record: Record) -> None:
        if log is not None:
            log(record)
        report = relay_change(record, plan.relay_key) if plan.relay_key else None
        if report is not None:
            agent.take(ToAgent(report, None, NOTICE))

    governor.on_server = changed

    def note(record: Record) -> None:
        authority.note(record)
        outbox.schedule()

    around = plan.server_setup()
    pool = around.open_pool(plan.server)
    health = ServerHealth(plan.server.id, note)
    carrier = HttpCarrier(pool, tools.of, principal, health)
    is_signed_in: Callable[[], Awaitable[bool]] | None = None
    if isinstance(pool, AuthorizedPool):
        is_signed_in = partial(pool.has_credentials, principal)
    server = HttpServer(carrier, driver, agent, is_signed_in, name=plan.server.id)
    await carrier.open(server)

    def gone() -> None:
        driver.feed(AgentGone(now()), agent)
        outbox.schedule()

    def tick(at: float) -> None:
        driver.tick(at)
        authority.tell(governor.tasks.tick(at))

    agent.forward_to = lambda _agent, frame: server.send(frame)
    front.open_requests = lambda: driver.session.open_requests
    front.on_gone, front.on_tick = gone, tick
    try:
        await front.serve(driver)
    finally:
        authority.held.withdraw_all("the agent is gone")
        timer.close()
        outbox.flush()
        await server.close()
        await carrier.close()
        await around.close()
