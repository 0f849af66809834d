"""The definitions of one server: what it lists now, compared with what is in the store."""

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from thoughtgate.core.definitions.changes import KINDS_OF_CHANGE, compare, heaviest
from thoughtgate.core.definitions.known_definitions import Doubt, Key
from thoughtgate.core.definitions.pinned import RESOURCE
from thoughtgate.gate.definitions.inspection import checks_in
from thoughtgate.stores.pins import ACCEPTED, LIST_KIND, Pin

MAX_QUESTIONS: Final = 5
"""Questions about one server within ``QUESTIONS_S``: a server could change its lists all the time."""

QUESTIONS_S: Final = 300.0

MAX_NAMED: Final = 3
"""Changes that a note for reviewers names."""


class ServerPins:
    """What a server said last, and what the store has about it."""

    def __init__(self, key: str) -> None:
        self.key = key
        """The key of the server's pins."""
        self.seen: dict[Key, str] = {}
        """The digest of each definition as the server listed it last in this run."""
        self.shown: dict[str, object] = {}
        """The list last compared, by method: the same object need not be compared again."""
        self.told: set[tuple[str, str, str]] = set()
        """Definitions, with their digests, about which the operator was told."""
        self.asked = ""
        """Digest of the changes of the last question."""
        self.approval = ""
        """The id of the last question while it is pending."""
        self.asked_at: deque[float] = deque(maxlen=MAX_QUESTIONS)
        """When the last questions were asked."""
        self.is_postponed = False
        """Whether a question waits because there were too many."""
        self.accepted: dict[Key, Pin] = {}
        self.others: dict[Key, dict[str, Pin]] = {}
        """Held and refused definitions, by digest."""
        self.complete: set[str] = set()
        """Lists that were once seen whole."""

    def load(self, pins: list[Pin]) -> None:
        """Take what the store has now."""
        self.accepted, self.others, self.complete = {}, {}, set()
        for pin in pins:
            if pin.kind == LIST_KIND:
                self.complete.add(pin.name)
            elif pin.status == ACCEPTED:
                self.accepted[pin.key] = pin
            else:
                self.others.setdefault(pin.key, {})[pin.digest] = pin

    def may_ask(self, at: float) -> bool:
        """Tell whether people may be asked about this server now."""
        asked = self.asked_at
        # If the clock was set back, the old times must not block questions for long.
        return len(asked) < MAX_QUESTIONS or not 0 <= at - asked[0] < QUESTIONS_S

    def is_known(self, key: Key, digest: str) -> bool:
        """Tell whether the store knows a definition."""
        pin = self.accepted.get(key)
        return (pin is not None and pin.digest == digest) or digest in self.others.get(key, {})

    def doubted(self) -> list[Pin]:
        """Return what the server says now and nobody has accepted."""
        found = (self.others.get(key, {}).get(digest) for key, digest in self.seen.items())
        return [pin for pin in found if pin is not None]

    def standing(self) -> dict[Key, Doubt | None]:
        """Return what the judge must know: None for an accepted definition.

        A definition that the store no longer has is left out, so that the list is fetched again.
        """
        known: dict[Key, Doubt | None] = {}
        for key, pins in self.others.items():
            # The server need not have listed it in this run: resources can be read unlisted.
            if key[0] == RESOURCE and key not in self.seen:
                pin = next(iter(pins.values()))
                known[key] = Doubt(pin.status, self.note(pin))
        for key, digest in list(self.seen.items()):
            held = self.others.get(key, {}).get(digest)
            if held is not None:
                known[key] = Doubt(held.status, self.note(held))
            elif self.is_known(key, digest):
                known[key] = None
            else:
                # Forgotten here as well, so that the next list is compared anew.
                del self.seen[key]
                self.shown.clear()
        return known

    def taken_back(self) -> list[Key]:
        """Return held definitions in place of which the server says again what was accepted."""
        return [
            key
            for key, digest in self.seen.items()
            if key in self.accepted
            and self.accepted[key].digest == digest
            and any(pin.status == "held" for pin in self.others.get(key, {}).values())
        ]

    def facts(self, pin: Pin) -> dict[str, Any]:
        """Return what the record says about a change."""
        before = self.accepted.get(pin.key)
        changes = compare(before.definition if before else None, pin.definition)
        told: dict[str, Any] = {
            "kind": pin.kind,
            "name": pin.name,
            "server_key": self.key,
            "digest": pin.digest,
            "weight": heaviest(changes),
            "changes": list(dict.fromkeys(one.change for one in changes)),
        }
        if before is not None:
            told["old_digest"] = before.digest
        if pin.findings:
            told["findings"] = [_finding(one) for one in pin.findings]
        return told

    def note(self, pin: Pin) -> str:
        """Return what a reviewer must know about a definition that is not accepted."""
        before = self.accepted.get(pin.key)
        changes = compare(before.definition if before else None, pin.definition)
        parts = ["nobody has accepted this definition"] if before is None else []
        if before is not None:
            kinds = list(dict.fromkeys(one.change for one in changes))[:MAX_NAMED]
            words = ", ".join(KINDS_OF_CHANGE[kind][1] for kind in kinds)
            parts.append(f"the definition changed ({heaviest(changes)}): {words}")
        if checks := checks_in(pin.findings):
            parts.append(f"the checks found: {', '.join(checks[:MAX_NAMED])}")
        if pin.status == "refused":
            parts.append(f"refused by {pin.by}")
        return "; ".join(parts)


def _finding(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finding for the record, without its text."""
    return {key: found[key] for key in ("check", "tier", "where", "silenced") if key in found}
