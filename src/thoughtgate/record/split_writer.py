"""Writing a run's events to two files, so that traffic cannot rotate calls out of the record.

A file of the record is rotated when it is full, and only the last ones are kept. A peer that causes
many events therefore removes old ones, and peers can cause traffic at will: a server sends
notifications and requests to the agent, an agent sends pings, anybody sends malformed requests. So
only a bounded part of a run's traffic goes to the record's own file, where it is read in the order
in which it happened; the rest goes to a second file next to it, which has its own chain and is
rotated separately.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from thoughtgate.core.envelope import dump_bytes
from thoughtgate.core.record_events import (
    AGENT_AUTH_REJECTED,
    AGENT_CONNECTED,
    CALL_END,
    CALL_START,
    FRAME_REFUSED,
    MESSAGE,
    REQUEST_FAILED,
    SERVER_EVENTS,
    TOOLS_LIST,
    Record,
)
from thoughtgate.policy.call import SERVER_KINDS
from thoughtgate.record.head_keeper import HeadKeeper

TRAFFIC_TYPES: Final = frozenset(
    {
        MESSAGE,
        FRAME_REFUSED,
        REQUEST_FAILED,
        TOOLS_LIST,
        AGENT_CONNECTED,
        AGENT_AUTH_REJECTED,
        *SERVER_EVENTS,
    }
)
"""Types of events that peers can cause without a call."""

SHARE_BYTES: Final = 256 * 1024
"""Traffic of one run in the record's own file. A file of 64 MiB holds the share of 256 runs, and
starting a run is up to the user and the agent, never to a server."""

MAX_ASKED: Final = 16_384
"""Maximum number of open requests of servers that are remembered: those of 64 sessions."""

_ENVELOPE_BYTES: Final = 512
"""Roughly the size of what a line has besides the event's own members."""


class EventWriter(Protocol):
    """Writes events to one file."""

    refuses: Callable[[], bool]

    def write(self, records: Sequence[Record]) -> None:
        """Write events, all or none."""

    def close(self) -> None:
        """Close the file."""


class SplitWriter:
    """Writes the events of one run to a record and its traffic file."""

    def __init__(
        self,
        calls: EventWriter,
        open_traffic: Callable[[], EventWriter],
        *,
        share: int = SHARE_BYTES,
        heads: HeadKeeper | None = None,
    ) -> None:
        """Write to ``calls``; ``open_traffic`` opens the second file when it is needed."""
        self.on_close: Callable[[], None] = lambda: None
        """Called when both files are closed."""
        self._calls = calls
        self._open_traffic = open_traffic
        self._traffic: EventWriter | None = None
        self._share = share
        self._heads = heads
        self._refuses = calls.refuses
        self._asked: dict[str, None] = {}
        """Open calls that are requests of a server to the agent, oldest first."""

    @property
    def refuses(self) -> Callable[[], bool]:
        """Tells whether calls are refused while writing fails."""
        return self._refuses

    @refuses.setter
    def refuses(self, refuses: Callable[[], bool]) -> None:
        self._refuses = self._calls.refuses = refuses
        if self._traffic is not None:
            self._traffic.refuses = refuses

    def write(self, records: Sequence[Record]) -> None:
        """Write events before returning.

        Raises:
            RecordError: no event of a call was written.
        """
        marked = [(self._is_traffic(record), record) for record in records]
        traffic = [record for is_traffic, record in marked if is_traffic]
        if traffic:
            if self._has_room(traffic):
                self._calls.write(records)
                return
            # First: if this fails, no call of the batch is on the record yet.
            self._traffic_writer().write(traffic)
            records = [record for is_traffic, record in marked if not is_traffic]
        if records:
            self._calls.write(records)

    def close(self) -> None:
        """Close both files."""
        if self._traffic is not None:
            self._traffic.close()
        self._calls.close()
        if self._heads is not None:
            self._heads.close()
        self.on_close()

    def _is_traffic(self, record: Record) -> bool:
        """Tell whether a peer can cause an event without a call of the agent."""
        if record.type in TRAFFIC_TYPES:
            return True
        asked = self._asked
        if record.type == CALL_START:
            call = record.body["call"]
            if call.get("kind") not in SERVER_KINDS:
                return False
            # The oldest is forgotten: its later events then count as those of an agent's call.
            if len(asked) >= MAX_ASKED:
                del asked[next(iter(asked))]
            asked[call["call_id"]] = None
            return True
        # Usually no request of a server is open: then nothing is looked up.
        if not asked or "call" not in record.body:
            return False
        ident = record.body["call"].get("call_id")
        if ident not in asked:
            return False
        if record.type == CALL_END:
            del asked[ident]
        return True

    def _has_room(self, traffic: Sequence[Record]) -> bool:
        """Charge the traffic to the run's share of the record's own file; False if that is used up."""
        if self._share <= 0:
            return False
        for record in traffic:
            self._share -= _ENVELOPE_BYTES + len(dump_bytes(record.body))
        return self._share >= 0

    def _traffic_writer(self) -> EventWriter:
        if self._traffic is None:
            self._traffic = self._open_traffic()
            self._traffic.refuses = self._refuses
        return self._traffic
