"""The running gates that share a store: one row per gate, which expires unless it is renewed.

The row decides one thing: when the held calls and the tasks of a gate that died may be taken
over. A gate whose row has expired may still be running, for example after a pause; by then other
gates may have taken over what it owned, so every use of an owned row names the owner.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.stores.database import Store

LIFE_S: Final = 15.0
"""How long a row lasts without being renewed."""

RENEW_S: Final = LIFE_S / 3
"""How often a gate renews its row; one failed attempt does no harm."""

KEEP_S: Final = 3600.0
"""How long the row of a gate that died is kept, so that people can see it."""

_SAVE: Final = (
    "INSERT INTO gates (owner, started_at, expires_at, facts) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (owner) DO UPDATE SET expires_at = excluded.expires_at, facts = excluded.facts"
)


class RunningGate(NamedTuple):
    """One gate that uses the store."""

    owner: str
    started_at: float
    expires_at: float
    facts: Mapping[str, Any]
    """What it says about itself; nothing secret."""


class GateStore(Store):
    """The rows of all gates."""

    def renew(self, owner: str, started_at: float, facts: Mapping[str, Any], now: float) -> None:
        """Add the row of a gate, or renew it."""
        with self._database.write() as transaction:
            # Converted inside the transaction, which has just looked at the store's clock.
            at = self._database.time(now)
            started_at = self._database.time(started_at)
            transaction.execute(_SAVE, (owner, started_at, at + LIFE_S, json.dumps(facts)))
            # Every gate cleans up for the others, because a gate that died cannot.
            transaction.execute("DELETE FROM gates WHERE expires_at < ?", (at - KEEP_S,))

    def end(self, owner: str) -> None:
        """Remove the row of a gate that stops."""
        with self._database.write() as transaction:
            transaction.execute("DELETE FROM gates WHERE owner = ?", (owner,))

    def listed(self) -> list[RunningGate]:
        """Return all gates, oldest first, including those whose row has expired."""
        rows = self._database.read(
            "SELECT owner, started_at, expires_at, facts FROM gates ORDER BY started_at, owner"
        )
        return [
            RunningGate(owner, started_at, expires_at, json.loads(facts))
            for owner, started_at, expires_at, facts in rows
        ]
