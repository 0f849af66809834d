"""The shim's own code without processes: fed by hand, its record and its outlets on one list.

The loop that carries commands out, the session, the judge, the governor and the authority
are the real ones; only the two pipes, the disk and the person who approves are stand-ins.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import Decision, Vote, refusal
from thoughtgate.core.commands import JudgeCall, PersonAnswered
from thoughtgate.core.elicitation import HoldNotice
from thoughtgate.core.envelope import Run
from thoughtgate.core.events import CallJudged, Event
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import OpenCall
from thoughtgate.core.record_events import Record
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.errors import RecordError
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.poll_loop import PollLoop
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.policy.call import DENY, Verdict
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.redaction import Redactor

RECORDED = "recorded"
SENT = "sent"
TOLD = "told"


class Ledger:
    """What happened, in order: records written, frames to the server, frames to the agent."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, Any]] = []
        self.broken = False

    def write(self, records: Sequence[Record]) -> None:
        """Write all or, while the disk is full, none."""
        if self.broken:
            raise RecordError("the disk is full")
        self.entries += [(RECORDED, record) for record in records]

    def close(self) -> None:
        """Nothing more will come."""

    def of(self, kind: str) -> list[Any]:
        """Return the entries of one kind, in order."""
        return [value for entry, value in self.entries if entry == kind]


class Capture:
    """An outlet that always takes everything at once."""

    def __init__(self, ledger: Ledger, kind: str) -> None:
        self.waiting = bytearray()
        self.broken = False
        self._ledger = ledger
        self._kind = kind
        self._queue: list[bytes] = []

    def put(self, data: bytes) -> None:
        """Queue one frame."""
        self._queue.append(data)

    def push(self, *, writable: bool) -> None:
        """Let everything out."""
        del writable
        self._ledger.entries += [(self._kind, data) for data in self._queue]
        self._queue = []


class NobodyThere:
    """A queue without reviewers: every call that needs a person is denied."""

    def ask(
        self, call_id: str, open_call: OpenCall, workflow: str, at: float, *, owner: str = ""
    ) -> Decision | None:
        """Deny at once."""
        del call_id, open_call, workflow, at, owner
        return refusal("approval_timeout", "nobody can be asked here")

    def facts(self, call_id: str) -> dict[str, Any]:
        """Tell nothing."""
        del call_id
        return {}

    def poll(self, at: float) -> list[tuple[str, Decision]]:
        """Decide nothing."""
        del at
        return []

    def use(self, call_id: str) -> Decision | None:
        """Have no approval to spend."""
        del call_id
        return refusal("approval_withdrawn", "nobody approved it")

    def ended(self, call_ids: Iterable[str]) -> None:
        """Nothing is kept."""

    def withdraw(self, call_id: str, reason: str, at: float) -> tuple[Vote, ...]:
        """Nothing to take back: the person may still decide."""
        del call_id, reason, at
        return ()

    def notice(self, call_id: str) -> HoldNotice:
        """Tell the agent nothing."""
        del call_id
        return HoldNotice()

    def answer(self, command: PersonAnswered) -> None:
        """Never asked."""
        raise AssertionError(command)

    def reload(
        self, workflows: Mapping[str, WorkflowSettings], redactor: Redactor, policy_version: str
    ) -> None:
        """Nothing depends on settings."""

    def close(self, at: float) -> None:
        """Nothing is kept."""


class SlowDesk(NobodyThere):
    """A person who decides when told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._decided: list[tuple[str, Decision]] = []
        self._used: set[str] = set()

    def ask(
        self, call_id: str, open_call: OpenCall, workflow: str, at: float, *, owner: str = ""
    ) -> Decision | None:
        """Let it wait."""
        del open_call, workflow, at, owner
        self.asked.append(call_id)
        return None

    def decide(self, number: int, *, approved: bool) -> None:
        """Decide on one of the calls ever asked about, also on one that is long over."""
        if self.asked:
            kind = "" if approved else "approval_rejected"
            call_id = self.asked[number % len(self.asked)]
            self._decided.append((call_id, Decision(approved=approved, kind=kind, by="me")))

    def facts(self, call_id: str) -> dict[str, Any]:
        """Tell something for the record."""
        return {"approval_id": call_id}

    def poll(self, at: float) -> list[tuple[str, Decision]]:
        """Tell what was decided."""
        del at
        decided, self._decided = self._decided, []
        return decided

    def use(self, call_id: str) -> Decision | None:
        """Spend an approval once."""
        fresh = call_id not in self._used
        self._used.add(call_id)
        return None if fresh else refusal("approval_withdrawn", "the approval was already used")


class LateAuthority(LocalAuthority):
    """Judges and records at once, as a governance service does, but answers only when let."""

    def __init__(self, governor: Governor) -> None:
        super().__init__(governor)
        self.late = False
        self._answers: list[Event] = []
        self._lost = False

    def judge(self, driver: SessionDriver, command: JudgeCall) -> CallJudged | None:
        """Judge now; answer now or later."""
        judged = super().judge(driver, command)
        if not self.late or judged is None:
            return judged
        if not super().flush():
            self._lost = True
            judged = judged._replace(verdict=Verdict(DENY, "governance", "service_unavailable"))
        self._answers.append(judged)
        return None

    def flush(self) -> bool:
        """Write the record; also tell when something was lost while a verdict was recorded."""
        lost, self._lost = self._lost, False
        return super().flush() and not lost

    def release(self, count: int) -> list[Event]:
        """Let the oldest answers out."""
        answers, self._answers = self._answers[:count], self._answers[count:]
        return answers


class ShimBench:
    """A shim on the bench."""

    def __init__(self, policy: Policy, **setup: Any) -> None:
        self.ledger = Ledger()
        self.desk = SlowDesk()
        self.governor = Governor(Judge(policy, "run"), self.ledger, Run("run"), approvals=self.desk)
        self.authority = LateAuthority(self.governor)
        made = SessionSettings("srv", "1", **setup)
        self.shim = PollLoop(["server"], made, self.authority, {}, "agent")
        # The outlets are all that the bench changes of a shim.
        to_agent: Any = Capture(self.ledger, TOLD)
        self.shim._to_agent = self.shim._agent._to_agent = to_agent
        self.shim._to_server = Capture(self.ledger, SENT)  # type: ignore[assignment]

    @property
    def session(self) -> Any:
        """The session that the shim drives."""
        return self.shim._session

    def feed(self, event: Event) -> None:
        """Let something happen, as within one turn of the loop."""
        self.shim._feed(event)

    def turn(self, at: float) -> None:
        """End a turn: look for decisions, write, send."""
        self.shim._feed_all(self.authority.tick(at))
        self.shim._flush()

    def release(self, count: int) -> None:
        """Let late verdicts arrive."""
        self.shim._feed_all(self.authority.release(count))

    def close(self) -> None:
        """Give back the descriptors of the shim's bell."""
        os.close(self.shim._wake_read)
        os.close(self.shim._wake_write)
