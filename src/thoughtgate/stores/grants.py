"""Remembered approvals in the shared store: what a grant decides, and when it ends.

These functions run inside the transaction that stores or decides an approval.
"""

from typing import Final

from thoughtgate.core import approval as lifecycle
from thoughtgate.core.approval import APPROVED, Approval, Refusal, Vote
from thoughtgate.core.grant import (
    ONCE,
    Grant,
    Remember,
    grant_from,
    has_lost_definition,
    matches,
)
from thoughtgate.stores.database import Database, Transaction, next_rev

MAX_GRANTS: Final = 1000
"""Maximum number of grants."""

CHANGED: Final = "a remembered approval ended, because the server changed the tool's definition"

_GRANTS_LISTED: Final = "list them with: thoughtgate approvals grants list"

_SELECT_GRANT: Final = f"SELECT {', '.join(Grant._fields)} FROM grants"  # noqa: S608 - names of our own fields
_INSERT_GRANT: Final = (
    f"INSERT INTO grants ({', '.join(Grant._fields)}) "  # noqa: S608 - names of our own fields
    f"VALUES ({', '.join('?' * len(Grant._fields))})"
)


def listed_grants(database: Database, now: float) -> list[Grant]:
    """Return the grants in force, oldest first."""
    rows = database.read(f"{_SELECT_GRANT} WHERE expires_at > ? ORDER BY created_at, id", (now,))
    return [Grant(*row) for row in rows]


def spend_grant(
    transaction: Transaction, asked: Approval, now: float, *, same_rule: bool = False
) -> Approval:
    """Let a grant decide a request, and end grants whose tool has another definition by now.

    With ``same_rule``, only a grant whose approval was requested by the same rule counts.
    """
    # Grants for one use come last: while a lasting grant fits, they are not spent.
    rows = transaction.execute(
        f"{_SELECT_GRANT} WHERE principal = ? AND server = ? AND kind = ? AND tool = ? "
        "ORDER BY lifetime = 'once', created_at, id",
        (asked.principal, asked.server, asked.kind, asked.tool),
    )
    for row in rows.fetchall():
        grant = Grant(*row)
        if has_lost_definition(grant, asked):
            transaction.execute("DELETE FROM grants WHERE id = ?", (grant.id,))
            asked = asked._replace(ended_grants=(*asked.ended_grants, grant.id))
        if not matches(grant, asked, now):
            continue
        if same_rule and not _is_for_rule(transaction, grant, asked.rule):
            continue
        if lifecycle.may_vote(asked, grant.reviewer) is not None:
            # The person who gave the grant is no longer an approver.
            continue
        transaction.execute(
            "UPDATE grants SET uses = uses + 1, last_used_at = ? WHERE id = ?", (now, grant.id)
        )
        if grant.lifetime == ONCE:
            transaction.execute("DELETE FROM grants WHERE id = ?", (grant.id,))
        by, groups, issuer = grant.reviewer
        reason = f"remembered as grant {grant.id}"
        vote = Vote(by, approve=True, at=now, reason=reason, groups=groups, issuer=issuer)
        return asked._replace(status=APPROVED, votes=(vote,), decided_at=now, grant=grant.id)
    if asked.ended_grants:
        reason = f"{asked.reason}; {CHANGED}" if asked.reason else CHANGED
        return asked._replace(reason=reason)
    return asked


def _is_for_rule(transaction: Transaction, grant: Grant, rule: str) -> bool:
    """Tell whether a rule asked for the approval that created a grant; a lost one counts as not."""
    found = transaction.execute("SELECT rule FROM approvals WHERE id = ?", (grant.approval,))
    row = found.fetchone()
    return row is not None and row[0] == rule


def add_grant(
    transaction: Transaction,
    decided: Approval,
    vote: Vote,
    remember: Remember,
    grant_id: str,
) -> Grant | Refusal:
    """Remember a decision as a grant."""
    if not vote.approve:
        return Refusal("cannot_remember", "only an approval can be remembered")
    grant = grant_from(decided, remember, by=vote.reviewer, ident=grant_id, now=vote.at)
    if isinstance(grant, Refusal):
        return grant
    if transaction.execute("SELECT count(*) FROM grants").fetchone()[0] >= MAX_GRANTS:
        return Refusal("cannot_remember", "too many grants are remembered; revoke some")
    transaction.execute(_INSERT_GRANT, grant)
    return grant


def end_grant(transaction: Transaction, grant_id: str) -> Grant | Refusal:
    """Revoke a grant."""
    row = transaction.execute(f"{_SELECT_GRANT} WHERE id = ?", (grant_id,)).fetchone()
    if row is None:
        return Refusal("unknown", f"there is no grant {grant_id}; {_GRANTS_LISTED}")
    transaction.execute("DELETE FROM grants WHERE id = ?", (grant_id,))
    next_rev(transaction)
    return Grant(*row)
