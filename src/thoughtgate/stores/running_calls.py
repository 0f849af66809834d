"""Approved calls that run, in a store that several gates share.

A row is inserted with the use of the approval, and deleted after the call's end is on the record.
If the gate dies in between, nobody knows whether the call took effect. Another gate, or the next
run of the same one, then claims the row, records that the outcome is unknown, and deletes it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from thoughtgate.core.approval import Approval
from thoughtgate.stores.database import Store, Transaction


class LostCall(NamedTuple):
    """A call whose gate died before its end was recorded."""

    approval: str
    call_id: str
    server: str
    tool: str
    used_at: float
    """On this machine's clock."""


def begin_call(transaction: Transaction, used: Approval, runner: str, at: float) -> None:
    """Note that a gate runs the call of an approval, in the transaction that uses the approval."""
    transaction.execute(
        "INSERT INTO running_calls (approval, owner, call_id, server, tool, used_at) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (used.id, runner, used.call_id, used.server, used.tool, at),
    )


class RunningCalls(Store):
    """The running calls of all gates."""

    def end(self, approvals: Iterable[str]) -> None:
        """Forget calls whose end is on the record."""
        with self._database.write(exclusive=False) as transaction:
            transaction.executemany(
                "DELETE FROM running_calls WHERE approval = ?", [(each,) for each in approvals]
            )

    def claim(self, owner: str) -> list[LostCall]:
        """Give the calls of gates that died to the first caller; ``owner`` must record them."""
        owners = self._database.read("SELECT DISTINCT owner FROM running_calls")
        gone = [one for (one,) in owners if one != owner and not self._database.is_alive(one)]
        if not gone:
            return []
        claimed = []
        with self._database.write() as transaction:
            for each in gone:
                rows = transaction.execute(
                    "UPDATE running_calls SET owner = ? WHERE owner = ? "
                    "RETURNING approval, call_id, server, tool, used_at",
                    (owner, each),
                )
                claimed += [LostCall(*row) for row in rows.fetchall()]
            ahead_s = self._database.time(0.0)
        return [one._replace(used_at=one.used_at - ahead_s) for one in claimed]
