"""Selection of the calls that a rule or limit applies to: by server, kind, name and words."""

from dataclasses import dataclass

from thoughtgate.policy.globs import Glob, any_matches
from thoughtgate.policy.words import split_words


@dataclass(frozen=True, slots=True)
class Selector:
    """Selects calls by their target; an empty field accepts any value."""

    kinds: frozenset[str] = frozenset()
    """``tool``, ``resource``, ``prompt``."""
    names: tuple[Glob, ...] = ()
    """Patterns of the tool, resource or prompt."""
    servers: tuple[Glob, ...] = ()
    """Patterns of the server id."""
    words: frozenset[str] = frozenset()
    """Words of which the name must contain one."""

    def covers(self, server: str, kind: str, name: str) -> bool:
        """Tell whether this tool, resource or prompt is selected."""
        return (
            (not self.kinds or kind in self.kinds)
            and (not self.servers or any_matches(self.servers, server))
            and (not self.names or any_matches(self.names, name))
            and (not self.words or not self.words.isdisjoint(split_words(name)))
        )
