"""The pages about servers: their state at the gates, their tools and calls, and commands to them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from thoughtgate.core.approval import Refusal
from thoughtgate.core.envelope import render_time
from thoughtgate.errors import PeerError, PeerGone
from thoughtgate.status.agent_servers import ungoverned_servers
from thoughtgate.status.definition_history import DefinitionHistory
from thoughtgate.status.overview import gather_gates
from thoughtgate.status.server_control import ACTIONS, ask_gate, read_log
from thoughtgate.status.server_status import GateServer, ServerStatus, gather_servers
from thoughtgate.stores.pins import ACCEPTED, REFUSED
from thoughtgate.web.console_context import ConsoleContext
from thoughtgate.web.server_sign_in import principal_at

FORM: Final = "definitions"
CONTROL_FORM: Final = "control"

LISTS: Final = {
    "tools/list": "tool",
    "resources/list": "resource",
    "resources/templates/list": "resource",
    "prompts/list": "prompt",
}

OWN: Final = "thoughtgate"
"""The name under which a hub lists its own tools, which is not a server."""

MAX_NAME: Final = 2000
DAYS: Final = 7
"""The days whose calls the pages count, including today."""

TONES: Final = {
    **dict.fromkeys(("running",), "good"),
    **dict.fromkeys(("starting", "stopping", "degraded", "needs login"), "wait"),
    **dict.fromkeys(("failed", "not governed"), "bad"),
}
"""How the states of servers are coloured; the word itself is always shown too."""


def find_servers(context: ConsoleContext, since: float) -> list[ServerStatus]:
    """Return all servers: those of the gates, in the record, and with pins."""
    known = DefinitionHistory(context.approvals.pins()).names()
    names = (one for one in (*known, *context.record.servers().servers) if one != OWN)
    totals = context.record.totals("server", since)
    return gather_servers(gather_gates(context.state), names, totals)


async def servers_page(context: ConsoleContext, request: Request) -> Response:
    """Serve all servers, and the sign-ins to remote servers."""
    logins = context.logins
    rows = await logins.rows(principal_at(context, request)) if logins is not None else []
    noted = request.query_params.get("signed_in", "")[:64]

    def render() -> Response:
        since = _since(context)
        offered = context.record.servers().servers
        return context.render_page(
            request,
            "servers.html",
            servers=find_servers(context, since),
            offered=offered,
            changed={one.server for one in context.approvals.definitions().servers()},
            ungoverned=ungoverned_servers(Path(context.state)),
            logins=rows,
            noted=noted,
            **_frame(since),
        )

    return await run_in_threadpool(render)


async def server_page(context: ConsoleContext, request: Request) -> Response:
    """Serve one server with its gates, its tools and its log."""
    name = request.query_params.get("name", "")[:MAX_NAME]
    done = request.query_params.get("done", "")[:16]

    def render() -> Response:
        since = _since(context)
        server = next((one for one in find_servers(context, since) if one.name == name), None)
        if server is None:
            text = "No gate, record or pin knows a server of this name."
            return context.render_message(request, 404, "Server not found", text)
        return context.render_page(
            request,
            "server.html",
            server=server,
            tools=_tools(context, name, since),
            logs=[(gate, *_log(context, gate, name)) for gate in server.gates if gate.can_control],
            done=done if done in ACTIONS else "",
            **_frame(since),
        )

    return await run_in_threadpool(render)


async def tool_page(context: ConsoleContext, request: Request) -> Response:
    """Serve one tool with its calls, its definition and what changed in it."""
    query = request.query_params
    server, kind, name = (query.get(one, "")[:MAX_NAME] for one in ("server", "kind", "name"))

    def render() -> Response:
        since = _since(context)
        definitions = DefinitionHistory(context.approvals.pins()).about(server, kind, name)
        totals = context.record.totals("tool", since, server).get(name)
        if not definitions and totals is None:
            text = "No definition of this tool is pinned, and it was not called lately."
            return context.render_message(request, 404, "Tool not found", text)
        return context.render_page(
            request,
            "tool.html",
            server=server,
            kind=kind or "tool",
            name=name,
            totals=totals,
            definitions=definitions,
            calls=context.record.calls(10, since, server=server, tool=name),
            **_frame(since),
        )

    return await run_in_threadpool(render)


async def control_server(context: ConsoleContext, request: Request) -> Response:
    """Start, stop or restart a server."""
    return await context.apply_form(request, _control, "Nothing was changed.")


def _control(context: ConsoleContext, request: Request, form: dict[str, str]) -> Response:
    gate, server, action = (form.get(one, "") for one in ("gate", "server", "action"))
    if not context.verify_form(request, form, CONTROL_FORM, gate, server):
        text = "Nothing was changed: the form was already submitted or has expired."
        return context.render_message(request, 403, "Invalid form", text)
    # Only gates of this machine: elsewhere, their process ids and sockets mean nothing.
    if action not in ACTIONS or not gate.isdecimal():
        return context.render_message(request, 400, "Nothing was changed", "Choose what to do.")
    try:
        ask_gate(context.state, int(gate), action, server)
    except (PeerGone, PeerError) as error:
        return context.render_message(request, 409, "Nothing was changed", f"{error}.")
    address = urlencode({"name": server, "done": action})
    return RedirectResponse(f"/servers/server?{address}", 303)


async def changes_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the changed definitions that nobody has accepted."""
    done = request.query_params.get("done", "")[:16]

    def render() -> Response:
        servers = context.approvals.definitions().servers()
        return context.render_page(request, "changes.html", servers=servers, done=done)

    return await run_in_threadpool(render)


async def decide_changes(context: ConsoleContext, request: Request) -> Response:
    """Accept or refuse what a server changed."""
    return await context.apply_form(request, _decide, "Nothing was decided.")


def _decide(context: ConsoleContext, request: Request, form: dict[str, str]) -> Response:
    key, shown = form.get("server", ""), form.get("shown", "")
    if not context.verify_form(request, form, FORM, key, shown):
        text = "Nothing was decided: the form was already submitted or has expired."
        return context.render_message(request, 403, "Invalid form", text)
    status = ACCEPTED if form.get("decision") == "accept" else REFUSED
    by, at = context.reviewer(request), context.approvals.clock()
    decided = context.approvals.definitions().decide(key, shown, status, by, at)
    if isinstance(decided, Refusal):
        code = 403 if decided.kind in {"not_allowed", "self"} else 409
        return context.render_message(request, code, "Nothing was decided", f"{decided.text}.")
    return RedirectResponse(f"/servers/changes?done={status}", 303)


def _since(context: ConsoleContext) -> float:
    """Return the start of the days that are counted, for which the ledger has totals."""
    return context.record.whole_days(context.approvals.clock(), DAYS)


def _frame(since: float) -> dict[str, Any]:
    return {"tones": TONES, "days": DAYS, "link": link_calls(since)}


def link_calls(since: float) -> Callable[..., str]:
    """Return a function that returns the address of calls since a time, by filters."""

    def link(**filters: str) -> str:
        given = {name: word for name, word in filters.items() if word}
        return "/calls?" + urlencode({**given, "since": render_time(since)})

    return link


def _log(context: ConsoleContext, gate: GateServer, server: str) -> tuple[list[str], str]:
    """Return the last lines of a server's log at a gate, or else why there are none."""
    try:
        return read_log(context.state, gate.gate, server), ""
    except (PeerGone, PeerError) as error:
        return [], str(error)


def _tools(context: ConsoleContext, server: str, since: float) -> list[dict[str, Any]]:
    """Return what a server offers, with calls and the state of each definition."""
    pins = DefinitionHistory(context.approvals.pins()).tools(server)
    totals = context.record.totals("tool", since, server)
    offered = context.record.servers().servers.get(server)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for (kind, name), line in pins.items():
        found[kind, name] = {"pin": line}
    for method, entries in offered.lists.items() if offered is not None else ():
        for entry in entries.values():
            found.setdefault((LISTS.get(method, "tool"), entry.name), {})["entry"] = entry
    named = {name for _, name in found}
    for name in totals:
        if name not in named:
            # Called, but neither offered nor pinned any more; the totals do not tell its kind.
            found["tool", name] = {}
    rows = [
        {"kind": kind, "name": name, "pin": None, "entry": None, "totals": totals.get(name), **one}
        for (kind, name), one in found.items()
    ]
    return sorted(
        rows, key=lambda row: (-(row["totals"].calls if row["totals"] else 0), row["name"])
    )
