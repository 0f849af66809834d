"""Compares what servers list with the pins, for every command; the governor calls it.

The first definitions of a server are accepted, unless a definition check has a hard finding. Later
changes are held where the policy says ``pin``: the judge then hides and refuses them, and a person
is asked in the approval queue. With ``warn`` they are recorded and shown. Decisions that people
make at any gate are read from the store at most a second later.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from thoughtgate.core.answers import INSTRUCTIONS, is_stand_in
from thoughtgate.core.approval import DEFINITION_KIND, DEFINITION_OWNER, PENDING
from thoughtgate.core.definitions.difference import WordDifference
from thoughtgate.core.definitions.pinned import SERVER, TOOL, Definition, define
from thoughtgate.core.judge import Judge
from thoughtgate.core.negotiation import NAME
from thoughtgate.core.record_events import DEFINITION_CHANGED, Record
from thoughtgate.errors import StoreError, visible
from thoughtgate.gate.approvals.standing_questions import StandingQuestion, StandingQuestions
from thoughtgate.gate.definitions.inspection import inspect, is_hard
from thoughtgate.gate.definitions.server_pins import ServerPins
from thoughtgate.policy.call import PRODUCTION
from thoughtgate.policy.definitions import OFF, PIN
from thoughtgate.stores.pins import (
    ACCEPTED,
    FIRST_SEEN,
    HELD,
    MAX_PINS,
    Pin,
    PinStore,
    server_key,
)
from thoughtgate.wire.message import Json
from thoughtgate.wire.methods import INTRODUCTIONS, SCREENED

LOOK_EVERY_S: Final = 1.0
"""How often the store is read again for the decisions of people."""

MAX_NEIGHBOURS: Final = 1000
"""Tools of other servers that a definition is compared with: each costs time for every definition.
``thoughtgate scan`` compares with all."""

MAX_SHOWN: Final = 65_536
"""Characters of a difference that an approval can show; a longer one is accepted with
``thoughtgate tools accept``, which shows all of it."""

WARNED: Final = "warned"
WOULD_HOLD: Final = "would_hold"


class DefinitionWatch:
    """Keeps what the judge knows about definitions up to date with servers and the store."""

    def __init__(
        self,
        judge: Judge,
        pins: PinStore,
        questions: StandingQuestions,
        say: Callable[[str], None],
        identities: Mapping[str, Sequence[str]],
    ) -> None:
        """Compare with ``pins``; ``identities`` are the command lines or URLs of servers."""
        self.identities = dict(identities)
        self.note: Callable[[Record], None] = lambda _: None
        """Receives the events for the record."""
        self._judge = judge
        self._pins = pins
        self._questions = questions
        self._say = say
        self._servers: dict[str, ServerPins] = {}
        self._state: tuple[int, int] = (-1, -1)
        self._look_at = 0.0
        self._failed = False
        self._beside: tuple[str, dict[str, list[str]]] = ("", {})
        """The server that is inspected, and the tools of the others: found once per list."""
        judge.definitions.watch()

    def identify(self, server: str, identity: Sequence[str]) -> None:
        """Use the pins of another command line or URL for a server."""
        if self.identities.get(server) != identity:
            self.identities[server] = identity
            self._servers.pop(server, None)
            self._judge.definitions.forget(server)

    def listed(
        self,
        server: str,
        method: str,
        entries: tuple[dict[str, Json], ...],
        at: float,
        *,
        is_last: bool,
    ) -> None:
        """Compare a list of a server, or what it says about itself, with the pins."""
        if server == NAME or self._judge.definitions.mode(server) == OFF:
            return
        if method in INTRODUCTIONS and entries and is_stand_in(entries[0]):
            return
        self.look(at)
        found = self._servers.get(server)
        if found is not None and found.shown.get(method) is entries and not self._failed:
            self._judge.definitions.listed(server, SCREENED[method].kind)
            return
        try:
            found = self._loaded(server)
            self._compare(server, found, method, entries, at, is_last=is_last)
        except StoreError as error:
            self._fail(error)
            self._judge.definitions.unread.add(server)
            return
        found.shown[method] = entries
        self._judge.definitions.unread.discard(server)
        if is_last:
            self._judge.definitions.listed(server, SCREENED[method].kind)
        self._judge.definitions.replace(server, found.standing())
        self._report(server, found, at)
        self._ask(server, found, at)

    def hides_instructions(self, server: str) -> bool:
        """Tell whether the agent must not get a server's instructions to the model."""
        known = self._judge.definitions
        is_held = bool(known.hidden(server, SERVER, (INSTRUCTIONS,)))
        return is_held and self._judge.policy.profile == PRODUCTION

    def look(self, at: float) -> None:
        """Read the decisions of people from the store, at most once per second."""
        # If the clock was set back, the store is read at once.
        if 0 <= self._look_at - at <= LOOK_EVERY_S:
            return
        self._look_at = at + LOOK_EVERY_S
        if not self._servers:
            return
        for server, found in self._servers.items():
            if found.is_postponed:
                self._ask(server, found, at)
        try:
            state = self._pins.state()
            if state == self._state and not self._failed:
                return
            self._state = state
            for server, found in self._servers.items():
                self._refresh(server, found, at)
        except StoreError as error:
            self._fail(error)
            self._judge.definitions.unread.update(self._servers)
            return
        self._failed = False

    # Comparing.

    def _loaded(self, server: str) -> ServerPins:
        found = self._servers.get(server)
        if found is None or self._failed:
            key = server_key(server, self.identities.get(server, ()))
            found = found or ServerPins(key)
            found.load(self._pins.of_server(key))
            self._servers[server] = found
        return found

    def _compare(
        self,
        server: str,
        found: ServerPins,
        method: str,
        entries: tuple[dict[str, Json], ...],
        at: float,
        *,
        is_last: bool,
    ) -> None:
        kind, _, member = SCREENED[method]
        new: list[Pin] = []
        now: dict[tuple[str, str], str] = {}
        for number, entry in enumerate(entries):
            name = entry.get(member)
            if type(name) is not str:
                continue
            if number >= MAX_PINS:
                # Not compared, so what was accepted under its name does not cover it.
                now[kind, name] = ""
                continue
            if kind == SERVER and INSTRUCTIONS not in entry:
                # Missing instructions are not a definition: agents may begin with
                # ``server/discover``, and a server need not repeat there what it says in
                # ``initialize``. Instructions that come later with the same method are new,
                # because that method is complete.
                continue
            said = define(kind, name, entry)
            key = (kind, name)
            if not found.is_known(key, said.digest):
                new.append(self._first_look(server, found, method, said, entry))
            # If a name is listed twice, the definition counts that was not accepted.
            is_accepted = key in found.accepted and found.accepted[key].digest == said.digest
            if key not in now or not is_accepted:
                now[key] = said.digest
        self._beside = ("", {})
        found.seen.update(now)
        whole = [method] if is_last and method not in found.complete else []
        if new or whole:
            self._pins.add(found.key, new, whole, at)
        gone = found.taken_back()
        if gone:
            self._pins.take_back(found.key, gone)
        if new or whole or gone:
            found.load(self._pins.of_server(found.key))
        self._report_findings(server, found, new, at)

    def _first_look(
        self,
        server: str,
        found: ServerPins,
        method: str,
        said: Definition,
        entry: Mapping[str, Json],
    ) -> Pin:
        """Inspect a definition that the store does not know, and decide whether it is accepted."""
        policy = self._judge.policy.definitions
        if self._beside[0] != server:
            self._beside = (server, self._neighbours(server))
        findings = inspect(said, entry, server, policy, self._beside[1])
        key = said.kind, said.name
        # Trust on first use: only while the server's list was never seen whole, and only once.
        accept = (
            method not in found.complete
            and key not in found.accepted
            and key not in found.others
            and said.is_readable
            and not is_hard(findings)
        )
        status, by = (ACCEPTED, FIRST_SEEN) if accept else (HELD, "")
        return Pin(found.key, *key, said.digest, status, said.text, findings, 0.0, by)

    def _neighbours(self, server: str) -> dict[str, list[str]]:
        """Return the names of the tools of the other servers of this gate, if they are few."""
        found = {
            other: [name for kind, name in pins.seen if kind == TOOL]
            for other, pins in self._servers.items()
            if other != server
        }
        return found if sum(map(len, found.values())) <= MAX_NEIGHBOURS else {}

    # Decisions of people.

    def _refresh(self, server: str, found: ServerPins, at: float) -> None:
        before = {(pin.key, pin.digest): pin for pin in found.doubted()}
        found.load(self._pins.of_server(found.key))
        self._judge.definitions.unread.discard(server)
        known = found.standing()
        self._judge.definitions.replace(server, known)
        if any(key not in known for key in (pin.key for pin in before.values())):
            self._judge.definitions.forget(server)
        for (key, digest), pin in before.items():
            accepted = found.accepted.get(key)
            after = found.others.get(key, {}).get(digest)
            if accepted is not None and accepted.digest == digest:
                self._decided(server, found, accepted, at)
            elif after is not None and after.status != pin.status:
                self._decided(server, found, after, at)
        if found.approval and self._questions.follow(found.approval, at).status != PENDING:
            found.approval = ""

    def _decided(self, server: str, found: ServerPins, pin: Pin, at: float) -> None:
        """Record what a person decided about a definition."""
        self._note(server, found, pin, pin.status, at, by=pin.by)
        self._say(f"definitions  {_named(server, pin)} was {pin.status} by {pin.by}")

    def _ask(self, server: str, found: ServerPins, at: float) -> None:
        """Ask people about everything of a server that is held."""
        if self._judge.definitions.mode(server) != PIN or not self._is_enforced():
            return
        held = [pin for pin in found.doubted() if pin.status == HELD and pin.text]
        change_set = _digest(held) if held else ""
        if found.approval and change_set != found.asked:
            self._questions.withdraw(found.approval, "the definitions changed again", at)
            found.approval = ""
        found.is_postponed = bool(held) and not found.approval and not found.may_ask(at)
        if not held or found.approval or found.is_postponed:
            return
        found.asked = change_set
        shown = self._shown(server, found, held)
        if shown is None:
            return
        try:
            self._pins.offer(found.key, change_set, held)
        except StoreError as error:
            self._fail(error)
            return
        found.asked_at.append(at)
        answer = self._questions.put(self._question(server, found, held, shown), at)
        if answer.status == PENDING:
            found.approval = answer.approval

    def _question(
        self, server: str, found: ServerPins, held: list[Pin], shown: dict[str, Any]
    ) -> StandingQuestion:
        count = "a definition" if len(held) == 1 else f"{len(held)} definitions"
        return StandingQuestion(
            DEFINITION_KIND,
            server,
            found.key,
            DEFINITION_OWNER + found.asked,
            found.asked,
            shown,
            f"{server} changed {count}",
            self._judge.policy.version,
        )

    def _shown(self, server: str, found: ServerPins, held: Iterable[Pin]) -> dict[str, Any] | None:
        """Return the difference for people, the most severe first; None if it is too long."""
        words = WordDifference()
        told = []
        for pin in held:
            before = found.accepted.get(pin.key)
            said = words.describe(before.definition if before else None, pin.definition)
            if pin.findings:
                said["findings"] = list(pin.findings)
            told.append({pin.kind: pin.name, **said})
        told.sort(key=lambda one: ("severe", "notable", "mild", "").index(str(one["weight"])))
        masked: Any = self._judge.policy.redactor.mask_value(
            {"weight": told[0]["weight"], "server": server, "definitions": told}
        )
        size = len(str(masked))
        if size <= MAX_SHOWN:
            return dict(masked)
        self._say(
            f"definitions  the changes of {server} are too long to ask about; "
            f"look at them with: thoughtgate tools diff {server}"
        )
        return None

    # Telling.

    def _report(self, server: str, found: ServerPins, at: float) -> None:
        """Record what is not accepted, and tell the operator once."""
        is_pinned = self._judge.definitions.mode(server) == PIN
        outcome = WARNED if not is_pinned else HELD if self._is_enforced() else WOULD_HOLD
        for pin in found.doubted():
            mark = (*pin.key, pin.digest)
            if mark in found.told:
                continue
            if len(found.told) >= MAX_PINS:
                found.told.clear()
            found.told.add(mark)
            self._note(
                server, found, pin, pin.status if is_pinned and self._is_enforced() else outcome, at
            )
            how = f"thoughtgate tools diff {server}"
            word = "WOULD_HOLD  " if outcome == WOULD_HOLD else ""
            self._say(
                f"definitions  {word}{_named(server, pin)}: {visible(found.note(pin))}; see: {how}"
            )

    def _report_findings(
        self, server: str, found: ServerPins, new: Iterable[Pin], at: float
    ) -> None:
        """Record what the checks found in definitions that were accepted at first sight."""
        for pin in new:
            is_accepted = found.accepted.get(pin.key, pin).digest == pin.digest
            if pin.findings and pin.status == ACCEPTED and is_accepted:
                self._note(server, found, pin, ACCEPTED, at, by=FIRST_SEEN)

    def _note(
        self, server: str, found: ServerPins, pin: Pin, outcome: str, at: float, *, by: str = ""
    ) -> None:
        told = found.facts(pin)
        told["name"] = self._judge.recorded_name(pin.name)
        told |= {"outcome": outcome, "enforced": self._is_enforced()}
        if by:
            told["by"] = by
        if found.approval:
            told["approval"] = found.approval
        self.note(Record(DEFINITION_CHANGED, at, server, "0", {"definition": told}))

    def _fail(self, error: StoreError) -> None:
        if not self._failed:
            self._say(f"definitions  the pins cannot be read or written: {error}")
        self._failed = True

    def _is_enforced(self) -> bool:
        return self._judge.policy.profile == PRODUCTION


def _named(server: str, pin: Pin) -> str:
    return f"{pin.kind} {visible(pin.name)} of {server}"


def _digest(held: Iterable[Pin]) -> str:
    total = sha256(b"thoughtgate definitions 1")
    for part in sorted("\0".join((pin.server, *pin.key, pin.digest)) for pin in held):
        data = part.encode("utf-8", "surrogatepass")
        total.update(len(data).to_bytes(8, "big"))
        total.update(data)
    return total.hexdigest()
