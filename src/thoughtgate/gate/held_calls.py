"""Table of the calls that wait for a person's decision, across all sessions and transports."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from thoughtgate.core.events import CallJudged
from thoughtgate.gate.clock import now
from thoughtgate.policy.call import DENY, FORWARD, Verdict
from thoughtgate.wire.message import RequestId

if TYPE_CHECKING:
    from thoughtgate.gate.governor import Governor
    from thoughtgate.gate.session_driver import SessionDriver


class HeldCalls:
    """Keeps the held calls of a gate and polls for decisions about them."""

    def __init__(self, governor: "Governor") -> None:
        self._governor = governor
        self._held: dict[str, tuple[SessionDriver, RequestId]] = {}
        self.prevented = 0
        """Approved or held calls that were not made because their caller had left."""
        self.on_held: Callable[[], None] = lambda: None
        """Called when a call is held; an event loop starts its timer then."""

    def __len__(self) -> int:
        return len(self._held)

    def hold(self, call_id: str, driver: "SessionDriver", key: RequestId) -> None:
        """Hold a call until a person has decided."""
        self._held[call_id] = (driver, key)
        self.on_held()

    def drop(self, call_id: str) -> None:
        """Forget a call that no longer waits."""
        self._held.pop(call_id, None)

    def poll(self, at: float) -> None:
        """Fetch new decisions and continue the calls that they are about."""
        if not self._held:
            return  # a poll reads the store, which is wasted with no call held
        for ruling in self._governor.settled(at):
            held = self._held.pop(ruling.call_id, None)
            if held is not None:
                driver, key = held
                driver.feed(CallJudged(key, ruling.verdict, ruling.call_id, at), None)
                driver.outbox.schedule()
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
        for call_id, (driver, key) in list(self._held.items()):
            if ended is not None and (driver is not ended or governor.tasks.is_task(call_id)):
                continue
            self.drop(call_id)
            if governor.tasks.survives(call_id):
                # The task is stored. The next run judges its call again under a new call id, so
                # this run records an end for its own call id.
                governor.suspend(call_id, at)
                continue
            governor.withdraw(call_id, reason, at)
            driver.feed(CallJudged(key, verdict, call_id, at), None)
