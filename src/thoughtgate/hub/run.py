"""Runs ``serve``: from a loaded config to a hub, and to an exit code.

The order matters: the guardian is forked before anything else runs, stdout is redirected
before anything can print, and the record is closed last.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import uvloop

from thoughtgate.config.listen_settings import ListenSettings
from thoughtgate.core.run_summary import FAILED, SUCCEEDED, TERMINATED
from thoughtgate.errors import EXIT_FAILURE, EXIT_OK, ConfigError, Problem
from thoughtgate.front.http_front import HttpFront, check_address, scheme_of
from thoughtgate.front.pages import Pages
from thoughtgate.front.request_head import PATHS
from thoughtgate.front.shared_sessions import open_shared_sessions
from thoughtgate.front.stdio import StdioFront
from thoughtgate.gate.approvals.console_refusals import ConsoleRefusals
from thoughtgate.gate.approvals.terminal_prompt import open_prompt
from thoughtgate.gate.background import finish, spawn
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.config_requirements import check_connections
from thoughtgate.gate.control_socket import ControlServer
from thoughtgate.gate.governor import LOOK_EVERY_S, Governor
from thoughtgate.gate.keys import check_keys
from thoughtgate.gate.open_governor import (
    key_place,
    open_governor,
    open_tasks,
    record_place,
    store_location,
)
from thoughtgate.gate.reload import Reloader, watch_config
from thoughtgate.gate.run_identity import principal_of
from thoughtgate.gate.running_gates import DIRECTORY, describe_governed
from thoughtgate.gate.tracing import both
from thoughtgate.hub.backend import HubBackend
from thoughtgate.hub.control import operations
from thoughtgate.hub.hub import Hub, hide_nowhere
from thoughtgate.hub.log import open_log
from thoughtgate.hub.namespace import NoSelection, select_namespace
from thoughtgate.hub.servers import named
from thoughtgate.hub.single_servers import SingleServers
from thoughtgate.process.ancestry import find_agent
from thoughtgate.process.guardian import Guardian
from thoughtgate.process.memory import settle_memory
from thoughtgate.stores.tasks import TaskStore
from thoughtgate.telemetry.metric_table import HTTP
from thoughtgate.telemetry.metrics import Metrics
from thoughtgate.transports.stdio import protect_stdout
from thoughtgate.upstream.connect import ServerSetup, config_directory, login_access

_log: Final = logging.getLogger("thoughtgate.serve")

APPLIED_SETTINGS: Final = (
    "servers.*",
    "namespaces.*",
    "default_namespace",
    "separator",
    "manager_tools",
    "holds.connection",
)
"""Settings that ``Hub.apply`` applies while the hub runs."""


@dataclass(frozen=True, slots=True)
class ServePlan:
    """The options of one run of ``serve``."""

    loaded: Loaded
    environ: Mapping[str, str]
    state: str
    namespace: str = ""
    eager: bool = False
    http: tuple[str, int] | None = None
    """Host and port; None for stdio."""
    log_level: str = ""
    audit: str = ""
    profile: str = ""
    refusals: ConsoleRefusals = field(default_factory=ConsoleRefusals)
    """Records what the console refuses."""


def check_plan(plan: ServePlan) -> None:
    """Check whether this run can succeed, before anything is started.

    Raises:
        ConfigError: an unknown namespace, no server at all, or a record that would go to stdout.
    """
    settings, file = plan.loaded.settings, plan.loaded.path or ""
    problems = []
    if plan.namespace:
        ids = [server.id for server in named(settings)]
        chosen = select_namespace(plan.namespace, "", settings.namespaces, ids)
        if isinstance(chosen, NoSelection):
            problems.append(Problem("namespaces", chosen.reason, file))
    if plan.http is None and record_place(plan.loaded, plan.state, plan.audit) == "stdout":
        text = "stdout carries MCP in stdio mode; use file or stderr"
        problems.append(Problem("audit.sink", text, file))
    if problems:
        raise ConfigError(problems)
    check_connections(named(settings), plan.loaded, plan.environ, listens=plan.http is not None)
    check_address(_listen(plan), file)
    if plan.http is not None:
        is_shared = store_location(plan.loaded, plan.state).is_shared
        check_keys(key_place(plan.loaded, plan.state), file, is_shared=is_shared)


def run_serve(plan: ServePlan) -> int:
    """Serve, and return the exit code.

    Raises:
        ConfigError: the config does not fit what was asked; nothing was started.
        RecordError: the record cannot be written; nothing was started.
    """
    check_plan(plan)
    # Forked first, while the process has neither threads nor an event loop.
    guardian = Guardian()
    stdout_fd = protect_stdout() if plan.http is None else 1
    settings = plan.loaded.settings
    log = open_log(
        plan.log_level or settings.telemetry.log_level,
        settings.telemetry.log_format,
        plan.loaded.policy.redactor,
    )
    status = FAILED
    meter = Metrics(HTTP) if plan.http is not None and settings.telemetry.metrics else None
    try:
        loaded = replace(plan.loaded, policy=hide_nowhere(plan.loaded.policy))
        location = store_location(plan.loaded, plan.state)
        # Over stdio, the terminal belongs to the agent.
        prompt = open_prompt(location, settings.approval) if plan.http is not None else None
        governor = open_governor(
            loaded,
            plan.environ,
            plan.state,
            audit=plan.audit,
            tasks=_open_tasks(plan),
            channels=(prompt,) if prompt is not None else (),
            observe=both(log.record, meter.observe if meter is not None else None),
            governed=describe_governed(find_agent()) if plan.http is None else None,
        )
        governor.start(now(), command="serve")
        settle_memory()
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                status = runner.run(_serve(plan, governor, guardian, stdout_fd, meter))
        finally:
            plan.refusals.end()
            if prompt is not None:
                prompt.stop()
            governor.finish(status, now())
    finally:
        guardian.dismiss()
    return EXIT_FAILURE if status == FAILED else EXIT_OK


def _open_tasks(plan: ServePlan) -> TaskStore | None:
    """Open the task store, if callers can prove their identity again after a restart."""
    if plan.http is None or plan.loaded.settings.listen.auth is None:
        return None
    return open_tasks(
        store_location(plan.loaded, plan.state),
        f"serve {plan.loaded.path or '-'} {plan.namespace or '-'}",
    )


async def _serve(
    plan: ServePlan,
    governor: Governor,
    guardian: Guardian,
    stdout_fd: int,
    meter: Metrics | None,
) -> str:
    loaded = plan.loaded
    plan.refusals.record_with(governor)
    principal = principal_of(governor.run, by_agent=plan.http is None)
    location, config = store_location(loaded, plan.state), loaded.path or ""
    logins = login_access(loaded.settings, location, plan.environ, config)
    # An authenticated agent must never use the login of the gate's own user.
    is_known = plan.http is not None and loaded.settings.listen.auth is not None
    hub = Hub(
        loaded.settings,
        governor,
        ServerSetup(
            plan.environ,
            config_directory(loaded.path),
            guardian,
            logins,
            config=config,
            agent_started=loaded.agent_started,
            report=_log.warning,
        ),
        namespace=plan.namespace,
        principal="" if is_known else principal,
    )
    hub.reloader = reloader = watch_config(
        governor,
        loaded,
        plan.environ,
        _log.warning,
        transform=hide_nowhere,
        adopt=hub.adopt,
        applied=APPLIED_SETTINGS,
    )
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, lambda: reloader.reload(now()))
    watching = spawn(_watch(reloader)) if loaded.files else None
    control = await _open_control(plan.state, hub)
    governor.announce(**_facts(plan, hub, governor))
    backend = HubBackend(hub, is_shared=store_location(loaded, plan.state).is_shared)
    try:
        if plan.http is None:
            signalled = await _serve_stdio(backend, principal, stdout_fd, eager=plan.eager)
        else:
            signalled = await _serve_http(plan, backend, principal, meter)
    finally:
        await finish(watching)
        await hub.close()
        if control is not None:
            await control.close()
    return TERMINATED if signalled == signal.SIGINT else SUCCEEDED


async def _watch(reloader: Reloader) -> None:
    """Check the config files even while no calls arrive: servers may have to start or stop."""
    while True:
        await asyncio.sleep(LOOK_EVERY_S)
        reloader.look(now())


async def _serve_stdio(backend: HubBackend, principal: str, stdout_fd: int, *, eager: bool) -> int:
    hub = backend.hub
    front = StdioFront(stdout_fd, content_length=True)
    client = backend.open_stdio(principal, front.agent)
    front.open_requests = lambda: client.open_requests
    front.on_gone = client.agent_left
    hub.start_eager(everything=eager)
    await front.serve(client)
    return front.signalled


async def _serve_http(
    plan: ServePlan, backend: HubBackend, principal: str, meter: Metrics | None
) -> int:
    hub, listen = backend.hub, _listen(plan)
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def stop(number: int) -> None:
        if not stopped.done():
            stopped.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop, number)
    pages = Pages(meter)
    pages.parts["servers"] = lambda: hub.is_ready
    location = store_location(plan.loaded, plan.state)
    front = HttpFront(
        listen,
        backend.authority,
        backend.outbox,
        pages,
        environ=plan.environ,
        keys=key_place(plan.loaded, plan.state).load(),
        # One process serves the port. Gates on other machines are known by their shared store.
        shared=open_shared_sessions(location, is_alone=True),
        anonymous=principal,
        file=plan.loaded.path or "",
        report=_log.warning,
    )
    front.add(PATHS, backend)
    single = SingleServers(hub, front, is_shared=location.is_shared)
    front.listener.find_endpoint = single.find
    try:
        await front.open()
        hub.resume_tasks()
        hub.start_eager(everything=plan.eager)
        _log.info("serving on %s://%s:%d/mcp", scheme_of(listen), listen.host, front.port)
        if listen.admin_port:
            _log.info("admin on http://%s:%d", listen.admin_host, front.admin_port)
        return await stopped
    finally:
        await front.drain()
        await single.close(listen.drain_s)
        front.close()


def _listen(plan: ServePlan) -> ListenSettings:
    """Return the listen settings: the address of the flag, everything else from the config."""
    configured = plan.loaded.settings.listen
    if plan.http is None:
        return replace(configured, transport="stdio")
    host, port = plan.http
    return replace(configured, transport="http", host=host, port=port)


async def _open_control(state: str, hub: Hub) -> ControlServer | None:
    """Open the control socket; a hub without one still serves."""
    control = ControlServer(Path(state, DIRECTORY, f"{os.getpid()}.sock"), operations(hub))
    try:
        await control.open()
    except OSError as error:
        _log.warning("no control socket: %s", error.strerror)
        return None
    return control


def _facts(plan: ServePlan, hub: Hub, governor: Governor) -> dict[str, Any]:
    selection = hub.selection
    return {
        "run_id": governor.run.run_id,
        "namespace": None if isinstance(selection, NoSelection) else selection.name,
        "transport": "stdio" if plan.http is None else "http",
    }
