"""Records calls whose gate died after their approval was used: their outcome is not known.

A thread of the gate's row does this (``gate_row``). Loaded only with a shared store.
"""

import time
from collections.abc import Callable
from typing import Final

from thoughtgate.core.record_events import ERROR, OUTCOME_UNKNOWN, Record, call_ended
from thoughtgate.gate.approvals.queue import ApprovalQueue
from thoughtgate.gate.clock import now
from thoughtgate.stores.gates import RENEW_S
from thoughtgate.stores.running_calls import LostCall

MESSAGE: Final = "the gate died while the call ran; whether it took effect is not known"


class LostCalls:
    """Looks for calls of gates that died, and forgets those of this gate that have ended."""

    def __init__(
        self, queue: ApprovalQueue, report: Callable[[Record], None], say: Callable[[str], None]
    ) -> None:
        """Report each call once to ``report``, and tell the operator with ``say``."""
        self._queue = queue
        self._report = report
        self._say = say
        self._next_look = 0.0

    def settle(self) -> None:
        """Do what is due.

        Raises:
            StoreError: the store cannot be used; nothing is lost.
        """
        self._queue.flush_ended()
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + RENEW_S
        for lost in self._queue.lost_calls():
            self._queue.take_lost(lost)
            self._report(_event(lost))
            self._say(
                f"call      {lost.tool} on {lost.server} ({lost.call_id}): {MESSAGE}; "
                f"it was approved as {lost.approval}"
            )


def _event(lost: LostCall) -> Record:
    at = now()
    event = call_ended(
        at,
        lost.server,
        "0",
        call_id=lost.call_id,
        tool=lost.tool,
        status=ERROR,
        latency_ms=round(max(0.0, at - lost.used_at) * 1000),
        size=0,
        error={"class": "unknown", "kind": OUTCOME_UNKNOWN, "message": MESSAGE},
    )
    # The hash is on the record of the gate that died.
    event.body["call"]["args_hash"] = ""
    return event
