"""The interface between an endpoint and the servers behind it.

``proxy`` implements it in ``front.transparent``, ``serve`` in ``hub.backend``.
"""

from collections.abc import Callable
from typing import Protocol

from thoughtgate.core.commands import ToServer
from thoughtgate.front.authentication import Identity
from thoughtgate.front.batch import Batch
from thoughtgate.front.peer import Peer
from thoughtgate.front.post import Leg, Post
from thoughtgate.front.sessions import HttpSession
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.outbox import Outbox
from thoughtgate.transports.http_server import Exchange
from thoughtgate.wire.headers import ParamHeader
from thoughtgate.wire.message import Message


class OpenStream(Protocol):
    """A response stream to an agent."""

    exchange: Exchange

    def close(self) -> None:
        """End the stream from the gate's side."""


class Backend(Protocol):
    """What an endpoint serves: one server, passed through, or a catalogue of many."""

    server: str
    """The server name on the record; empty for a catalogue."""

    outbox: Outbox

    on_refused: Callable[[bytes, str], None]
    """Called with server frames that no session can take."""

    @property
    def authority(self) -> LocalAuthority:
        """The authority that judges calls."""

    @property
    def needs_sessions(self) -> bool:
        """Whether a request of an older revision must belong to a session."""

    @property
    def adopts_sessions(self) -> bool:
        """Whether this process can continue a session that another process opened."""

    def open_peer(self, who: Identity, *, is_modern: bool) -> Peer:
        """Return a peer for one request; its label on the record may be the principal."""

    def open_session(self, who: Identity, label: str) -> Peer:
        """Return a peer for a session that is about to be opened, or was opened elsewhere."""

    def give_back(self, peer: Peer) -> None:
        """Release the peer of a finished request, which may be reused."""

    def forget(self, peer: Peer) -> None:
        """Release a peer that was not ended by a DELETE, or never became a session."""

    def param_headers(self, tool: str) -> tuple[ParamHeader, ...] | None:
        """Return the tool arguments that request headers must repeat (``x-mcp-header``).

        None if no list has shown the tool. The same for a hidden one: callers cannot tell them
        apart.
        """

    def with_trace_facts(self, message: Message, exchange: Exchange) -> Message:
        """Return the message with what its headers say about its trace copied into its ``_meta``.

        Called only if the gate traces calls.
        """

    def send(self, post: Post, frame: ToServer) -> None:
        """Send a frame; its response goes to the post."""

    def send_part(self, batch: Batch, frame: ToServer) -> Leg | None:
        """Send one message of a batch; its response goes to the batch."""

    def entered(self, peer: Peer, entry: HttpSession) -> None:
        """Note that a peer now has a session."""

    def continued(self, peer: Peer, entry: HttpSession) -> None:
        """Take over what is known of a session that another process opened."""

    def open_stream(self, exchange: Exchange, entry: HttpSession) -> OpenStream:
        """Open the stream that carries the server's unsolicited messages."""

    def abandon(self, entry: HttpSession) -> None:
        """Release a session that was ended at another gate, and answer its open requests."""

    def end_session(
        self, exchange: Exchange, entry: HttpSession, ended: Callable[[HttpSession], None]
    ) -> None:
        """End a session and answer; call ``ended`` once the server has ended it too."""

    def tick(self, at: float) -> None:
        """Handle timeouts."""

    def stop(self, reason: str) -> None:
        """Stop, and record the end of everything that is still open."""
