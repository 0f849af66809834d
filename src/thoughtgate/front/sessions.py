"""The sessions of revisions before 2026-07-28 over HTTP: their ids and what they hold.

A server's session id is handed to the agent with a seal that binds it to the agent who
opened it. Whoever shows an id that was not sealed for him gets the same answer as for an
id that never was, and the server is not asked. The seal needs no table: another worker,
or the same gate after a restart, can check it.
"""

import base64
import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from thoughtgate.gate.clock import monotonic

if TYPE_CHECKING:
    from thoughtgate.front.peer import Peer

MAX_ID: Final = 1024
"""Characters of a session id, ours or a server's."""

MAX_ENDED: Final = 10_000
"""Ended sessions whose ids are remembered, so that their seals open nothing any more."""

_MAC_BYTES: Final = 15
_SEPARATOR: Final = "."


class HttpSession:
    """One session."""

    __slots__ = ("ident", "last_used", "peer", "principal", "upstream")

    def __init__(self, ident: str, upstream: str, principal: str, peer: "Peer") -> None:
        self.ident = ident
        """The id as the agent knows it."""
        self.upstream = upstream
        """The id as the server knows it."""
        self.principal = principal
        self.peer = peer
        self.last_used = monotonic()


class SessionTable:
    """The sessions this process knows."""

    def __init__(self, key: bytes, *, limit: int, idle_s: float) -> None:
        self._key = key
        self._limit = limit
        self._idle_s = idle_s
        self._entries: OrderedDict[str, HttpSession] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self.on_dropped: Callable[[HttpSession], None] = lambda _entry: None
        """Told of every session that was not ended but is no longer known."""

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> list[HttpSession]:
        """Return every session, the longest unused first."""
        return list(self._entries.values())

    def seal(self, upstream: str, principal: str) -> str:
        """Return the id that an agent is given for a server's."""
        return f"{upstream}{_SEPARATOR}{self._mac(upstream, principal)}"

    def find(
        self, ident: str, principal: str, make_peer: "Callable[[], Peer] | None"
    ) -> HttpSession | None:
        """Return the session an agent names; None when it is not his, or there is no such.

        With ``make_peer`` a session that another process opened is taken on.
        """
        entry = self._entries.get(ident)
        if entry is None:
            if make_peer is None or ident in self._ended:
                return None
            upstream, _, shown = ident.rpartition(_SEPARATOR)
            if not upstream or len(ident) > MAX_ID:
                return None
            if not hmac.compare_digest(shown.encode(), self._mac(upstream, principal).encode()):
                return None
            entry = self.open(upstream, principal, make_peer())
        elif entry.principal != principal:
            return None
        self.touch(entry.ident)
        return entry

    def touch(self, ident: str) -> None:
        """A session is in use."""
        entry = self._entries.get(ident)
        if entry is not None:
            entry.last_used = monotonic()
            self._entries.move_to_end(ident)

    def open(self, upstream: str, principal: str, peer: "Peer") -> HttpSession:
        """Enter a session that a server opened; the longest idle one makes room if need be."""
        entry = HttpSession(self.seal(upstream, principal), upstream, principal, peer)
        before = self._entries.pop(entry.ident, None)
        if before is not None:
            self.on_dropped(before)
        if len(self._entries) >= self._limit:
            self._make_room()
        self._entries[entry.ident] = entry
        return entry

    def forget(self, ident: str) -> HttpSession | None:
        """A session has ended, and its seal with it."""
        self._ended[ident] = None
        if len(self._ended) > MAX_ENDED:
            self._ended.popitem(last=False)
        return self._entries.pop(ident, None)

    def expire(self) -> list[HttpSession]:
        """Forget and return the sessions that were unused for too long and have nothing open."""
        oldest = monotonic() - self._idle_s
        gone = []
        for entry in self._entries.values():
            if entry.last_used > oldest:
                break
            if not entry.peer.is_busy:
                gone.append(entry)
        for entry in gone:
            del self._entries[entry.ident]
            self.on_dropped(entry)
        return gone

    def _make_room(self) -> None:
        for entry in self._entries.values():
            if not entry.peer.is_busy:
                del self._entries[entry.ident]
                self.on_dropped(entry)
                return

    def _mac(self, upstream: str, principal: str) -> str:
        text = f"{len(principal)}:{principal}{upstream}".encode()
        digest = hmac.new(self._key, text, hashlib.sha256).digest()[:_MAC_BYTES]
        return base64.b32encode(digest).decode().lower()
