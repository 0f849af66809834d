"""The page of gates: those on this machine with their servers, and those that share the store."""

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from thoughtgate.record.call_rows import parse_time
from thoughtgate.status.overview import describe_server, gather_gates
from thoughtgate.status.shared_gates import describe_shared, gather_shared
from thoughtgate.web.console_context import ConsoleContext

TONES: Final = {
    **dict.fromkeys(("running", "up"), "good"),
    **dict.fromkeys(("starting", "waiting", "stopping", "degraded"), "wait"),
    **dict.fromkeys(("failed", "down", "lost", "failed_to_start", "gone"), "bad"),
}
"""How the states of servers and gates are coloured; the word itself is always shown too."""


def gates_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the gates with what they report about their servers."""
    gates = gather_gates(context.state)
    for gate in gates:
        gate["servers"] = [describe_server(one) for one in gate.get("servers", ())]
        gate["since"] = parse_time(str(gate.get("started_at")))
    return context.render_page(
        request, "gates.html", gates=gates, store=_shared(context), tones=TONES
    )


def _shared(context: ConsoleContext) -> dict[str, Any] | None:
    """Return the gates of all machines; None if only this machine uses the store."""
    location = context.location
    if location is None or not location.is_shared:
        return None
    _, store = gather_shared(location)
    return {**store, "gates": [describe_shared(gate) for gate in store["gates"]]}
