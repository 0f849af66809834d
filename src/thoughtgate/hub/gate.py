"""The gate of the hub: one governor for all clients and servers, and the calls people decide on.

Every channel asks here. Nothing is sent on before ``flush`` has said that the record holds
it, and held calls stop nobody else.
"""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from thoughtgate.core.commands import AskPeople, JudgeCall, MaskAnswer, PersonAnswered, Withdraw
from thoughtgate.core.events import AnswerMasked, CallJudged, Event, TaskMade
from thoughtgate.core.judge import Question, Ruling
from thoughtgate.core.record_events import NOWHERE, Record
from thoughtgate.core.session import CALLER_GONE
from thoughtgate.errors import RecordError
from thoughtgate.gate.authority import prompts
from thoughtgate.gate.clock import now
from thoughtgate.gate.governor import Governor
from thoughtgate.hub.tasks import HubTasks
from thoughtgate.policy.call import DENY, FORWARD, PRODUCTION, Verdict
from thoughtgate.wire.message import Json, RequestId

if TYPE_CHECKING:
    from thoughtgate.hub.channel import Channel

TICK_S: Final = 0.1
"""How often open calls are looked over for timeouts, and people's answers are looked for."""

STOPPING: Final = "the gate is stopping"


class HubGate:
    """Judges, records and holds for the hub."""

    def __init__(self, governor: Governor, max_held: int) -> None:
        self.governor = governor
        self.max_held = max_held
        self.tasks = HubTasks(governor)
        self.prevented = 0
        """Held calls that were not made because their caller had left."""
        self._held: dict[str, tuple[Channel, RequestId]] = {}
        self._busy: set[Channel] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def held(self) -> int:
        """Calls that wait for a person."""
        return len(self._held)

    def judge(self, channel: "Channel", command: JudgeCall) -> CallJudged:
        """Judge a request of a client."""
        client = channel.client
        question = Question(
            channel.server,
            client.id,
            client.principal,
            command.method,
            command.named,
            command.bytes_in,
            client.transport,
            command.at,
            command.params,
            claims=client.claims,
            trace=client.traces.get(command.key, ""),
            promised=self.tasks.is_promised(channel),
        )
        nowhere = channel.server == NOWHERE
        ruling = self._refuse(question) if nowhere else self.governor.rule(question)
        verdict = self.tasks.judged(channel, command, ruling)
        return CallJudged(command.key, verdict, ruling.call_id, command.at)

    def _refuse(self, question: Question) -> Ruling:
        """Judge what no server offers: nobody is there to forward it to, in whatever profile."""
        judge = self.governor.judge
        policy = judge.policy
        judge.policy = enforced = replace(policy, profile=PRODUCTION)
        try:
            return self.governor.rule(question)
        finally:
            if judge.policy is enforced:
                judge.policy = policy

    def mask(self, command: MaskAnswer) -> AnswerMasked:
        """Take the secrets out of a server's answer."""
        return AnswerMasked(command.key, self.governor.mask(command.body), command.at)

    def ask(self, channel: "Channel", command: AskPeople) -> list[Event]:
        """Have people asked; return what the session is told meanwhile."""
        events = self.tasks.held(channel, command)
        if events is not None:
            if all(isinstance(event, TaskMade) and not event.body for event in events):
                self._hold(channel, command)
            return events
        if channel.client.held > self.max_held:
            verdict = Verdict(DENY, "approval", "service_unavailable", "too many calls are held")
            return [CallJudged(command.key, verdict, command.call_id, command.at)]
        ruling, told = self.governor.hold(self.tasks.name_of(channel), command)
        if ruling is not None:
            return [CallJudged(command.key, ruling.verdict, command.call_id, command.at)]
        self._hold(channel, command)
        events = [event for _, event in told]
        if command.params is None:
            # Whoever takes a task may have left when the person answers.
            events += prompts(command, self.governor.prompt(command.call_id))
        return events

    def answered(self, channel: "Channel", command: PersonAnswered) -> None:
        """Count the answer of the person in front of a client."""
        client = channel.client
        by = "" if client.sole else client.principal
        self.governor.person_answered(command._replace(by=by))

    def _hold(self, channel: "Channel", command: AskPeople) -> None:
        self._held[command.call_id] = (channel, command.key)
        self._schedule()

    def withdraw(self, command: Withdraw) -> None:
        """Nobody waits for a held call any more."""
        self._held.pop(command.call_id, None)
        if command.reason == CALLER_GONE:
            self.prevented += 1
        self.governor.withdraw(command.call_id, command.reason, now())

    def screen(
        self, server: str, session: str, method: str, entries: tuple[dict[str, Json], ...]
    ) -> frozenset[str]:
        """Return the names in a list that stay hidden."""
        return self.governor.screen(server, session, method, entries, now())

    def learn(self, server: str, entries: tuple[dict[str, Json], ...]) -> None:
        """Have the judge know what a server says of its tools; no client is shown it."""
        # Not through the governor, which puts what is shown on the record.
        self.governor.judge.screen(server, "", "tools/list", entries, now())

    def note(self, record: Record) -> None:
        """Put an event on the record."""
        self.governor.note(record)

    def flush(self) -> bool:
        """Write the record; False when it cannot be written and nothing may be sent on."""
        try:
            self.governor.flush()
        except RecordError:
            return False
        return True

    def keep_time(self) -> None:
        """Something waits that belongs to no channel."""
        self._schedule()

    def watch(self, channel: "Channel") -> None:
        """A channel has something open: its time must be looked at."""
        self._busy.add(channel)
        self._schedule()

    def release(self) -> None:
        """The hub stops: what waits is not made, but for tasks that the next hub carries on."""
        at = now()
        for call_id, (channel, key) in list(self._held.items()):
            del self._held[call_id]
            if self.governor.tasks.survives(call_id):
                self.governor.suspend(call_id, at)
                continue
            self.governor.withdraw(call_id, STOPPING, at)
            verdict = Verdict(DENY, "approval", "approval_withdrawn", STOPPING)
            channel.feed(CallJudged(key, verdict, call_id, at))

    def close(self) -> None:
        """Look no more."""
        self.release()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _schedule(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        at = now()
        if self._held:
            for ruling in self.governor.settled(at):
                found = self._held.pop(ruling.call_id, None)
                if found is not None:
                    channel, key = found
                    channel.feed(CallJudged(key, ruling.verdict, ruling.call_id, at))
                elif ruling.verdict.action == FORWARD:
                    self.prevented += 1
        for channel in list(self._busy):
            channel.tick(at)
            if channel.session.is_idle:
                self._busy.discard(channel)
        self.tasks.tick(at)
        if self._busy or self._held or self.tasks.are_open:
            self._schedule()
