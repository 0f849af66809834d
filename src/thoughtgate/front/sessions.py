"""HTTP sessions of revisions before 2026-07-28: their ids and their peers.

The agent gets the server's session id with a MAC that binds it to the agent's principal. An
id that was issued to another principal gets the same response as an unknown id, and the
server is not contacted. The MAC needs no shared table: another worker, or the same gate
after a restart, can verify it.
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
"""Maximum length of a session id, the agent's or the server's, in characters."""

SESSION_ENDED: Final = "the session has ended"
"""Why the requests of a session that ends are not answered by the server."""

MAX_ENDED: Final = 10_000
"""Number of ended sessions that are remembered, so that their ids stay invalid."""

# 120 bits: more than can be guessed, and base32 encodes them without padding.
_MAC_BYTES: Final = 15
_SEPARATOR: Final = "."


class HttpSession:
    """One HTTP session."""

    __slots__ = ("ident", "last_used", "peer", "principal", "upstream")

    def __init__(self, ident: str, upstream: str, principal: str, peer: "Peer") -> None:
        self.ident = ident
        """The id as the agent knows it."""
        self.upstream = upstream
        """The id as the server knows it."""
        self.principal = principal
        self.peer = peer
        self.last_used = monotonic()


class SessionLimit:
    """Limits the sessions of all endpoints of a listener together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tables: list[SessionTable] = []
        self._opening: set[Peer] = set()
        """Peers for which a place is reserved: their ``initialize`` has no response yet."""

    def add(self, table: "SessionTable") -> None:
        """Count the sessions of a table."""
        self._tables.append(table)

    def remove(self, table: "SessionTable") -> None:
        """Stop counting the sessions of a table that is no longer used."""
        if table in self._tables:
            self._tables.remove(table)

    def make_room(self) -> bool:
        """Return whether a session can be opened; if need be, drop the longest idle one."""
        if sum(map(len, self._tables)) + len(self._opening) < self._limit:
            return True
        idle = [(entry, table) for table in self._tables if (entry := table.longest_idle())]
        if not idle:
            return False
        entry, table = min(idle, key=lambda one: one[0].last_used)
        table.drop(entry)
        return True

    def reserve(self, peer: "Peer") -> None:
        """Keep a place for a session that is being opened; ``make_room`` found one."""
        self._opening.add(peer)

    def release(self, peer: "Peer") -> bool:
        """Give up the place of a peer; return whether it had one."""
        if peer not in self._opening:
            return False
        self._opening.discard(peer)
        return True


class SessionTable:
    """The sessions of one endpoint that this process knows."""

    def __init__(self, key: bytes, limit: SessionLimit, *, idle_s: float) -> None:
        self._key = key
        self.limit = limit
        self._idle_s = idle_s
        self._entries: OrderedDict[str, HttpSession] = OrderedDict()
        self._ended: OrderedDict[str, None] = OrderedDict()
        self.on_dropped: Callable[[HttpSession], None] = lambda _entry: None
        """Called with every session that was dropped rather than ended."""
        limit.add(self)

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> list[HttpSession]:
        """Return every session, the least recently used first."""
        return list(self._entries.values())

    def seal(self, upstream: str, principal: str) -> str:
        """Return the agent's id for a session id of the server."""
        return f"{upstream}{_SEPARATOR}{self._mac(upstream, principal)}"

    def find(
        self, ident: str, principal: str, make_peer: "Callable[[], Peer] | None"
    ) -> HttpSession | None:
        """Return the session with this id; None if it is unknown or belongs to another principal.

        With ``make_peer``, a session that another process opened is continued here, if there is
        room for it.
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
            if not self.limit.make_room():
                return None
            entry = self.open(upstream, principal, make_peer())
        elif entry.principal != principal:
            return None
        self.touch(entry.ident)
        return entry

    def touch(self, ident: str) -> None:
        """Note that a session is in use."""
        entry = self._entries.get(ident)
        if entry is not None:
            entry.last_used = monotonic()
            self._entries.move_to_end(ident)

    def open(self, upstream: str, principal: str, peer: "Peer") -> HttpSession:
        """Add a session that a server opened, in the place that was reserved for its peer."""
        entry = HttpSession(self.seal(upstream, principal), upstream, principal, peer)
        before = self._entries.pop(entry.ident, None)
        if before is not None:
            self.on_dropped(before)
        if not self.limit.release(peer):
            self.limit.make_room()
        self._entries[entry.ident] = entry
        return entry

    def forget(self, ident: str) -> HttpSession | None:
        """Remove a session that has ended, and make its id invalid."""
        self._ended[ident] = None
        if len(self._ended) > MAX_ENDED:
            self._ended.popitem(last=False)
        return self._entries.pop(ident, None)

    def expire(self) -> list[HttpSession]:
        """Remove and return the sessions that are idle for too long and have no open request."""
        oldest = monotonic() - self._idle_s
        gone = []
        for entry in self._entries.values():
            if entry.last_used > oldest:
                break
            if not entry.peer.is_busy:
                gone.append(entry)
        for entry in gone:
            self.drop(entry)
        return gone

    def longest_idle(self) -> HttpSession | None:
        """Return the least recently used session without an open request."""
        return next((one for one in self._entries.values() if not one.peer.is_busy), None)

    def drop(self, entry: HttpSession) -> None:
        """Remove a session that did not end by itself."""
        del self._entries[entry.ident]
        self.on_dropped(entry)

    def _mac(self, upstream: str, principal: str) -> str:
        # The length prefix keeps two different pairs from producing the same text.
        text = f"{len(principal)}:{principal}{upstream}".encode()
        digest = hmac.new(self._key, text, hashlib.sha256).digest()[:_MAC_BYTES]
        return base64.b32encode(digest).decode().lower()
