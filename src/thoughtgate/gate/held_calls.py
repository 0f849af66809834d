"""The calls of a gate that wait for a person, whichever session and transport they came by."""

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
    """The one table of held calls, and the one place that looks for decisions."""

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
        """Keep a call until a person has decided."""
        self._held[call_id] = (driver, key)
        self.on_held()

    def drop(self, call_id: str) -> None:
        """Forget a call that no longer waits."""
        self._held.pop(call_id, None)

    def poll(self, at: float) -> None:
        """Look whether people have decided, and go on with the calls they decided on."""
        if not self._held:
            return
        for ruling in self._governor.settled(at):
            held = self._held.pop(ruling.call_id, None)
            if held is not None:
                driver, key = held
                driver.feed(CallJudged(key, ruling.verdict, ruling.call_id, at), None)
                driver.outbox.schedule()
            elif ruling.verdict.action == FORWARD:
                self.prevented += 1

    def withdraw_all(self, reason: str, ended: object = None) -> None:
        """Withdraw every held call, because the gate stops, or those of one session that ended.

        Tasks are the exception: the next gate carries them on, and one whose session ended
        still runs.
        """
        at = now()
        governor = self._governor
        verdict = Verdict(DENY, "approval", "approval_withdrawn", reason)
        for call_id, (driver, key) in list(self._held.items()):
            if ended is not None and (driver is not ended or governor.tasks.is_task(call_id)):
                continue
            self.drop(call_id)
            if governor.tasks.survives(call_id):
                governor.suspend(call_id, at)
                continue
            governor.withdraw(call_id, reason, at)
            driver.feed(CallJudged(key, verdict, call_id, at), None)
