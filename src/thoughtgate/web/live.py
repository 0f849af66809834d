"""Live updates: one stream of server-sent events per page, fed by the store and the record.

A stream reports that the inbox has changed and, on request, sends the rows of new traffic. The
page fetches everything else itself, so a broken stream loses nothing.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from thoughtgate.core.record_events import MESSAGE
from thoughtgate.errors import StoreError
from thoughtgate.gate.clock import monotonic
from thoughtgate.web.call_pages.event_summary import summarize
from thoughtgate.web.console_context import ConsoleContext, session_of, signed_in

LOOK_EVERY_S: Final = 0.1
"""How often the store and the record are polled. With a shared store, a call is first copied there,
so that more time between two looks would delay it by more than half a second."""

ALIVE_EVERY_S: Final = 15.0
"""How often a comment is sent on an idle stream, so that broken connections are detected."""

TIDY_EVERY_S: Final = 5.0
"""How often requests of gates that no longer run are closed."""

MAX_STREAMS: Final = 24
"""Maximum number of open streams; a browser opens one per tab."""

MAX_ROWS: Final = 100
"""Maximum number of new events sent per poll; the record has all of them."""


FIGURES_EVERY_S: Final = 2.0
"""Minimum time between two reports that the figures of an overview have changed."""


class LiveStream:
    """Serves streams of server-sent events."""

    def __init__(self, context: ConsoleContext) -> None:
        self._context = context
        self._streams = 0

    async def serve(self, request: Request) -> Response:
        """Open a stream for one page."""
        if self._streams >= MAX_STREAMS:
            return Response("too many console pages are open; close some", 503)
        stream = self._stream(request)
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _stream(self, request: Request) -> AsyncIterator[str]:
        self._streams += 1
        try:
            async for text in self._events(request):
                yield text
        finally:
            self._streams -= 1

    async def _events(self, request: Request) -> AsyncIterator[str]:
        query = request.query_params
        every = query.get("every") == "1"
        news = None
        as_rows = query.get("traffic") == "1"
        if as_rows or query.get("calls") == "1":
            news = await run_in_threadpool(self._context.record.follow)
        figures = Figures(self._context) if query.get("figures") == "1" else None
        rev, silent_s, untidy_s = -1, 0.0, 0.0
        # Milliseconds after which the browser opens another stream when this one has ended.
        yield "retry: 1500\n\n"
        while await run_in_threadpool(self._is_signed_in, request):
            untidy_s += LOOK_EVERY_S
            texts: list[str] = []
            try:
                found = await run_in_threadpool(self._look, untidy_s >= TIDY_EVERY_S)
                untidy_s = 0.0 if untidy_s >= TIDY_EVERY_S else untidy_s
                if found != rev:
                    rev = found
                    texts.append(_event("inbox", json.dumps({"rev": rev})))
                if as_rows:
                    texts += await run_in_threadpool(self._rows, request, news, every=every)
                elif news is not None and await run_in_threadpool(_has_calls, news):
                    texts.append(_event("calls", "{}"))
                if figures is not None and await run_in_threadpool(figures.have_changed):
                    texts.append(_event("figures", "{}"))
            except StoreError:
                texts.append(": the store cannot be read\n\n")
            silent_s = 0.0 if texts else silent_s + LOOK_EVERY_S
            if silent_s >= ALIVE_EVERY_S:
                silent_s = 0.0
                texts.append(": alive\n\n")
            for text in texts:
                yield text
            await asyncio.sleep(LOOK_EVERY_S)

    def _is_signed_in(self, request: Request) -> bool:
        """Tell whether the session is still valid; the stream ends with it."""
        session = session_of(request)
        try:
            if session is None or not self._context.sessions.holds(session):
                return False
        except StoreError:
            return False  # the browser opens another stream
        who = signed_in(request)
        # A stream cannot send a new token; the browser opens another stream when this one ends.
        until = session.expires_at if who is None else min(session.expires_at, who.until)
        return self._context.approvals.clock() < until

    def _look(self, tidy: bool) -> int:
        if tidy:
            self._context.approvals.tidy()
        return self._context.approvals.rev()

    def _rows(
        self, request: Request, news: Callable[[], list[dict[str, Any]]] | None, *, every: bool
    ) -> list[str]:
        if news is None:
            return []
        events = [event for event in news() if every or event.get("type") != MESSAGE]
        return [
            _event("row", self._context.render_part(request, "event.html", event=summarize(event)))
            for event in events[-MAX_ROWS:]
        ]


class Figures:
    """Tells when the figures of a page are out of date."""

    def __init__(self, context: ConsoleContext) -> None:
        self._context = context
        self._known = self._state()
        self._told_at = 0.0

    def have_changed(self) -> bool:
        """Return whether there is something new, at most once in ``FIGURES_EVERY_S``."""
        at = monotonic()
        if at - self._told_at < FIGURES_EVERY_S:
            return False
        state = self._state()
        if state == self._known:
            return False
        self._known, self._told_at = state, at
        return True

    def _state(self) -> tuple[object, ...]:
        context = self._context
        integrity = context.integrity.began_at if context.integrity is not None else 0.0
        return (context.record.state(), context.approvals.rev(), integrity)


def _has_calls(news: Callable[[], list[dict[str, Any]]]) -> bool:
    """Tell whether anything happened to a call."""
    return any("call" in event for event in news())


def _event(name: str, data: str) -> str:
    lines = "".join(f"data: {line}\n" for line in data.splitlines() if line.strip())
    return f"event: {name}\n{lines}\n"
