"""Selection of the calls that a rule or limit applies to: by server, kind, name and words."""

from dataclasses import dataclass

from thoughtgate.policy.call import SERVER_KINDS
from thoughtgate.policy.globs import Glob, any_matches
from thoughtgate.policy.words import split_words


@dataclass(frozen=True, slots=True)
class Selector:
    """Selects calls by their target; an empty field accepts any value."""

    kinds: frozenset[str] = frozenset()
    """``tool``, ``resource``, ``prompt``, or the kinds of a server's requests."""
    names: tuple[Glob, ...] = ()
    """Patterns of the tool, resource or prompt."""
    servers: tuple[Glob, ...] = ()
    """Patterns of the server id."""
    words: frozenset[str] = frozenset()
    """Words of which the name must contain one."""

    def covers(self, server: str, kind: str, name: str) -> bool:
        """Tell whether this tool, resource or prompt is selected."""
        return (
            (kind in self.kinds if self.kinds else self._is_for_any(kind))
            and (not self.servers or any_matches(self.servers, server))
            and (not self.names or any_matches(self.names, name))
            and (not self.words or not self.words.isdisjoint(split_words(name)))
        )

    def _is_for_any(self, kind: str) -> bool:
        # A rule with names but without a kind is meant for what servers offer, not for what they
        # request from the agent.
        return kind not in SERVER_KINDS or not (self.names or self.words)
