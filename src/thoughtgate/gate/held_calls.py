"""Table of the calls that wait for a person's decision, across all sessions and transports."""

from collections.abc import Callable
from typing import Generic, TypeVar

from thoughtgate.core.events import CallJudged
from thoughtgate.gate.clock import now
from thoughtgate.gate.governor import Governor
from thoughtgate.policy.call import DENY, FORWARD, Verdict
from thoughtgate.wire.message import RequestId

Holder = TypeVar("Holder")
"""The session of a held call: a driver in this process, or a shim of a governance service."""


class HeldCalls(Generic[Holder]):
    """Keeps the held calls of a gate and polls for decisions about them."""

    def __init__(
        self, governor: Governor, on_verdict: Callable[[Holder, CallJudged], None]
    ) -> None:
        """Give every verdict on a held call to ``on_verdict``, with the session of the call."""
        self._governor = governor
        self._on_verdict = on_verdict
        self._held: dict[str, tuple[Holder, RequestId]] = {}
        self.prevented = 0
        """Approved or held calls that were not made because their caller had left."""
        self.on_held: Callable[[], None] = lambda: None
        """Called when a call is held; an event loop starts its timer then."""

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, call_id: str) -> bool:
        return call_id in self._held

    def hold(self, call_id: str, holder: Holder, key: RequestId) -> None:
        """Hold a call until a person has decided."""
        self._held[call_id] = (holder, key)
        self.on_held()

    def drop(self, call_id: str) -> bool:
        """Forget a call that no longer waits; return whether it was held."""
        return self._held.pop(call_id, None) is not None

    def is_of(self, call_id: str, holder: Holder) -> bool:
        """Tell whether a call is held for this session."""
        return call_id in self._held and self._held[call_id][0] is holder

    def held_for(self, holder: Holder) -> list[str]:
        """Return what is held for this session."""
        return [call_id for call_id, (of, _) in self._held.items() if of is holder]

    def poll(self, at: float) -> None:
        """Fetch new decisions and continue the calls that they are about."""
        if not self._held:
            return  # a poll reads the store, which is wasted with no call held
        for ruling in self._governor.settled(at):
            held = self._held.pop(ruling.call_id, None)
            if held is not None:
                holder, key = held
                self._on_verdict(holder, CallJudged(key, ruling.verdict, ruling.call_id, at))
            elif ruling.verdict.action == FORWARD:
                # The approval came after its caller had left, so the call must not run.
                self.prevented += 1

    def withdraw_all(self, reason: str, ended: object = None) -> None:
        """Withdraw every held call when the gate stops, or the held calls of one ended session.

        Tasks are the exception: after a stop the next run continues those that are stored, and
        a task continues after its session has ended.
        """
        at = now()
        governor = self._governor
        verdict = Verdict(DENY, "approval", "approval_withdrawn", reason)
        for call_id, (holder, key) in list(self._held.items()):
            if ended is not None and (holder is not ended or governor.tasks.is_task(call_id)):
                continue
            self.drop(call_id)
            if governor.tasks.survives(call_id):
                # The task is stored. The next run judges its call again under a new call id, so
                # this run records an end for its own call id.
                governor.suspend(call_id, at)
                continue
            governor.withdraw(call_id, reason, at)
            self._on_verdict(holder, CallJudged(key, verdict, call_id, at))
