"""``proxy``: one server behind the gate, with stdio or HTTP on either side.

This module decides what is run and where it listens, before a child process or socket exists.
The traffic itself is handled by the HTTP endpoint or by the stdio relay.
"""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from thoughtgate.config.checks import is_loopback
from thoughtgate.config.listen_settings import ListenSettings
from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.core.record_events import Record
from thoughtgate.errors import CAUSES, ConfigError, Problem, UsageError
from thoughtgate.front.http_front import HttpFront, check_address, scheme_of
from thoughtgate.front.pages import Pages
from thoughtgate.front.request_head import PATHS
from thoughtgate.front.shared_sessions import open_shared_sessions
from thoughtgate.front.transparent import TransparentBackend
from thoughtgate.gate.approvals.console_refusals import ConsoleRefusals
from thoughtgate.gate.approvals.terminal_prompt import open_prompt
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.config_requirements import check_connections
from thoughtgate.gate.event_loop import HeldCallTimer, open_outbox
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.keys import check_keys
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.open_governor import (
    identity_of,
    key_place,
    open_governor,
    open_tasks,
    store_location,
)
from thoughtgate.gate.operator_log import (
    operator_log,
    operator_messages,
    server_log,
)
from thoughtgate.gate.reload import watch_config
from thoughtgate.gate.run_identity import principal_of
from thoughtgate.gate.tracing import both
from thoughtgate.process.guardian import Guardian
from thoughtgate.process.memory import settle_memory
from thoughtgate.proxy.worker_metrics import WorkerMetrics
from thoughtgate.telemetry.metric_table import HTTP
from thoughtgate.telemetry.metrics import Metrics
from thoughtgate.transports.child_process import Watcher
from thoughtgate.transports.origin import parse_origin
from thoughtgate.upstream.connect import ServerSetup, config_directory, http_sessions, login_access
from thoughtgate.upstream.login_access import LoginAccess

ANONYMOUS_ID: Final = "upstream"
"""The name in rules and on the record of a server that is given by its URL only."""


@dataclass(frozen=True, slots=True)
class ProxyPlan:
    """What a proxy runs, after all checks."""

    loaded: Loaded
    server: ServerSettings
    listen: ListenSettings
    environ: Mapping[str, str]
    state: str
    audit: str = ""
    numbers: str = ""
    """The directory for the metrics of all workers; empty if there is only one."""
    count_with: str = ""
    """The process that started all workers, which count limits together; empty if only one."""
    is_worker: bool = False
    """Whether other processes share the port."""
    relay_key: str = field(default="", repr=False)
    """The key of the shim in front, to which this proxy reports failures of its server."""
    refusals: ConsoleRefusals = field(default_factory=ConsoleRefusals)
    """Records what the console refuses."""

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings

    def server_setup(self, watcher: Watcher | None = None) -> ServerSetup:
        """Return the environment of the server; ``watcher`` ends its process with the gate."""
        return ServerSetup(
            self.environ,
            config_directory(self.loaded.path),
            watcher,
            self.logins(),
            config=self.loaded.path or "",
            agent_started=self.loaded.agent_started,
            report=operator_messages("proxy", self.loaded, level="warn"),
        )

    def logins(self) -> LoginAccess:
        """Return the tokens of a server that needs a login."""
        location = store_location(self.loaded, self.state)
        return login_access(self.settings, location, self.environ, self.loaded.path or "")


def plan_proxy(
    loaded: Loaded,
    environ: Mapping[str, str],
    state: str,
    *,
    server: str = "",
    stdio: bool = False,
    listen: str = "",
    upstream: str = "",
    workers: int = 0,
    audit: str = "",
) -> ProxyPlan:
    """Decide what runs.

    Raises:
        ConfigError: the config does not say which server, or its entry is unusable.
        UsageError: the flags contradict each other.
    """
    if stdio and listen:
        raise UsageError("--stdio and --listen exclude each other")
    chosen = _choose_server(loaded.settings, server, upstream, loaded.path or "")
    _check_server(chosen, environ, loaded.path or "")
    address = _listen_address(loaded.settings.listen, stdio=stdio, listen=listen)
    check_connections([chosen], loaded, environ, listens=address.transport == "http")
    if workers:
        address = replace(address, workers=workers)
    if address.workers > 1 and chosen.command and chosen.isolation == "session":
        raise UsageError("several workers cannot share sessions that have a process of their own")
    check_address(address, loaded.path or "")
    if address.transport == "http":
        is_shared = store_location(loaded, state).is_shared
        check_keys(key_place(loaded, state), loaded.path or "", is_shared=is_shared)
    return ProxyPlan(loaded, chosen, address, environ, state, audit)


def _choose_server(settings: Settings, server: str, upstream: str, file: str) -> ServerSettings:
    if upstream:
        known = settings.servers.get(server or ANONYMOUS_ID)
        base = known if known is not None else ServerSettings(server or ANONYMOUS_ID)
        return replace(base, url=upstream, command="", args=())
    named = {key: one for key, one in settings.servers.items() if key != "*" and one.enabled}
    if server:
        if server in settings.servers and server not in named:
            raise UsageError(f"{server}: {CAUSES['disabled'][1]} (enabled: false)")
        if server not in named:
            known_ids = ", ".join(sorted(named)) or "none"
            raise UsageError(f"there is no server {server!r} in the config; it has: {known_ids}")
        return named[server]
    if len(named) == 1:
        return next(iter(named.values()))
    disabled = sorted(
        key for key, one in settings.servers.items() if key != "*" and not one.enabled
    )
    if not named and disabled:
        problem = f"{', '.join(disabled)}: {CAUSES['disabled'][1]} (enabled: false)"
    elif not named:
        problem = "there is no server to put behind the gate; add one, or use --upstream URL"
    else:
        problem = f"several servers are named; choose with --server ({', '.join(sorted(named))})"
    raise ConfigError([Problem("servers", problem, file)])


def _check_server(server: ServerSettings, environ: Mapping[str, str], file: str) -> None:
    if not server.url:
        return
    key = f"servers.{server.id}"
    try:
        origin = parse_origin(server.url)
    except ValueError as error:
        problem = f"{error}; the config and --upstream take one such as http://127.0.0.1:9000/mcp"
        raise ConfigError([Problem(f"{key}.url", problem, file)]) from None
    if server.auth is None:
        return
    if origin.scheme != "https" and not is_loopback(origin.host):
        problem = "a token goes over https only"
        raise ConfigError([Problem(f"{key}.url", problem, file)])
    for name in ("token_env", "client_secret_env"):
        variable = getattr(server.auth, name)
        if variable and not environ.get(variable, "").strip():
            problem = f"the variable {variable} is not set"
            raise ConfigError([Problem(f"{key}.auth.{name}", problem, file)])


def _listen_address(configured: ListenSettings, *, stdio: bool, listen: str) -> ListenSettings:
    if stdio:
        return replace(configured, transport="stdio")
    if not listen:
        return configured
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535:  # noqa: PLR2004  the largest port
        raise UsageError(f"--listen takes HOST:PORT, such as 127.0.0.1:8080 (got {listen!r})")
    return replace(
        configured, transport="http", host=host.strip("[]") or "127.0.0.1", port=int(port)
    )


class HttpProxy:
    """A proxy that listens on HTTP."""

    def __init__(self, plan: ProxyPlan, watcher: Watcher | None = None) -> None:
        self.plan = plan
        self._watcher = watcher
        self.port = 0
        self.admin_port = 0
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Stop serving gracefully."""
        self._stop.set()

    async def run(
        self, on_ready: Callable[["HttpProxy"], None], *, reuse_port: bool = False
    ) -> None:
        """Serve until stopped.

        Raises:
            ThoughtGateError: the server, the address or the record cannot be used.
        """
        plan = self.plan
        has_metrics = plan.settings.telemetry.metrics
        shared = WorkerMetrics(plan.numbers) if has_metrics and plan.numbers else None
        meter = shared or (Metrics(HTTP) if has_metrics else None)
        pages = Pages(meter)
        telling = shared.telling(pages.refresh) if shared else contextlib.nullcontext()
        gate = f"proxy {plan.loaded.path or '-'} {plan.server.id}"
        location = store_location(plan.loaded, plan.state)
        prompt = open_prompt(location, plan.settings.approval)
        governor = open_governor(
            plan.loaded,
            plan.environ,
            plan.state,
            audit=plan.audit,
            observe=both(operator_log("proxy", plan.loaded), meter.observe if meter else None),
            # Without authentication, a caller could not prove after a restart that a task is theirs.
            tasks=open_tasks(location, gate) if plan.listen.auth is not None else None,
            channels=(prompt,) if prompt is not None else (),
            count_with=plan.count_with,
        )
        governor.identify(plan.server.id, identity_of(plan.server))
        governor.on_server = server_log(plan.loaded)
        say = operator_messages("proxy", plan.loaded, level="warn")
        watch = watch_config(governor, plan.loaded, plan.environ, say)
        # Only the main thread receives signals; in others, a changed file is noticed by polling.
        with contextlib.suppress(RuntimeError, ValueError):
            asyncio.get_running_loop().add_signal_handler(
                signal.SIGHUP, lambda: watch.reload(now())
            )
        governor.start(now(), server=plan.server.id, command="proxy")
        plan.refusals.record_with(governor)
        status = "FAILED"
        try:
            async with telling:
                await self._serve(governor, pages, on_ready, reuse_port=reuse_port)
            status = "SUCCEEDED"
        finally:
            plan.refusals.end()
            if prompt is not None:
                prompt.stop()
            governor.finish(status, now())

    async def _serve(
        self,
        governor: Governor,
        pages: Pages,
        on_ready: Callable[["HttpProxy"], None],
        *,
        reuse_port: bool,
    ) -> None:
        plan, listen = self.plan, self.plan.listen
        authority = LocalAuthority(governor, is_authenticated=listen.auth is not None)
        timer, outbox = HeldCallTimer(authority), open_outbox(authority)

        def note(record: Record) -> None:
            authority.note(record)
            outbox.schedule()

        around = plan.server_setup(self._watcher)
        upstream = around.open_upstream(plan.server, plan.settings, note)
        location = store_location(plan.loaded, plan.state)
        front = HttpFront(
            listen,
            authority,
            outbox,
            pages,
            environ=plan.environ,
            keys=key_place(plan.loaded, plan.state).load(),
            shared=open_shared_sessions(location, is_alone=not plan.is_worker),
            anonymous=principal_of(governor.run),
            file=plan.loaded.path or "",
            server=plan.server.id,
            report=operator_messages("proxy", plan.loaded, level="warn"),
        )
        setup = http_sessions(plan.server, plan.settings, plan.loaded.policy.profile)
        is_shared = location.is_shared
        backend = TransparentBackend(setup, upstream, authority, outbox, is_shared=is_shared)
        front.add(PATHS, backend)
        pages.parts["server"] = lambda: upstream.is_up
        try:
            await upstream.start()
            await front.open(reuse_port=reuse_port)
            self.port, self.admin_port = front.port, front.admin_port
            backend.resume_tasks(front.auth_method)
            on_ready(self)
            await self._stop.wait()
        finally:
            # Calls in progress need the server until they are answered; ``front.close`` answers
            # those that are still open after that.
            await front.drain()
            await backend.detached.finish(listen.drain_s)
            await upstream.close()
            await around.close()
            front.close()
            timer.close()


def run_http(plan: ProxyPlan, announce: Callable[[str], None], *, reuse_port: bool = False) -> None:
    """Serve HTTP in this process until a signal ends it."""
    # Forked before there are threads, locks or open files to inherit.
    guardian = Guardian() if plan.server.command else None
    raise_descriptor_limit()

    def ready(proxy: HttpProxy) -> None:
        settle_memory()
        host = f"[{plan.listen.host}]" if ":" in plan.listen.host else plan.listen.host
        announce(f"listening on {scheme_of(plan.listen)}://{host}:{proxy.port}/mcp")
        if proxy.admin_port:
            announce(f"admin on http://{plan.listen.admin_host}:{proxy.admin_port}")

    async def main() -> None:
        proxy = HttpProxy(plan, guardian)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, proxy.stop)
        await proxy.run(ready, reuse_port=reuse_port)

    try:
        run_on_loop(main)
    finally:
        if guardian is not None:
            guardian.dismiss()


def run_on_loop(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run on uvloop; on Windows, where it does not exist, on asyncio's own loop."""
    factory = None
    if sys.platform != "win32":
        import uvloop  # only the HTTP side needs it

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())


def raise_descriptor_limit() -> None:
    """Raise the limit of open connections to the maximum for this user."""
    import resource  # not on every platform

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
