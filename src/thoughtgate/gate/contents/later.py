"""Inspection of messages that were already passed on, for the record only.

Nothing waits for it: a message is put into a queue of limited length and size, and inspected when
its frame is on its way. What does not fit is counted, and the record says so.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol

from thoughtgate.core.commands import InspectLater
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest, Ruling
from thoughtgate.core.record_events import AGENT_TO_SERVER, SERVER_TO_AGENT, Record
from thoughtgate.core.session_replies import CorrelationIds
from thoughtgate.errors import StoreError
from thoughtgate.gate.clock import monotonic
from thoughtgate.policy.call import DENY, TOOL, Call
from thoughtgate.policy.facts import ESTABLISHED, facts_of_checks
from thoughtgate.policy.inspection.content_policy import RECORD, Found, FoundAll
from thoughtgate.policy.policy import Policy

MAX_WAITING: Final = 1_000
"""Messages that wait to be inspected."""
MAX_BYTES: Final = 8_000_000
"""Bytes of the messages that wait."""
MAX_ONE: Final = 1_000_000
"""Bytes of one message: inspecting it blocks everything else for up to 20 ms."""
MAX_TOLD: Final = 1_000
"""Kinds of findings about which the operator is told."""
FINISH_S: Final = 2.0
"""How long a stopping gate continues to inspect. A full queue takes a tenth of a second; the rest
is for loading the checks on a busy machine."""

UNREAD: Final = (Found("unreadable", "hard", ""),)
"""The finding in a message that was not inspected: its check is in ``policy.inspection.checks``."""


class _Waiting(NamedTuple):
    """A message that waits to be inspected."""

    call: Call
    call_id: str
    direction: str
    body: dict[str, Any] | None
    """A message of the server; None for the arguments of the call."""
    size: int
    at: float


class Gate(Protocol):
    """The part of a governor that this module uses."""

    judge: Judge
    errors: CorrelationIds

    @property
    def policy(self) -> Policy:
        """The policy in force."""

    def note(self, record: Record) -> None:
        """Queue an event for the record."""

    def establish(
        self, principal: str, facts: Iterable[str], at: float, *, cause: str = ""
    ) -> None:
        """Let facts hold for a principal."""


class LaterInspection:
    """The messages of one gate that are inspected after they were passed on."""

    def __init__(self, governor: Gate) -> None:
        self._governor = governor
        self.say: Callable[[str], None] = lambda _: None
        """Tells the operator."""
        self.waiting: deque[_Waiting] = deque()
        self._bytes = 0
        self._skipped: dict[tuple[str, str], tuple[_Waiting, int]] = {}
        """The first message since the last report that was not inspected, and how many were not.

        By principal and direction, because these decide which facts may be missing."""
        self._told: set[tuple[str, str, str]] = set()

    def put_call(self, request: CallRequest, ruling: Ruling) -> None:
        """Have the arguments of a call inspected, unless the server does not get it."""
        if not ruling.call_id or ruling.verdict.action == DENY:
            return
        opened = self._governor.judge.open_call(ruling.call_id)
        if opened is None:
            return
        for kind, name, arguments in request.named:
            call = opened.call._replace(kind=kind, name=name, arguments=arguments)
            about = (call, ruling.call_id, AGENT_TO_SERVER, None, request.size, request.at)
            self._put(_Waiting(*about))

    def put_message(self, command: InspectLater, server: str, session: str, principal: str) -> None:
        """Have a message of a server inspected; one of negative size can only be counted."""
        opened = self._governor.judge.open_call(command.call_id) if command.call_id else None
        kind, name = (opened.call.kind, opened.call.name) if opened is not None else (TOOL, "")
        call = Call(server, kind, name, {}, principal=principal, session=session)
        ident = command.call_id or self._governor.errors.next()
        about = (call, ident, SERVER_TO_AGENT, command.body, command.size, command.at)
        self._put(_Waiting(*about))

    def _put(self, one: _Waiting) -> None:
        if one.size > MAX_ONE:
            # A server must not escape the checks by making its results long.
            self._report(one, UNREAD)
        elif one.size < 0 or len(self.waiting) >= MAX_WAITING or self._bytes + one.size > MAX_BYTES:
            self._skip(one)
        else:
            self._bytes += one.size
            self.waiting.append(one)

    def _skip(self, one: _Waiting) -> None:
        key = (one.call.principal, one.direction)
        slim = one._replace(call=one.call._replace(arguments={}, extra=None), body=None)
        first, count = self._skipped.get(key, (slim, 0))
        self._skipped[key] = (first, count + 1)

    def run(self, for_s: float = float("inf")) -> bool:
        """Inspect what waits, for some time; return whether more waits."""
        until = monotonic() + for_s
        while self.waiting:
            one = self.waiting.popleft()
            self._bytes -= one.size
            findings = self._inspect(one)
            if findings:
                self._report(one, findings)
            if monotonic() >= until:
                break
        if self._skipped and not self.waiting:
            skipped, self._skipped = self._skipped, {}
            for first, count in skipped.values():
                self._report(first, UNREAD, skipped=count)
        return bool(self.waiting)

    def finish(self) -> None:
        """Inspect what still waits, as far as there is time, and count the rest."""
        self.run(FINISH_S)
        if self.waiting:
            for one in self.waiting:
                self._skip(one)
            self.waiting.clear()
        self.run()

    def _inspect(self, one: _Waiting) -> FoundAll:
        """Return the findings in a message if the policy in force asks for one of them."""
        contents = self._governor.policy.contents
        if contents is None:
            return ()
        asked = contents.of(one.call.server)
        if one.body is None:
            from thoughtgate.policy.inspection.arguments import recorded_findings

            return recorded_findings(one.call, asked)
        from thoughtgate.policy.inspection.treatment import treat  # only where a server asks for it

        treated = treat(one.body, asked, one.call.name)
        return treated.findings if treated.action == RECORD else ()

    def _report(self, one: _Waiting, findings: FoundAll, skipped: int = 0) -> None:
        """Record findings, let their facts hold, and tell the operator about new kinds of them."""
        governor, call = self._governor, one.call
        said: dict[str, Any] = {"direction": one.direction, "action": RECORD}
        said |= {"findings": findings, "skipped": skipped} if skipped else {"findings": findings}
        governor.note(governor.judge.found(one.call_id, call, one.at, **said))
        if one.direction == SERVER_TO_AGENT and governor.policy.looks_at_facts():
            # A message that was not inspected may contain anything, so every fact is assumed.
            known = facts_of_checks(found.check for found in findings)
            facts = ESTABLISHED if findings is UNREAD else known
            with contextlib.suppress(StoreError):
                # They hold in this process all the same; the agent already has the message.
                governor.establish(call.principal, facts, one.at, cause=call.server)
        self._tell(one, dict.fromkeys(found.check for found in findings))

    def _tell(self, one: _Waiting, checks: Iterable[str]) -> None:
        """Tell the operator about the findings of a kind that was not yet seen at this server."""
        marks = [(one.call.server, one.direction, check) for check in checks]
        new = [mark for mark in marks if mark not in self._told]
        if not new or len(self._told) >= MAX_TOLD:
            return
        self._told.update(new)
        name = self._governor.judge.recorded_name(one.call.name)
        what = "arguments for" if one.direction == AGENT_TO_SERVER else "what came from"
        self.say(
            f"contents  {', '.join(check for *_, check in new)} in {what} "
            f"{one.call.server}{f', {name}' if name else ''}; it was passed on. "
            f"See: thoughtgate audit show {one.call_id}"
        )
