"""Applies decisions on questions that belong to no call.

Such a question is about a changed policy, or about changed definitions of a server.
"""

from thoughtgate.core.approval import APPROVED, DEFINITION_KIND, Approval
from thoughtgate.stores.database import Transaction
from thoughtgate.stores.pins import settle_definitions
from thoughtgate.stores.policies import settle_offer


def settle_standing(connection: Transaction, decided: Approval, by: str, now: float) -> None:
    """Apply the decision; runs in its transaction, so that no gate needs to be running."""
    if decided.kind == DEFINITION_KIND:
        settle_definitions(connection, decided, by, now)
    elif decided.status == APPROVED:
        settle_offer(connection, decided, by, now)
