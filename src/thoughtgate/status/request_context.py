"""What helps a person decide an approval request: the tool's definition, and earlier answers."""

from typing import Any, Final, NamedTuple

from thoughtgate.core.approval import PENDING, STANDING_KINDS, Approval
from thoughtgate.core.definitions.difference import WordDifference
from thoughtgate.policy.redaction import Redactor
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.pins import ACCEPTED, HELD, REFUSED, Pin

LOOK_BACK: Final = 2000
"""Recent changes of the store that are searched for earlier answers: some 700 requests."""

MAX_EARLIER: Final = 5
"""Earlier answers to the same call that are shown."""

UNKNOWN: Final = "unknown"
PINNED: Final = "pinned"
CHANGED: Final = "changed"
NEW: Final = "new"

_MASKS: Final = Redactor()
"""Masks what looks like a secret in what people see."""


class ToolFacts(NamedTuple):
    """What the server says about the tool, and whether anybody has accepted that."""

    status: str
    """``pinned``, ``changed``, ``new``, ``refused``, or ``unknown`` if no gate has seen it."""
    description: str = ""
    title: str = ""
    annotations: tuple[tuple[str, str], ...] = ()
    findings: tuple[dict[str, Any], ...] = ()
    """What the definition checks found."""
    by: str = ""
    at: float = 0.0
    """Who accepted or refused it, and when."""
    difference: tuple[str, ...] = ()
    """How a changed definition differs from the accepted one."""


class EarlierAnswers(NamedTuple):
    """How similar requests were answered."""

    same: tuple[Approval, ...]
    """Requests for the same call, as far as arguments are shown; the newest first."""
    approved: int
    denied: int
    """Decisions on any call of the same tool."""


def find_tool(store: ApprovalStore, asked: Approval) -> ToolFacts | None:
    """Return what is known about the tool of a request; None if it is about no tool."""
    if asked.kind in STANDING_KINDS:
        return None
    pins = store.pins().named(asked.server, asked.kind, asked.tool)
    # Servers with the same name have separate pins; the request's digest says which one it means.
    current = [pin for pin in pins if not asked.definition or pin.digest == asked.definition]
    if not current:
        return ToolFacts(UNKNOWN)
    order = {HELD: 0, REFUSED: 1, ACCEPTED: 2}
    pin = min(current, key=lambda one: (order.get(one.status, 0), -one.at))
    accepted = next(
        (one for one in pins if one.status == ACCEPTED and one.server == pin.server), None
    )
    return _facts(pin, accepted)


def find_earlier(store: ApprovalStore, asked: Approval) -> EarlierAnswers:
    """Return how the same call, and other calls of the same tool, were answered recently."""
    closed = [
        one
        for one in reversed(store.since(store.rev() - LOOK_BACK))
        if one.status != PENDING
        and one.id != asked.id
        and (one.server, one.kind, one.tool) == (asked.server, asked.kind, asked.tool)
    ]
    # Two calls whose shortened arguments are equal may differ in what was cut off.
    same = [
        one
        for one in closed
        if (one.arguments, one.extra) == (asked.arguments, asked.extra)
        and not (one.folded or asked.folded)
    ]
    votes = [one.decider.approve for one in closed if one.decider is not None]
    return EarlierAnswers(tuple(same[:MAX_EARLIER]), sum(votes), len(votes) - sum(votes))


def _facts(pin: Pin, accepted: Pin | None) -> ToolFacts:
    body = pin.definition.body
    status, difference = pin.status, tuple[str, ...]()
    if pin.status == ACCEPTED:
        status = PINNED
    elif pin.status == HELD:
        status = NEW if accepted is None else CHANGED
        if accepted is not None:
            lines = WordDifference().lines(accepted.definition, pin.definition)
            difference = tuple(map(_MASKS.mask_text, lines))
    annotations = body.get("annotations")
    found = annotations.items() if isinstance(annotations, dict) else ()
    return ToolFacts(
        status,
        _masked(body.get("description")),
        _masked(body.get("title")),
        tuple((str(name), _masked(value)) for name, value in found),
        pin.findings,
        pin.by,
        pin.at,
        difference,
    )


def _masked(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _MASKS.mask_text(value if isinstance(value, str) else str(value))
