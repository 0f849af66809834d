"""Live updates: one stream of server-sent events a page, fed from the store and the record.

A stream tells that the inbox has changed, and where asked brings the rows of new traffic.
The page fetches the rest, so a stream that is cut loses nothing.
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
from thoughtgate.web.happening import tell
from thoughtgate.web.site import Site, session_of

LOOK_EVERY_S: Final = 0.4
"""How soon a page shows what happened; a look costs microseconds."""

ALIVE_EVERY_S: Final = 15.0
"""How often a silent stream shows that it lives."""

TIDY_EVERY_S: Final = 5.0
"""How often questions of gates that are gone are looked for."""

MAX_STREAMS: Final = 24
"""Streams at once; a browser opens one a tab."""

MAX_ROWS: Final = 100
"""New events told in one look; a flood is cut, the record has it all."""


class LiveStream:
    """Serves streams of server-sent events."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._streams = 0

    async def serve(self, request: Request) -> Response:
        """Open a stream for one page."""
        if self._streams >= MAX_STREAMS:
            return Response("too many pages are open", 503)
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
        if query.get("traffic") == "1":
            news = await run_in_threadpool(self._site.record.follow)
        rev, silent_s, untidy_s = -1, 0.0, 0.0
        yield "retry: 1500\n\n"
        while self._is_welcome(request):
            untidy_s += LOOK_EVERY_S
            texts: list[str] = []
            try:
                found = await run_in_threadpool(self._look, untidy_s >= TIDY_EVERY_S)
                untidy_s = 0.0 if untidy_s >= TIDY_EVERY_S else untidy_s
                if found != rev:
                    rev = found
                    texts.append(_event("inbox", json.dumps({"rev": rev})))
                texts += await run_in_threadpool(self._rows, request, news, every=every)
            except StoreError:
                texts.append(": the store cannot be read\n\n")
            silent_s = 0.0 if texts else silent_s + LOOK_EVERY_S
            if silent_s >= ALIVE_EVERY_S:
                silent_s = 0.0
                texts.append(": alive\n\n")
            for text in texts:
                yield text
            await asyncio.sleep(LOOK_EVERY_S)

    def _is_welcome(self, request: Request) -> bool:
        """A stream ends with its session."""
        session = session_of(request)
        if session is None or not self._site.sessions.holds(session):
            return False
        return self._site.desk.clock() < session.expires_at

    def _look(self, tidy: bool) -> int:
        if tidy:
            self._site.desk.tidy()
        return self._site.desk.rev()

    def _rows(
        self, request: Request, news: Callable[[], list[dict[str, Any]]] | None, *, every: bool
    ) -> list[str]:
        if news is None:
            return []
        events = [event for event in news() if every or event.get("type") != MESSAGE]
        return [
            _event("row", self._site.part(request, "event.html", event=tell(event)))
            for event in events[-MAX_ROWS:]
        ]


def _event(name: str, data: str) -> str:
    lines = "".join(f"data: {line}\n" for line in data.splitlines() if line.strip())
    return f"event: {name}\n{lines}\n"
