"""``proxy --stdio``: serves one agent on this process's stdin and stdout.

In front of a stdio server the shim's poll loop does the work, as for entries in an agent's
config. In front of an HTTP server the frames go through a session driver like that of the HTTP
proxy, so that the same code governs both.
"""

from typing import Any

from thoughtgate.core.commands import ToServer
from thoughtgate.core.events import AgentGone, ServerSent
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.front.stdio import StdioFront
from thoughtgate.gate.clock import now
from thoughtgate.gate.event_loop import HeldCallTimer, open_outbox
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.open_governor import open_governor, record_place, refuse_stdout
from thoughtgate.gate.operator_log import operator_log, operator_messages
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
from thoughtgate.transports.stdio import protect_stdout
from thoughtgate.upstream.client import not_sent
from thoughtgate.upstream.connect import open_pool
from thoughtgate.upstream.http_carrier import HttpCarrier
from thoughtgate.wire.message import Fault, Message, RequestId
from thoughtgate.wire.methods import CANCELLED

SESSION = "1"
"""There is one agent, and therefore one session."""


def run_stdio(plan: ProxyPlan) -> int:
    """Serve the agent on stdin and stdout; return the exit code.

    Raises:
        ThoughtGateError: the record or the server cannot be used.
    """
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
    )


def _run_shim(plan: ProxyPlan) -> int:
    governor = _open(plan)
    principal = principal_of(governor.run, by_agent=True)
    authority = LocalAuthority(governor)
    command = plan.surroundings().command(plan.server, plan.settings)
    argv = [command.command, *command.args]
    return PollLoop(argv, _setup(plan), authority, command.env, principal).run()


class HttpServer:
    """The HTTP server behind the agent's session."""

    def __init__(self, carrier: HttpCarrier, driver: SessionDriver, agent: Sink) -> None:
        self._carrier = carrier
        self._driver = driver
        self._agent = agent

    def send(self, frame: ToServer) -> None:
        """Send a frame of the session."""
        message = frame.message
        if message is not None:
            if message.method != CANCELLED or not self._cancel(message):
                self._carrier.post(message.body, frame.data)
        elif frame.key is not None:
            self.failed(frame.key, PeerError("invalid_request", "the frame cannot be read"))

    def took(self, line: bytes, message: Message | Fault) -> None:
        """Handle a message from the server."""
        self._driver.feed(ServerSent(line, now(), message), self._agent)

    def failed(self, ident: RequestId, error: PeerError) -> None:
        """Fail a request that will not be answered."""
        self._driver.feed(not_sent(ident, error), self._agent)

    def lost(self, gone: PeerGone) -> None:
        """Do nothing: the agent learns it from the request that failed."""

    def _cancel(self, message: Message) -> bool:
        """Close the stream of a cancelled request; return whether that replaces the notification."""
        ident: Any = (message.body.get("params") or {}).get("requestId")
        return type(ident) in {str, int} and self._carrier.abandon(ident)


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
    driver = SessionDriver(
        engine, _setup(plan), principal_of(governor.run, by_agent=True), transport=STDIO
    )
    driver.agent = agent
    carrier = HttpCarrier(open_pool(plan.server, plan.environ), tools.of)
    server = HttpServer(carrier, driver, agent)
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
        await carrier.close()
