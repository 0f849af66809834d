"""The servers of a run, and which of them are proven to be governed.

A rewritten entry is only an intention. A server is proven to be governed when its shim has reported
to the governance service; until then, the agent has not started the server, or has started it in a
way that the gate does not see.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

GOVERNED: Final = "governed"
NEVER_STARTED: Final = "never started"
NOT_GOVERNED: Final = "not governed"


class ServerReport:
    """The servers of one run: configured, proven, and outside the gate."""

    def __init__(
        self,
        reported: AbstractSet[str],
        states: Callable[[], Mapping[str, Mapping[str, Any]]] = dict,
    ) -> None:
        """Start with a set that grows during the run.

        ``reported`` contains the names of the servers whose shims have reported. ``states`` returns
        each server's state after its last event, by name.
        """
        self.configured: tuple[str, ...] = ()
        """The servers whose entries were rewritten."""
        self.outside: Sequence[tuple[str, str]] = ()
        """What the agent may start without the gate, with the reason."""
        self._reported = reported
        self._states = states

    @property
    def governed(self) -> tuple[str, ...]:
        """The configured servers whose shims have reported."""
        return tuple(name for name in self.configured if name in self._reported)

    @property
    def silent(self) -> tuple[str, ...]:
        """The configured servers whose shims have not reported."""
        return tuple(name for name in self.configured if name not in self._reported)

    async def describe(self, _: dict[str, Any]) -> dict[str, Any]:
        """Return the servers for ``thoughtgate status``."""
        states = [(name, NEVER_STARTED, "no shim has reported") for name in self.silent]
        states += [(name, NOT_GOVERNED, reason) for name, reason in self.outside]
        others = [{"id": name, "status": status, "reason": why} for name, status, why in states]
        return {"servers": [*map(self._describe_governed, self.governed), *others]}

    def _describe_governed(self, name: str) -> dict[str, Any]:
        state = self._states().get(name, {})
        why = {key: state[key] for key in ("reason", "exit_code", "error") if key in state}
        return {"id": name, "status": GOVERNED, "reason": "", **why}
