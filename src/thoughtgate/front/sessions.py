"""HTTP sessions of revisions before 2026-07-28: their ids and their peers.

The agent gets the server's session id with what is known of its handshake, and a MAC that binds
both to the agent's principal. An id that was issued to another principal gets the same response as
an unknown id, and the server is not contacted. The MAC needs no shared table: another worker,
another gate with the same keys, or the same gate after a restart can verify it.
"""

import base64
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from thoughtgate.front.session_handshake import MAX_SEALED, Handshake, parse_handshake
from thoughtgate.gate.clock import monotonic, now
from thoughtgate.gate.keys import KeyRing

if TYPE_CHECKING:
    from thoughtgate.front.peer import Peer

MAX_ID: Final = 1024
"""Maximum length of a session id, the agent's or the server's, in characters."""

MAX_SEALED_ID: Final = MAX_ID + MAX_SEALED + 32
"""Maximum length of an id that the gate itself has issued."""

SESSION_ENDED: Final = "the session has ended"
"""Why the requests of a session that ends are not answered by the server."""

MAX_ENDED: Final = 10_000
"""Number of ended sessions that are remembered, so that their ids stay invalid."""

LIFE_S: Final = 30 * 86_400.0
"""How long a session can be continued by another process; sessions that ended are remembered as
long."""

# 120 bits: more than can be guessed, and base32 encodes them without padding.
_MAC_BYTES: Final = 15
_SEPARATOR: Final = "."


class HttpSession:
    """One HTTP session."""

    __slots__ = ("handshake", "ident", "last_used", "name", "peer", "principal", "upstream")

    def __init__(
        self, ident: str, upstream: str, principal: str, peer: "Peer", handshake: Handshake
    ) -> None:
        self.ident = ident
        """The id as the agent knows it."""
        self.upstream = upstream
        """The id as the server knows it."""
        self.principal = principal
        self.peer = peer
        self.handshake = handshake
        self.name = session_name(ident)
        """The name in the shared store."""
        self.last_used = monotonic()

    @property
    def ends_at(self) -> float:
        """When the id becomes invalid by itself."""
        return self.handshake.opened_at + LIFE_S


def session_name(ident: str) -> str:
    """Return the name of a session where its id must not be known."""
    return hashlib.sha256(ident.encode()).hexdigest()


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

    def __init__(self, keys: KeyRing, limit: SessionLimit, *, idle_s: float) -> None:
        self._keys = keys
        self.limit = limit
        self._idle_s = idle_s
        self._entries: OrderedDict[str, HttpSession] = OrderedDict()
        self.by_name: dict[str, HttpSession] = {}
        """The sessions by their names in the shared store."""
        self._ended: OrderedDict[str, None] = OrderedDict()
        self.on_dropped: Callable[[HttpSession], None] = lambda _entry: None
        """Called with every session that was dropped rather than ended."""
        limit.add(self)

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> list[HttpSession]:
        """Return every session, the least recently used first."""
        return list(self._entries.values())

    def seal(self, upstream: str, principal: str, handshake: Handshake) -> str:
        """Return the agent's id for a session id of the server."""
        text = f"{upstream}{_SEPARATOR}{handshake.render()}"
        mac = self._keys.seal(_bound(text, principal))[:_MAC_BYTES]
        return f"{text}{_SEPARATOR}{base64.b32encode(mac).decode().lower()}"

    def find(self, ident: str, principal: str) -> HttpSession | None:
        """Return the session with this id; None if this process does not know it.

        The same for a session of another principal.
        """
        entry = self._entries.get(ident)
        if entry is None or entry.principal != principal:
            return None
        self.touch(ident)
        return entry

    def read(self, ident: str, principal: str) -> tuple[str, Handshake] | None:
        """Return the server's id and the handshake of a session that another process opened.

        None if the id is not valid, belongs to another principal, or the session is over.
        """
        text, _, shown = ident.rpartition(_SEPARATOR)
        if ident in self._ended or ident in self._entries or len(ident) > MAX_SEALED_ID:
            return None
        try:
            mac = base64.b32decode(shown.upper())
        except ValueError:
            return None
        # Only the exact id that was issued: any other spelling would open another session.
        if len(mac) != _MAC_BYTES or base64.b32encode(mac).decode().lower() != shown:
            return None
        if not self._keys.is_sealed(_bound(text, principal), mac):
            return None
        upstream, _, sealed = text.rpartition(_SEPARATOR)
        handshake = parse_handshake(sealed)
        if handshake is None or handshake.opened_at + LIFE_S < now():
            return None
        return upstream, handshake

    def touch(self, ident: str) -> None:
        """Note that a session is in use."""
        entry = self._entries.get(ident)
        if entry is not None:
            entry.last_used = monotonic()
            self._entries.move_to_end(ident)

    def open(
        self, upstream: str, principal: str, peer: "Peer", handshake: Handshake
    ) -> HttpSession:
        """Add a session that a server opened, in the place that was reserved for its peer."""
        ident = self.seal(upstream, principal, handshake)
        return self.enter(HttpSession(ident, upstream, principal, peer, handshake))

    def enter(self, entry: HttpSession) -> HttpSession:
        """Add a session."""
        before = self._remove(entry.ident)
        if before is not None:
            self.on_dropped(before)
        if not self.limit.release(entry.peer):
            self.limit.make_room()
        self._entries[entry.ident] = entry
        self.by_name[entry.name] = entry
        return entry

    def forget(self, ident: str) -> HttpSession | None:
        """Remove a session that has ended, and make its id invalid."""
        self._ended[ident] = None
        if len(self._ended) > MAX_ENDED:
            self._ended.popitem(last=False)
        return self._remove(ident)

    def expire(self) -> list[HttpSession]:
        """Remove and return the sessions that are idle for too long and have no open request."""
        oldest = monotonic() - self._idle_s
        gone = []
        for entry in self._entries.values():
            if entry.last_used > oldest:
                break  # the entries are in the order of their last use
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
        self._remove(entry.ident)
        self.on_dropped(entry)

    def _remove(self, ident: str) -> HttpSession | None:
        entry = self._entries.pop(ident, None)
        if entry is not None:
            del self.by_name[entry.name]
        return entry


def _bound(text: str, principal: str) -> bytes:
    # The length prefix keeps two different pairs from producing the same text.
    return f"{len(principal)}:{principal}{text}".encode()
