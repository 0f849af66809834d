"""``proxy --stdio``: one agent on this process's own standard streams.

Before a stdio server the shim does the work, as it does for an agent's own config. Before
an HTTP server the frames travel through a flow like the gateway's, so that both ways are
governed by the same code.
"""

import asyncio
import signal

from thoughtgate.core.events import AgentGone, AgentSent
from thoughtgate.core.session_replies import Setup
from thoughtgate.gate.clock import now
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.open_governor import open_governor, record_place, refuse_stdout
from thoughtgate.gate.operator_log import json_log, voice
from thoughtgate.gate.policy_watch import watch_policy
from thoughtgate.gate.poll_loop import Shim
from thoughtgate.gate.run_identity import principal_of
from thoughtgate.gate.session_driver import Desk, Flow, Outbox, Shared, ToolHeaders
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.proxy.http import ProxyPlan, child_command, run_on_loop, upstream_pool
from thoughtgate.transports.blocking_streams import BlockingStreams
from thoughtgate.transports.stdio import StdioHost, protect_stdout
from thoughtgate.upstream.http_link import HttpLink
from thoughtgate.wire.message import RequestId

SESSION = "1"
"""There is one agent, and so one session."""

DRAIN_S = 5.0
"""How long answers under way may take once the agent has closed its end."""

TICK_S = 1.0


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
            await StdioProxy(plan, governor, stdout).run()
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
        observe=json_log("proxy", plan.loaded),
    )
    say = voice("proxy", plan.loaded, level="warn")
    watch_policy(governor, plan.loaded, plan.environ, say)
    governor.start(now(), server=plan.server.id, command="proxy")
    return governor


def _setup(plan: ProxyPlan) -> Setup:
    return Setup(
        plan.server.id,
        SESSION,
        enforce=plan.loaded.policy.profile == PRODUCTION,
        timeout_s=plan.server.timeout_s,
        max_held=plan.settings.holds.connection,
    )


def _run_shim(plan: ProxyPlan) -> int:
    governor = _open(plan)
    principal = principal_of(governor.run)
    authority = LocalAuthority(governor, plan.server.id, SESSION, principal)
    command = child_command(plan)
    argv = [command.command, *command.args]
    return Shim(argv, _setup(plan), authority, command.env).run()


class StdioProxy:
    """One agent on stdio before one HTTP server."""

    def __init__(self, plan: ProxyPlan, governor: Governor, stdout: int) -> None:
        self._governor = governor
        self._tools = ToolHeaders()
        self._outbox = Outbox(governor)
        self._desk = Desk(governor)
        shared = Shared(
            governor,
            self._outbox,
            self._desk,
            self._tools,
            is_authenticated=False,
            notify=lambda _flow, data: self._link.send(data, None),
            run_alone=lambda _flow, data, key: self._link.send(data, key),
        )
        principal = principal_of(governor.run)
        self._flow = Flow(shared, _setup(plan), principal, is_modern=False)
        self._agent = _Agent(self)
        self._flow.agent = self._agent
        self._flow.person = ""
        self._link = HttpLink(
            upstream_pool(plan.server, plan.environ), self._flow, self._agent, self._tools
        )
        self._streams = BlockingStreams(0, stdout)
        self.host = StdioHost(
            on_line=self._took,
            on_gone=self._left,
            stdin_fd=self._streams.stdin_fd,
            stdout_fd=self._streams.stdout_fd,
        )
        self._gone = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """Serve until the agent leaves or a signal comes."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop)
        await self.host.start()
        self._tick()
        await self._gone.wait()
        await self._finish_open()
        self._desk.withdraw_all("the agent is gone")
        if self._timer is not None:
            self._timer.cancel()
        self._desk.close()
        self._outbox.flush()
        await self._link.close()
        await self.host.close()
        await asyncio.sleep(0)  # The transports close their descriptors in the loop's next turn.
        self._streams.close()

    def to_server(self, data: bytes, key: RequestId | None) -> None:
        """Send a frame to the server."""
        self._link.send(data, key)

    def to_agent(self, data: bytes) -> None:
        """Send a frame to the agent, once the record is written."""
        self._outbox.later(self.host.send, data)

    def _took(self, line: bytes) -> None:
        self._flow.feed(AgentSent(line, now()), self._agent)

    def _left(self) -> None:
        self._flow.feed(AgentGone(now()), self._agent)
        self._outbox.schedule()
        self._gone.set()

    def _stop(self) -> None:
        self._gone.set()

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        at = now()
        self._flow.tick(at)
        self._desk.tell(self._governor.tasks.tick(at))

    async def _finish_open(self) -> None:
        """Let answers under way arrive: their readers may have closed only their own end."""
        for _ in range(int(DRAIN_S / 0.02)):
            if self._flow.session.is_idle:
                return
            await asyncio.sleep(0.02)


class _Agent:
    """The agent on stdio, as the session's commands see it."""

    def __init__(self, proxy: StdioProxy) -> None:
        self._proxy = proxy

    def take(self, data: bytes, key: RequestId | None) -> None:
        """A frame for the agent."""
        del key
        self._proxy.to_agent(data)

    def forward(self, data: bytes, key: RequestId | None) -> None:
        """A frame for the server."""
        self._proxy.to_server(data, key)

    def can_be_asked(self, *, modern: bool) -> bool:
        """A line carries everything."""
        del modern
        return True

    def held(self, key: RequestId) -> None:
        """Pipes need no keeping alive."""

    def withdrawn(self) -> None:
        """There is no exchange to end."""

    def keep_alive(self, at: float) -> None:
        """As for a held call."""
