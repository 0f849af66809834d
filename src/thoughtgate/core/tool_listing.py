"""The gate's own request for a server's tools or prompts, for calls that depend on what they are.

A call that is made before any list must be judged like one after it. The calls wait until the
list is complete; if the server does not give one, they are judged with unknown annotations.
"""

from collections.abc import Mapping
from typing import Any, Final

from thoughtgate.core.commands import Command, JudgeCall, ScreenList
from thoughtgate.core.session_replies import (
    OfferedList,
    OpenRequests,
    PendingRequest,
    to_server_frame,
)
from thoughtgate.policy.call import LIST, Verdict
from thoughtgate.wire.extra_params import bookkeeping_of
from thoughtgate.wire.message import Json, Message, RequestId
from thoughtgate.wire.methods import LISTINGS, named_by
from thoughtgate.wire.replies import render
from thoughtgate.wire.revisions import META

METHOD: Final = "tools/list"

_METHODS: Final = {"prompts/get": "prompts/list"}
"""The list for calls of something other than a tool."""

_NOT_FOUND: Final = -32601
"""JSON-RPC: a server that does not know the method offers nothing of that kind."""

MAX_PAGES: Final = 100
"""Pages of one list; a server that has more is treated like one that does not answer."""

WAIT_S: Final = 10.0
"""How long the server may take for a page."""

DONE: Final = "done"
FAILED: Final = "failed"

LIST_FIRST: Final = Verdict(LIST, "internal")
"""The judge's reply to a call that it cannot judge before it knows the server's tools."""

_PREFIX: Final = "thoughtgate/tools/"


class _Listing:
    """One list that is being fetched, page by page."""

    __slots__ = ("at", "cursor", "meta", "method", "pages", "waiting")

    def __init__(self, method: str, meta: Json) -> None:
        self.method = method
        self.meta = _without_token(meta)
        self.at = 0.0
        self.cursor: str | None = None
        self.pages = 0
        self.waiting: list[RequestId] = []
        """The calls that wait for the list."""


class ToolListings(dict[RequestId, _Listing]):
    """The lists that a session is fetching, by the id of the request; at most one of each kind."""

    __slots__ = ("_abandoned", "_calls", "_count", "_late", "_taken")

    def __init__(
        self,
        calls: Mapping[RequestId, PendingRequest],
        abandoned: dict[RequestId, PendingRequest],
        forwarded: OpenRequests,
        offered: Mapping[RequestId, OfferedList],
    ) -> None:
        """Have calls judged again from the session's tables, and take no id that is in one."""
        super().__init__()
        self._calls = calls
        self._abandoned = abandoned
        self._late = forwarded.late
        self._taken = (calls, abandoned, forwarded, forwarded.late, offered)
        self._count = 0

    def begin(self, key: RequestId, at: float) -> list[Command]:
        """Fetch the tools before a call is judged; calls that arrive meanwhile share the list."""
        asked = self._calls[key]
        method = _METHODS.get(asked.method, METHOD)
        for listing in self.values():
            if listing.method == method:
                listing.waiting.append(key)
                return []
        assert asked.message is not None
        ident = self._new_id()
        meta = (asked.message.body.get("params") or {}).get(META)
        listing = self[ident] = _Listing(method, meta)
        listing.waiting.append(key)
        return self._request_page(ident, listing, at)

    def answered(self, ident: RequestId, message: Message, at: float) -> list[Command]:
        """Have a page screened, which also tells the judge about its tools."""
        listing, result = self[ident], message.body.get("result")
        if _offers_none(message) and listing.method != METHOD:
            result = {LISTINGS[listing.method].member: []}
        listed = result.get(LISTINGS[listing.method].member) if type(result) is dict else None
        if type(result) is not dict or type(listed) is not list or listing.pages >= MAX_PAGES:
            return self.finish(ident, FAILED, at)
        cursor = result.get("nextCursor")
        listing.cursor = cursor if type(cursor) is str and cursor else None
        offered = tuple(entry for entry in listed if type(entry) is dict)
        return [ScreenList(ident, listing.method, offered, at, listing.cursor is None)]

    def screened(self, ident: RequestId, at: float) -> list[Command]:
        """Request the next page; after the last one, have the calls judged that waited."""
        listing = self[ident]
        if listing.cursor is not None:
            return self._request_page(ident, listing, at)
        return self.finish(ident, DONE, at)

    def finish(self, ident: RequestId, outcome: str, at: float) -> list[Command]:
        """Have the calls judged that waited for the list."""
        waiting = self.pop(ident).waiting
        for key in waiting:
            # No verdict will come for a call whose caller left meanwhile, so its id is free again.
            if key not in self._calls:
                self._abandoned.pop(key, None)
        return [self._judge(key, at, outcome) for key in waiting if key in self._calls]

    def end_late(self, at: float) -> list[Command]:
        """Give up a list for which the server takes too long."""
        late = [ident for ident, listing in self.items() if at - listing.at > WAIT_S]
        # An answer that still comes must not be taken for the answer to a request of the agent.
        self._late.update(dict.fromkeys(late, at))
        return [command for ident in late for command in self.finish(ident, FAILED, at)]

    def _new_id(self) -> RequestId:
        """Return an id that no request of the agent has: it would get the unscreened list."""
        while True:
            self._count += 1
            ident = f"{_PREFIX}{self._count}"
            if not any(ident in table for table in self._taken):
                return ident

    def _request_page(self, ident: RequestId, listing: _Listing, at: float) -> list[Command]:
        listing.at = at
        listing.pages += 1
        params: dict[str, Any] = {META: listing.meta} if listing.meta else {}
        if listing.cursor is not None:
            params["cursor"] = listing.cursor
        body = {"jsonrpc": "2.0", "id": ident, "method": listing.method, "params": params}
        return [to_server_frame(render(body), ident)._replace(detached=True)]

    def _judge(self, key: RequestId, at: float, listed: str) -> JudgeCall:
        asked = self._calls[key]
        assert asked.message is not None
        params = asked.message.body.get("params") or {}
        named = named_by(asked.method, params)
        assert not isinstance(named, str)
        raw = asked.message.raw
        return JudgeCall(
            key, asked.method, tuple(named), params, len(raw), asked.modern, at, listed, raw
        )


def _offers_none(message: Message) -> bool:
    """Tell whether a server says that it does not know the method of a list."""
    error = message.body.get("error")
    return type(error) is dict and error.get("code") == _NOT_FOUND


def _without_token(meta: Json) -> dict[str, Json]:
    """Return the bookkeeping of the agent's request, without what belongs to that request alone.

    The rest is part of a call that has no verdict yet.
    """
    kept = bookkeeping_of(meta) if type(meta) is dict else {}
    kept.pop("progressToken", None)
    return kept
