"""The first gate: which tools, resources and prompts of a server are visible to the agent.

Hidden ones are neither listed nor callable. The ``*`` entry applies to servers without an entry;
if there is none, everything is visible and the rules decide.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from thoughtgate.policy.globs import Glob, any_matches

ALL: Final = "all"
ALLOW: Final = "allow"
BLOCK: Final = "block"

ANY_SERVER: Final = "*"
"""The key of the entry for servers that do not have their own."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """What one server exposes."""

    mode: str = ALL
    """``all``, ``allow`` (only what is listed) or ``block`` (all but what is listed)."""
    names: frozenset[str] = frozenset()
    """The exact names of the list."""
    globs: tuple[Glob, ...] = ()
    """The patterns of the list."""
    enabled: bool = True
    """False hides everything."""

    @classmethod
    def of(cls, mode: str, patterns: Iterable[str] = (), *, enabled: bool = True) -> "Exposure":
        """Build an exposure from the patterns as written."""
        globs = tuple(Glob(pattern) for pattern in patterns)
        return cls(
            mode=mode,
            names=frozenset(glob.pattern for glob in globs if glob.exact),
            globs=tuple(glob for glob in globs if not glob.exact),
            enabled=enabled,
        )

    def shows(self, name: str, *, spelled: str = "") -> bool:
        """Tell whether a name is visible; ``spelled`` is how the caller wrote it, if otherwise."""
        if not self.enabled:
            return False
        # An allowlist that names a URI exactly means the resource, whatever a server makes of it.
        if self.mode == ALL or (spelled and self.mode == ALLOW and spelled in self.names):
            return True
        listed = name in self.names or any_matches(self.globs, name)
        return listed == (self.mode == ALLOW)


_EVERYTHING: Final = Exposure()


@dataclass(frozen=True, slots=True)
class Visibility:
    """What every server exposes."""

    servers: Mapping[str, Exposure] = field(default_factory=dict)
    """Exposure by server id; the key ``*`` is for all others."""
    narrowed_by: tuple["Visibility", ...] = ()
    """The lists of the policy's layers; all of them must show a name."""

    def exposure(self, server: str) -> Exposure:
        """Return the exposure of a server; no server can have the id ``*``."""
        own = self.servers.get(server)
        return own if own is not None else self.servers.get(ANY_SERVER, _EVERYTHING)

    def depends_on_names(self, server: str) -> bool:
        """Tell whether some things of a server may be visible and others not."""
        own = self.exposure(server)
        return own.mode != ALL or any(other.depends_on_names(server) for other in self.narrowed_by)

    def allows(self, server: str, name: str, *, spelled: str = "") -> bool:
        """Tell whether a tool, resource or prompt is visible to the agent.

        One list serves all kinds: an allowlist of tool names hides every resource and prompt.
        This judges one reading of a URI; ``evaluation.is_visible`` judges all.
        """
        if not self.exposure(server).shows(name, spelled=spelled):
            return False
        return not self.narrowed_by or all(
            other.allows(server, name, spelled=spelled) for other in self.narrowed_by
        )
