"""The events of a shim that wait to be handed over to the governance service."""

from typing import Final

from thoughtgate.core.record_events import CALL_END, Record
from thoughtgate.gate.clock import monotonic
from thoughtgate.shim.service_handshake import seen_bytes

MAX_QUEUED: Final = 20_000
"""Events that wait before the shim stops reading: it must neither forget nor keep them without limit."""

BATCH: Final = 500

HAND_OVER_S: Final = 0.005
"""Interval between two deliveries of events: under load one request carries many of them.

It is short because of agents that kill their servers after the last answer: if the end of a call
was not yet delivered, the record says that its outcome is unknown.
"""


class EventQueue:
    """Decides when events are delivered, and which of them together."""

    __slots__ = ("_due_at", "_records", "_taken_at", "unsent_bytes")

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._taken_at = 0.0
        self._due_at = 0.0
        self.unsent_bytes = 0
        """Bytes of the messages in the queue that are to be inspected."""

    def __len__(self) -> int:
        return len(self._records)

    @property
    def is_full(self) -> bool:
        """Whether nothing more is to be read, because its events would have to wait as well."""
        return len(self._records) >= MAX_QUEUED

    @property
    def wait_s(self) -> float:
        """How long the next delivery waits."""
        return max(0.0, self._due_at - monotonic())

    def put(self, record: Record) -> None:
        """Queue an event; the end of a call waits only if another delivery was just made.

        Other events wait a moment: if the call ends within it, one request carries them all, and
        none is under way when the agent has its answer.
        """
        if record.type == CALL_END:
            self._due_at = self._taken_at + HAND_OVER_S
        elif not self._records:
            self._due_at = monotonic() + HAND_OVER_S
        self._records.append(record)

    def take(self, *, at_once: bool) -> list[Record]:
        """Return the events to deliver now; none if they can wait."""
        moment = monotonic()
        if not at_once and len(self._records) < BATCH and moment < self._due_at:
            return []
        self._taken_at = moment
        batch, self._records = self._records[:BATCH], self._records[BATCH:]
        if self.unsent_bytes:
            self.unsent_bytes -= seen_bytes(batch)
        return batch
