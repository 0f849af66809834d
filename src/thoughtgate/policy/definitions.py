"""The settings for changed definitions of servers: pin, warn or off.

Also the findings of the definition checks that are silenced, per server and tool. This module
decides nothing itself: ``core.definitions`` compares definitions, and the gate keeps the pins.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from thoughtgate.policy.globs import Glob, any_matches
from thoughtgate.policy.visibility import ANY_SERVER

PIN: Final = "pin"
"""A changed or new definition is hidden and cannot be called until a person accepts it."""
WARN: Final = "warn"
"""It is recorded and shown, and nothing is hidden."""
OFF: Final = "off"
"""Definitions are neither pinned nor checked."""

MODES: Final = (PIN, WARN, OFF)
"""From the strictest to the loosest."""


@dataclass(frozen=True, slots=True)
class Silence:
    """Findings that do not count, because somebody has looked at them."""

    checks: tuple[Glob, ...]
    """Ids of checks."""
    names: tuple[Glob, ...]
    """Names of the tools, prompts and resources; empty for all."""
    reason: str
    """Why they do not count."""

    def covers(self, check: str, name: str) -> bool:
        """Tell whether a finding about a tool, prompt or resource is silenced."""
        return any_matches(self.checks, check) and (not self.names or any_matches(self.names, name))


@dataclass(frozen=True, slots=True)
class DefinitionPolicy:
    """What happens to changed definitions, by server."""

    modes: Mapping[str, str] = field(default_factory=dict)
    """The mode by server id; the key ``*`` is for servers that set none."""
    silences: Mapping[str, tuple[Silence, ...]] = field(default_factory=dict)
    """Silenced findings by server id; those under ``*`` count for servers that have none."""
    layers: tuple["DefinitionPolicy", ...] = ()
    """The settings of the policy's layers; they can only make it stricter."""

    def mode(self, server: str) -> str:
        """Return the strictest mode that applies to a server; ``warn`` if none is set."""
        chosen = [self._chosen(server) or WARN]
        chosen += [layer.mode(server) for layer in self.layers if layer.has_say(server)]
        return min(chosen, key=MODES.index)

    def has_say(self, server: str) -> bool:
        """Tell whether a mode is set for a server."""
        return bool(self._chosen(server)) or any(layer.has_say(server) for layer in self.layers)

    def pins(self) -> bool:
        """Tell whether any server's definitions are pinned."""
        return PIN in self.modes.values() or any(layer.pins() for layer in self.layers)

    def silenced(self, server: str, check: str, name: str) -> str:
        """Return the reason why a finding does not count; empty if it counts.

        A layer that pins a server's definitions must silence the finding as well: otherwise the
        user could switch off the checks of the organisation.
        """
        own = self.silences.get(server) or self.silences.get(ANY_SERVER, ())
        reason = next((one.reason for one in own if one.covers(check, name)), "")
        for layer in self.layers:
            is_pinned = layer.has_say(server) and layer.mode(server) == PIN
            if is_pinned and not layer.silenced(server, check, name):
                return ""
        return reason

    def _chosen(self, server: str) -> str:
        return self.modes.get(server) or self.modes.get(ANY_SERVER, "")
