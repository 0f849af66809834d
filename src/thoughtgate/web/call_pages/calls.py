"""The calls page, which searches the ledger, and exports what it finds."""

import json
from collections.abc import Iterator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from thoughtgate.record.export import CSV_CALLS, call_object, csv_lines
from thoughtgate.record.ledger_queries import EXACT
from thoughtgate.web.call_pages.filters import CHOICES, CallSearch, read_search
from thoughtgate.web.console_context import ConsoleContext

SHOWN: Final = 50
"""Calls per page."""

EXPORTED: Final = 10_000
"""Maximum number of calls in an export; ``thoughtgate audit query`` has no maximum."""
EXPORT_STEP: Final = 500
"""Calls that an export reads at once."""

FORMATS: Final = {"jsonl": "application/x-ndjson", "csv": "text/csv"}

SPANS: Final = (
    ("", "any time"),
    ("15m", "15 minutes"),
    ("1h", "1 hour"),
    ("1d", "1 day"),
    ("7d", "7 days"),
)


def calls_page(context: ConsoleContext, request: Request) -> Response:
    """Serve the calls that match the filters, newest first."""
    search = read_search(request)
    now = context.approvals.clock()
    calls = [] if search.faults else context.record.calls(SHOWN + 1, **search.wanted(now))
    older = ""
    if len(calls) > SHOWN:
        calls = calls[:SHOWN]
        end = context.record.page_end(calls[-1])
        older = search.query(before=f"{end[0]!r}_{end[1]}") if end else ""
    asked = search.asked
    return context.render_page(
        request,
        "calls.html",
        calls=calls,
        search=search,
        asked=asked,
        older=older,
        spans=SPANS if asked["since"] in dict(SPANS) else (*SPANS, (asked["since"],) * 2),
        choices=CHOICES,
        exact=[name for name in (*EXACT, "until") if asked[name]],
        exported=EXPORTED,
    )


def export_calls(context: ConsoleContext, request: Request) -> Response:
    """Send the calls that match the filters as JSON Lines or CSV."""
    search = read_search(request)
    name = request.query_params.get("format", "")
    if search.faults or name not in FORMATS:
        text = "; ".join(search.faults) or f"format must be one of {', '.join(FORMATS)}"
        return context.render_message(request, 400, "Nothing was exported", f"{text}.")
    calls = _all_calls(context, search)
    if name == "csv":
        lines = csv_lines(CSV_CALLS, calls)
    else:
        lines = (json.dumps(call_object(call), ensure_ascii=False) + "\n" for call in calls)
    headers = {"content-disposition": f'attachment; filename="calls.{name}"'}
    return StreamingResponse(lines, media_type=FORMATS[name], headers=headers)


def _all_calls(context: ConsoleContext, search: CallSearch) -> Iterator[dict[str, Any]]:
    """Yield the calls in steps, so that a long export needs little memory."""
    wanted, left = search.wanted(context.approvals.clock()), EXPORTED
    while left > 0:
        calls = context.record.calls(min(EXPORT_STEP, left), **wanted)
        yield from calls
        left -= len(calls)
        end = context.record.page_end(calls[-1]) if len(calls) == EXPORT_STEP else None
        if end is None:
            return
        wanted["before"] = end
