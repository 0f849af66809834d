"""What a policy asks for when the content checks find something in arguments or results.

Per server, lists of checks say what happens to a result in which one of them finds something. The
checks themselves are in ``policy.inspection``, which is loaded only if a server asks for it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from thoughtgate.policy.call import INSPECT_AFTER, INSPECT_BEFORE
from thoughtgate.policy.definitions import Silence
from thoughtgate.policy.globs import Glob, any_matches
from thoughtgate.policy.visibility import ANY_SERVER

NONE: Final = "none"
"""The finding is recorded, and the result passes unchanged."""
RECORD: Final = "record"
"""The result passes at once and is inspected afterwards; the finding is recorded."""
ANNOTATE: Final = "annotate"
"""The result passes with a note for the agent: it is data, not instructions."""
REDACT: Final = "redact"
"""Typed placeholders replace what was found."""
HOLD: Final = "hold"
"""The result waits until a person releases or refuses it."""
BLOCK: Final = "block"
"""The agent gets an error in place of the result."""

TREATMENTS: Final = (RECORD, ANNOTATE, REDACT, HOLD, BLOCK)
"""What can happen to a result, from the mildest to the strictest."""

UNCHANGED: Final = frozenset({NONE, RECORD})
"""Treatments after which the agent gets what the server sent, in every profile."""

_STRICTNESS: Final = {name: number for number, name in enumerate((NONE, *TREATMENTS))}

SECRET: Final = "secret-"  # noqa: S105  a prefix of check ids
"""How the ids of the checks for secrets begin."""

ENVELOPE: Final = ("jsonrpc", "id", "method")
"""Members of a message that belong to JSON-RPC, not to what the server says; never masked."""

RESULT_KIND: Final = "result"
"""The kind of an approval request about a held result."""


class Found(NamedTuple):
    """A finding as the record and a refusal name it: never what was found."""

    check: str
    tier: str
    where: str


FoundAll: TypeAlias = tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class ServerContents:
    """What one policy asks for the contents of one server."""

    treatments: Mapping[str, tuple[Glob, ...]] = field(default_factory=dict)
    """Treatments of results, each with the ids, globs or tiers of checks that it is for."""
    block_secrets: bool = False
    """Whether calls with secrets in their arguments are denied."""
    silences: tuple[Silence, ...] = ()
    recorded_arguments: tuple[Glob, ...] = ()
    """Ids, globs or tiers of checks whose findings in arguments are recorded, after the call."""

    def is_asked(self) -> bool:
        """Tell whether anything is inspected."""
        return self.block_secrets or bool(self.treatments or self.recorded_arguments)

    def treatment(self, check: str, tier: str, name: str) -> str:
        """Return the strictest treatment for a finding in a result of a tool; ``none`` if none."""
        if self.is_silenced(check, name):
            return NONE
        return strictest(
            action for action, wanted in self.treatments.items() if _names(wanted, check, tier)
        )

    def records(self, check: str, tier: str, name: str) -> bool:
        """Tell whether a finding in the arguments of a call is recorded."""
        wanted = self.recorded_arguments
        return _names(wanted, check, tier) and not self.is_silenced(check, name)

    def blocks(self, check: str, tier: str, name: str) -> bool:
        """Tell whether a finding in the arguments of a call denies it."""
        is_secret = check.startswith(SECRET) and tier == "hard"
        return self.block_secrets and is_secret and not self.is_silenced(check, name)

    def is_silenced(self, check: str, name: str) -> bool:
        """Tell whether a finding does not count."""
        return any(silence.covers(check, name) for silence in self.silences)


class ContentPolicy:
    """What a policy and its layers ask for the contents of all servers."""

    __slots__ = ("_known", "policies")

    def __init__(self, *policies: Mapping[str, ServerContents]) -> None:
        """Ask each of these mappings from server ids; ``*`` is for servers that are not named."""
        self.policies = policies
        self._known: dict[str, tuple[ServerContents, ...]] = {}

    def of(self, server: str) -> tuple[ServerContents, ...]:
        """Return what is asked for a server; empty if nothing is."""
        found = self._known.get(server)
        if found is None:
            chosen = (one.get(server, one.get(ANY_SERVER)) for one in self.policies)
            found = tuple(one for one in chosen if one is not None)
            # Config and command line name the servers, so the table stays small.
            self._known[server] = found
        return found

    def result_inspection(self, server: str) -> int:
        """Return when results of a server are inspected; 0 for never."""
        asked = self.of(server)
        if any(one.treatments.keys() - UNCHANGED for one in asked):
            return INSPECT_BEFORE
        return INSPECT_AFTER if any(one.treatments for one in asked) else 0

    def inspects_arguments(self, server: str) -> bool:
        """Tell whether arguments for a server are inspected before the call."""
        return any(one.block_secrets for one in self.of(server))

    def records_arguments(self, server: str) -> bool:
        """Tell whether arguments for a server are inspected after the call."""
        return any(one.recorded_arguments for one in self.of(server))


def _names(wanted: tuple[Glob, ...], check: str, tier: str) -> bool:
    return any_matches(wanted, check) or any(glob.pattern == tier for glob in wanted)


def strictest(actions: Iterable[str]) -> str:
    """Return the strictest of some treatments; ``none`` if there are none."""
    return max(actions, key=_STRICTNESS.__getitem__, default=NONE)


def combined(policies: Iterable[ContentPolicy | None]) -> ContentPolicy | None:
    """Return what several policies ask for together; None if none of them asks for anything."""
    asked = [mapping for one in policies if one is not None for mapping in one.policies]
    return ContentPolicy(*asked) if asked else None
