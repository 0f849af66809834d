"""Finding which members of a call the Cedar policies use.

Cedar's time grows with the size of the context, and arguments can be large. So only members
that some policy names are passed on; if a policy uses the context or the arguments as a whole,
everything is. A member that no policy names cannot change a decision.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.policy.cedar_readings import AttributeNames

ARGUMENTS: Final = "arguments"

_CONTEXT: Final = {"Var": "context"}
_STEPS: Final = (".", "has")
"""Operators that access a member of a record."""


class ContextNeeds(NamedTuple):
    """The members of the context, and of its arguments, that policies name; None for all."""

    members: frozenset[str] | None
    arguments: frozenset[str] | None
    attributes: AttributeNames
    """Everything that policies name, at any depth."""

    def wants(self, member: str) -> bool:
        """Tell whether a policy may read a member of the context."""
        return self.members is None or member in self.members

    def readings_of(self, values: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """Return the readings of the arguments that a policy may read; None if too many."""
        return self.attributes.readings(self.attributes.select(values, self.arguments))


def context_needs(policies: Any) -> ContextNeeds:
    """Return the members that the policies, in Cedar's JSON form, use."""
    paths = set(_paths(policies))
    attributes = AttributeNames(set(_attributes(policies)))
    if () in paths:
        return ContextNeeds(None, None, attributes)
    members = frozenset(path[0] for path in paths)
    named = {path[1:] for path in paths if path[0] == ARGUMENTS}
    arguments = None if () in named else frozenset(path[0] for path in named)
    return ContextNeeds(members, arguments, attributes)


def _attributes(node: Any) -> Iterator[str]:
    """Yield every attribute that a part of a policy names, also in records that it compares."""
    if isinstance(node, dict):
        for operator, step in node.items():
            if operator in _STEPS and isinstance(step, dict):
                yield str(step.get("attr"))
            if operator == "Record" and isinstance(step, dict):
                yield from step
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from _attributes(part)


def _paths(node: Any) -> Iterator[tuple[str, ...]]:
    """Yield the path of each context member that a part of a policy names."""
    found = _path(node)
    if found is not None:
        yield found
    elif isinstance(node, dict):
        for part in node.values():
            yield from _paths(part)
    elif isinstance(node, list):
        for part in node:
            yield from _paths(part)


def _path(node: Any) -> tuple[str, ...] | None:
    """Return the path of the context member that a node names; None for any other node."""
    if node == _CONTEXT:
        return ()
    if not isinstance(node, dict) or len(node) != 1:
        return None
    (operator, step), *_ = node.items()
    if operator not in _STEPS or not isinstance(step, dict):
        return None
    before = _path(step.get("left"))
    return None if before is None else (*before, str(step.get("attr")))
