"""The third gate: Cedar policies, parsed once and evaluated for calls with ``action: policy``.

The model has no namespace and no schema:

- principal ``Agent::"<principal>"``
- action ``Action::"call_tool"``, ``Action::"read_resource"`` or ``Action::"get_prompt"``
- resource ``Tool::"<server>/<name>"`` (or ``Resource``, ``Prompt``) with the attributes
  ``name`` and ``server``, in ``Server::"<server>"``
- context ``arguments``, ``annotations``, ``server``, ``tool`` (the name of whatever is
  called), ``method``, ``time`` (``hour``, ``minute``, ``day_of_week`` from Sunday = 0,
  ``epoch``; all UTC), ``session`` (``id``, ``calls``), ``claims``, ``scopes`` (the set of
  scopes of the caller's token) and ``facts`` (a set of ``untrusted``, ``private``, ``outbound``)

Whole numbers are Long, fractions of at most four digits are ``decimal``, and any other number
is a String. ``null`` is left out, arrays are sets. An attribute that is missing or has
another type causes an evaluation error, and any evaluation error denies. So write
``context.arguments has amount && context.arguments.amount < 100``.
"""

import json
from collections.abc import Callable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from thoughtgate.errors import ConfigError, Problem
from thoughtgate.policy.call import (
    ELICITATION,
    MAX_KEPT,
    PROMPT,
    RESOURCE,
    ROOTS,
    SAMPLING,
    TOOL,
    Call,
)
from thoughtgate.policy.cedar_needs import ARGUMENTS, ContextNeeds, context_needs
from thoughtgate.policy.cedar_text import TOO_DEEP, CedarSource, PolicyNote, read_sources
from thoughtgate.policy.scopes import scopes_of

if TYPE_CHECKING:
    import cedarpy

MAX_ENTITIES: Final = 1024
"""Maximum number of cached entities; agents choose names, so a full cache is cleared."""

MAX_REASON: Final = 300
"""Maximum characters of a Cedar error message in the record."""

_ACTIONS: Final = {
    TOOL: "call_tool",
    RESOURCE: "read_resource",
    PROMPT: "get_prompt",
    SAMPLING: "sample",
    ELICITATION: "elicit",
    ROOTS: "list_roots",
}
_TYPES: Final = {
    TOOL: "Tool",
    RESOURCE: "Resource",
    PROMPT: "Prompt",
    SAMPLING: "Sampling",
    ELICITATION: "Elicitation",
    ROOTS: "Roots",
}

_LONG: Final = range(-(2**63), 2**63)
_DECIMAL_SCALE: Final = 10_000
"""A Cedar decimal has four fractional digits; without the point it must fit in a Long."""

_ESCAPES: Final = frozenset({"__entity", "__extn", "__expr"})
"""Keys with a special meaning in Cedar's JSON, which an agent could use to forge an entity."""

_DAY_S: Final = 86_400
_EPOCH_WEEKDAY: Final = 4
"""1 January 1970 was a Thursday; Sunday is 0."""


class CedarDecision(NamedTuple):
    """The result of evaluating the policies for a call."""

    permitted: bool
    """False for a forbid, for no matching permit, and for an error."""
    policy: str
    """Ids of the policies that decided, separated by commas; may be empty."""
    reason: str
    """The reason, for the record."""
    workflow: str | None = None
    """The approval workflow to use first; empty for the default one, None for no approval."""


class CedarEngine:
    """A set of policies, with a cache of the entities of tools."""

    __slots__ = ("_ask", "_entities", "_handle", "_needs", "_notes", "count", "workflows")

    count: int
    """The number of policies."""
    workflows: frozenset[str]
    """Workflows named in ``@approval`` annotations."""

    def __init__(self, sources: Sequence[CedarSource]) -> None:
        """Parse the policies of all files.

        Raises:
            ConfigError: a file does not parse; each problem names file and line.
        """
        import cedarpy  # Here, because it loads 16 MB that a config without Cedar does not need.

        self._notes, problems = read_sources(sources)
        if problems:
            raise ConfigError(problems)
        text = "\n".join(source.text for source in sources)
        self._ask = cedarpy.is_authorized
        self._handle = cedarpy.PolicySet.from_str(text)
        try:
            self._needs = context_needs(json.loads(cedarpy.policies_to_json_str(text)))
        except RecursionError:
            files = ", ".join(source.file for source in sources)
            raise ConfigError([Problem("cedar.policies", TOO_DEEP, files)]) from None
        self._entities: dict[tuple[str, str, str], cedarpy.Entities] = {}
        self.count = len(self._notes)
        self.workflows = frozenset(
            note.workflow for note in self._notes.values() if note.workflow is not None
        )

    def decide(self, call: Call, now: float) -> CedarDecision:
        """Evaluate the policies for a call at the given time; the strictest reading counts."""
        needs = self._needs
        readings = needs.readings_of(call.arguments) if needs.wants(ARGUMENTS) else [{}]
        if readings is None:
            return CedarDecision(
                permitted=False, policy="", reason="servers could read the arguments in many ways"
            )
        decisions = [self._decide(call._replace(arguments=one), now) for one in readings]
        return max(decisions, key=_strictness)

    def _decide(self, call: Call, now: float) -> CedarDecision:
        try:
            context = json.dumps(_context(call, now, self._needs))
        except ValueError as error:
            return CedarDecision(permitted=False, policy="", reason=str(error))
        request = {
            "principal": {"type": "Agent", "id": call.principal},
            "action": {"type": "Action", "id": _ACTIONS[call.kind]},
            "resource": _resource(call),
            "context": context,
        }
        # An error in any policy denies (``_decision``), also if another policy permits the call.
        result = self._ask(request, self._handle, self._entities_of(call))
        # In file order, so that the same policy always determines the workflow.
        reasons = sorted(
            result.diagnostics.reasons, key=lambda one: int(one.removeprefix("policy"))
        )
        notes = [self._notes[reason] for reason in reasons]
        return _decision(notes, result.diagnostics.errors, permitted=result.allowed)

    def looks_at(self, member: str) -> bool:
        """Tell whether a policy may read a member of the context."""
        return self._needs.wants(member)

    def _entities_of(self, call: Call) -> "cedarpy.Entities":
        key = (call.server, call.kind, call.name)
        known = self._entities.get(key)
        if known is None:
            import cedarpy  # loaded by the constructor

            known = cedarpy.Entities.from_json_str(json.dumps(_entities(call)))
            if len(self._entities) >= MAX_ENTITIES:
                self._entities.clear()
            if len(call.name) <= MAX_KEPT:
                self._entities[key] = known
        return known


def _strictness(decision: CedarDecision) -> int:
    return 2 if not decision.permitted else int(decision.workflow is not None)


def _decision(notes: list[PolicyNote], errors: list[str], *, permitted: bool) -> CedarDecision:
    if errors:
        return CedarDecision(permitted=False, policy="", reason=errors[0][:MAX_REASON])
    ids = ", ".join(note.id for note in notes)
    if not permitted:
        reason = "a policy forbids it" if notes else "no policy permits it"
        return CedarDecision(permitted=False, policy=ids, reason=reason)
    # Among several permits, one that requires approval wins, as the stricter decision.
    workflow = next((note.workflow for note in notes if note.workflow is not None), None)
    return CedarDecision(
        permitted=True, policy=ids, reason="a policy permits it", workflow=workflow
    )


def _resource(call: Call) -> dict[str, str]:
    """Return the resource's identity; a ``/`` in the server's id is escaped to keep it unique."""
    server = call.server.replace("%", "%25").replace("/", "%2F")
    return {"type": _TYPES[call.kind], "id": f"{server}/{call.name}"}


def _entities(call: Call) -> list[dict[str, Any]]:
    server = {"type": "Server", "id": call.server}
    return [
        {"uid": server, "attrs": {}, "parents": []},
        {
            "uid": _resource(call),
            "attrs": {"name": call.name, "server": call.server},
            "parents": [server],
        },
    ]


def _context(call: Call, now: float, needs: ContextNeeds) -> dict[str, Any]:
    context: dict[str, Any] = {}
    for member, make in _MEMBERS.items():
        if needs.wants(member):
            context[member] = make(call, now)
    if needs.wants(ARGUMENTS):
        context[ARGUMENTS] = _record(call.arguments)
    return context


def _annotations(call: Call) -> dict[str, Any]:
    if not call.is_listed:
        # Fail closed: a policy must not take unknown annotations for absent ones.
        raise ValueError("the annotations of the tool are not known")
    return _record(call.annotations or {})


def _facts(call: Call) -> list[str]:
    if call.facts is None:
        # Fail closed: a policy must not take unknown facts for absent ones.
        raise ValueError("the facts of the principal cannot be read")
    return sorted(call.facts)


def _time(now: float) -> dict[str, int]:
    seconds = int(now)
    return {
        "hour": seconds // 3600 % 24,
        "minute": seconds // 60 % 60,
        "day_of_week": (seconds // _DAY_S + _EPOCH_WEEKDAY) % 7,
        "epoch": seconds,
    }


def _record(values: dict[str, Any]) -> dict[str, Any]:
    if not _ESCAPES.isdisjoint(values):
        raise ValueError("a key of the call has a meaning of its own in Cedar")
    return {key: _cedar(value) for key, value in values.items() if value is not None}


def _cedar(value: Any) -> Any:
    if isinstance(value, str | bool):
        return value
    if isinstance(value, dict):
        return _record(value)
    if isinstance(value, list):
        return [_cedar(member) for member in value if member is not None]
    return _number(value)


def _number(value: float) -> Any:
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("a number of the call is too large for Cedar")
    if isinstance(value, int) or value.is_integer():
        return int(value) if int(value) in _LONG else str(value)
    text = repr(value)
    # Anything that a decimal would round stays text, which no policy can compare with a number.
    exact = "e" not in text and len(text.partition(".")[2]) <= len(str(_DECIMAL_SCALE)) - 1
    if exact and int(value * _DECIMAL_SCALE) in _LONG:
        return {"__extn": {"fn": "decimal", "arg": text}}
    return text


_MEMBERS: Final[dict[str, Callable[[Call, float], Any]]] = {
    "annotations": lambda call, _: _annotations(call),
    "claims": lambda call, _: _record(call.claims or {}),
    "scopes": lambda call, _: sorted(scopes_of(call.claims)),
    "facts": lambda call, _: _facts(call),
    "server": lambda call, _: call.server,
    "tool": lambda call, _: call.name,
    "method": lambda call, _: call.method,
    "session": lambda call, _: {"id": call.session, "calls": call.session_calls},
    "time": lambda _, now: _time(now),
}
"""The members of the context other than the arguments, and how each is computed."""
