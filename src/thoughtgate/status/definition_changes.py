"""Definitions that nobody has accepted: shows people what changed, and takes their decision."""

from contextlib import closing
from hashlib import sha256
from typing import Any, Final, NamedTuple

from thoughtgate.core.approval import (
    DEFINITION_KIND,
    PENDING,
    Approval,
    Refusal,
    Reviewer,
    may_vote,
)
from thoughtgate.core.definitions.changes import compare, heaviest
from thoughtgate.core.definitions.difference import WordDifference
from thoughtgate.errors import StoreError
from thoughtgate.policy.redaction import Redactor
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.pins import ACCEPTED, LIST_KIND, Pin, PinStore, server_of

_MASKS: Final = Redactor()
"""Masks what looks like a secret in what people see."""


class ChangedDefinition(NamedTuple):
    """A definition that is not accepted, with what was accepted before."""

    pin: Pin
    weight: str
    lines: list[str]
    """The difference, the most severe change first."""


class ChangedServer(NamedTuple):
    """What one server changed."""

    key: str
    server: str
    question: str
    """The id of the pending approval request about it; empty if there is none."""
    changes: list[ChangedDefinition]

    @property
    def digest(self) -> str:
        """Identifies exactly what is shown."""
        parts = sorted(f"{one.pin.key}{one.pin.digest}" for one in self.changes)
        return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


class DefinitionChanges:
    """Shows what servers changed, and takes decisions that no approval request waits for."""

    def __init__(self, store: ApprovalStore) -> None:
        self._store = store
        self._pins = store.pins()

    def servers(self) -> list[ChangedServer]:
        """Return every server with definitions that nobody has decided about."""
        asked = {
            one.tool: one.id for one in self._store.listed(PENDING) if one.kind == DEFINITION_KIND
        }
        keys = dict.fromkeys(pin.server for pin in self._pins.waiting())
        return [self._server(key, asked.get(key, "")) for key in keys]

    def decide(
        self, key: str, shown: str, status: str, by: Reviewer, at: float
    ) -> list[Pin] | Refusal:
        """Accept or refuse what a page has shown; refused if it has changed since."""
        found = next((one for one in self.servers() if one.key == key), None)
        # A person must only accept what the page showed, not what a server said in the meantime.
        if found is None or found.digest != shown:
            return Refusal("not_this", "the definitions have changed since the page was loaded")
        if found.question:
            return Refusal("asked", f"answer the approval request {found.question}")
        refused = self._why_not(key, by)
        if refused is not None:
            return refused
        return self._pins.decide([one.pin for one in found.changes], status, by.by, at)

    def _why_not(self, key: str, by: Reviewer) -> Refusal | None:
        """Return why a person may not decide alone, by the last question about the server."""
        asked: list[Approval] = [
            one for one in self._store.listed() if one.kind == DEFINITION_KIND and one.tool == key
        ]
        if not asked:
            return None
        last = max(asked, key=lambda one: one.created_at)
        if last.required > 1:
            return Refusal("not_allowed", f"{last.required} people must accept it")
        return may_vote(last, by)

    def _server(self, key: str, question: str) -> ChangedServer:
        pins = [pin for pin in self._pins.of_server(key) if pin.kind != LIST_KIND]
        before = {pin.key: pin for pin in pins if pin.status == ACCEPTED}
        words = WordDifference()
        changes = []
        for pin in pins:
            if pin.status != "held":
                continue
            old = before.get(pin.key)
            both = (old.definition if old else None, pin.definition)
            lines = list(map(_MASKS.mask_text, words.lines(*both)))
            changes.append(ChangedDefinition(pin, heaviest(compare(*both)), lines))
        order = ("severe", "notable", "mild", "")
        changes.sort(key=lambda one: order.index(one.weight))
        return ChangedServer(key, server_of(key), question, changes)


def waiting_definitions(location: StoreLocation) -> list[dict[str, Any]]:
    """Return the definitions that nobody has accepted, for ``status``."""
    if not location.may_exist:
        return []
    try:
        with closing(open_database(location)) as database:
            return [
                {"server": server_of(pin.server), "kind": pin.kind, "name": pin.name}
                for pin in PinStore(database).waiting()
            ]
    except StoreError:
        return []
