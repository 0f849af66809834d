"""Approvals and remembered grants in the shared store.

Every change is one short transaction that reads, asks ``core.approval`` whether the change is
allowed, and writes, so concurrent decisions cannot conflict. Each change gets the next revision
number, so a reader can request only what is new.

Callers pass and get times of this machine's clock; rows have times of the store's clock, and so
do the arguments of methods whose names begin with an underscore.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

from thoughtgate.core import approval as lifecycle
from thoughtgate.core.approval import (
    DENIED,
    DURABLE,
    OPEN,
    PENDING,
    STANDING_KINDS,
    USED,
    VOID,
    WITHDRAWN,
    Approval,
    Refusal,
    Vote,
)
from thoughtgate.core.grant import Grant, Remember
from thoughtgate.errors import StoreError
from thoughtgate.stores.argument_parts import read_part, refuse_incomplete, write_parts
from thoughtgate.stores.database import Database, Store, Transaction, next_rev
from thoughtgate.stores.grants import add_grant, end_grant, listed_grants, spend_grant
from thoughtgate.stores.local_times import move_approval, move_grant
from thoughtgate.stores.pins import PinStore
from thoughtgate.stores.policies import PolicyStore
from thoughtgate.stores.running_calls import RunningCalls, begin_call
from thoughtgate.stores.standing_questions import settle_standing
from thoughtgate.stores.stop_orders import refuse_stopped
from thoughtgate.stores.vote_text import votes_from_text, votes_to_text

MAX_PER_PRINCIPAL: Final = 10
"""Pending requests per principal; nobody would read more."""
MAX_PENDING: Final = 1000
"""Pending requests in total."""

KEEP_S: Final = 7 * 86_400.0
"""How long closed approvals can be looked up; the record keeps them permanently."""
MAX_CLOSED: Final = 10_000
"""Maximum number of closed approvals, whatever their age, so that the file stays small."""

ORPHAN_AFTER_S: Final = 30.0
"""A task's request is stored just before the task; after this time it counts as orphaned."""

_LISTED: Final = "list them with: thoughtgate approvals list --all"

GONE: Final = "the gate that asked is gone"
STALE: Final = "it was approved too long ago"

_LATE: Final = (
    "((status = 'pending' AND expires_at <= ?) OR (status = 'approved' AND decided_at < ?))"
)

_ORPHANS: Final = (
    "SELECT DISTINCT owner FROM approvals WHERE status IN ('pending', 'approved') "
    "AND substr(owner, 1, 5) = 'task:' AND created_at < ? "
    "AND NOT EXISTS (SELECT 1 FROM tasks "
    "WHERE tasks.id = substr(approvals.owner, 6) AND tasks.phase = 'held')"
)
"""Tasks that no longer wait for their approval: cancelled, ended or deleted."""

_ANY_LATE: Final = f"SELECT 1 FROM approvals WHERE {_LATE} LIMIT 1"  # noqa: S608 - a constant

_COLUMNS: Final = tuple("grant_id" if name == "grant" else name for name in Approval._fields)
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM approvals"  # noqa: S608 - names of our own fields
_STANDING: Final = (
    f"{_SELECT} WHERE kind = ? AND tool = ? AND rev > coalesce("  # noqa: S608 - a constant
    "(SELECT rev FROM policies WHERE path = ? AND status = 'accepted'), 0)"
)
"""Questions about a subject; if that is a file, those since it was last accepted."""
_INSERT: Final = (
    f"INSERT INTO approvals ({', '.join(_COLUMNS)}) "  # noqa: S608 - names of our own fields
    f"VALUES ({', '.join('?' * len(_COLUMNS))})"
)
_APPROVERS: Final = Approval._fields.index("approvers")
_OWNER: Final = Approval._fields.index("owner")
_VOTES: Final = Approval._fields.index("votes")
_ENDED_GRANTS: Final = Approval._fields.index("ended_grants")


_Result = TypeVar("_Result", Approval, Approval | Refusal)


class Limits(NamedTuple):
    """How many requests may be pending, and which grants may decide one."""

    per_principal: int = MAX_PER_PRINCIPAL
    total: int = MAX_PENDING
    same_rule: bool = False
    """Whether only grants that were given for the same rule count."""


DEFAULT_LIMITS: Final = Limits()


class ApprovalStore(Store):
    """Approvals and grants, shared by all processes of the user."""

    def __init__(self, database: Database, *, alive: Callable[[str], bool] | None = None) -> None:
        super().__init__(database)
        self._alive = alive or database.is_alive
        self.is_shared = database.is_shared
        """Whether a request stays open after its gate died, for the same call at another gate."""
        self._seen: tuple[int, int] | None = None

    # Reading.

    def changed(self) -> bool:
        """Tell whether anything was written since the last call of this method; very cheap."""
        before, self._seen = self._seen, self._database.state()
        return before != self._seen

    def since(self, rev: int) -> list[Approval]:
        """Return every approval that changed after a revision, in the order of the changes."""
        return self._read("WHERE rev > ? ORDER BY rev", (rev,))

    def listed(self, *statuses: str) -> list[Approval]:
        """Return the approvals in the given states, or all, oldest first."""
        if not statuses:
            return self._read("ORDER BY created_at, id", ())
        marks = ", ".join("?" * len(statuses))
        return self._read(f"WHERE status IN ({marks}) ORDER BY created_at, id", statuses)

    def get(self, ident: str) -> Approval | Refusal:
        """Return an approval by its id or by a unique prefix of it."""
        wanted = ident.strip().lower()
        if not wanted.isalnum():
            return Refusal("unknown", "there is no such approval")
        found = self._read("WHERE id = ? OR substr(id, 1, ?) = ?", (wanted, len(wanted), wanted))
        # A prefix that a closed request has too is ambiguous: it may be the one that was meant.
        exact = [each for each in found if each.id == wanted]
        waiting = [each for each in found if each.status == PENDING]
        for choice in (exact, found):
            if len(choice) == 1:
                return choice[0]
        if not found:
            return Refusal("unknown", f"there is no approval {wanted}; {_LISTED}")
        ids = ", ".join(sorted(each.id for each in waiting or found)[:10])
        return Refusal("ambiguous", f"{wanted} could be {ids}: give more of the id")

    def argument_parts(self, ident: str) -> int:
        """Return the number of parts of an approval's whole arguments; 0 if the row has them all."""
        rows = self._database.read(
            "SELECT count(*) FROM argument_parts WHERE approval = ?", (ident,)
        )
        return int(rows[0][0])

    def argument_part(self, ident: str, part: int) -> str:
        """Return one part of an approval's whole arguments, counted from 0; empty if there is none."""
        rows = self._database.read(
            "SELECT text FROM argument_parts WHERE approval = ? AND part = ?", (ident, part)
        )
        return read_part(rows[0][0]) if rows else ""

    def whole_arguments(self, approval: Approval) -> Iterator[str]:
        """Return the arguments of an approval as JSON text, part by part.

        Of an old approval whose long arguments were deleted, only the shortened ones are left.
        """
        parts = self.argument_parts(approval.id) if approval.folded else 0
        if not parts:
            yield approval.arguments
        for part in range(parts):
            yield self.argument_part(approval.id, part)

    # For the gate that requests approval.

    def ask(
        self, asked: Approval, now: float, limits: Limits = DEFAULT_LIMITS, whole: str = ""
    ) -> Approval | Refusal:
        """Store an approval request, or continue the same one from before a restart.

        ``whole`` is the JSON text of all arguments, if ``asked`` has only shortened ones.
        Returns the stored approval: pending, already approved by a grant, or, for a task,
        whatever was decided while no gate was running.
        """
        with self._database.write() as connection:
            # Converted inside the transaction, which has just looked at the store's clock.
            asked, at = move_approval(asked, self._ahead()), self._database.time(now)
            return self._local(self._ask(connection, asked, at, limits, whole))

    def use(
        self,
        ident: str,
        digest: str,
        now: float,
        *,
        owner: str = "",
        call_id: str = "",
        runner: str = "",
        through_power_loss: bool = False,
    ) -> Approval | Refusal:
        """Use an approval: exactly one caller ever gets it back as ``used``.

        ``owner`` and ``call_id`` are who asked, and for which call. If another gate took the
        request over, it may not be used here. ``runner`` is the gate that will tell when the
        call has ended (``RunningCalls``).
        """
        with self._database.write(through_power_loss=through_power_loss) as connection:
            found = self._existing(connection, ident)
            if isinstance(found, Refusal):
                return found
            if found.digest != digest:
                return Refusal("not_this", f"approval {ident} was given for a different call")
            if _is_taken_over(found, owner, call_id):
                return Refusal("taken_over", f"approval {ident} was taken over by another gate")
            at = self._database.time(now)
            if lifecycle.is_stale(found, at):
                self._move(connection, found, VOID, at, STALE)
                return Refusal("too_late", f"approval {ident} was given too long ago")
            used = self._move(connection, found, USED, at)
            if runner and isinstance(used, Approval):
                begin_call(connection, used, runner, at)
            return self._local(used)

    def withdraw(
        self, ident: str, reason: str, now: float, *, owner: str = "", call_id: str = ""
    ) -> Approval | Refusal:
        """Close a pending request, or void an unused approval, because nobody waits for it.

        ``owner`` and ``call_id`` as for ``use``.
        """
        with self._database.write() as connection:
            found = self._existing(connection, ident)
            if isinstance(found, Refusal):
                return found
            if _is_taken_over(found, owner, call_id):
                return Refusal("taken_over", f"approval {ident} was taken over by another gate")
            return self._local(self._close(connection, found, reason, self._database.time(now)))

    def ask_standing(self, asked: Approval, now: float) -> Approval | Refusal:
        """Store a question that belongs to no call, or return the same one, unless it expired."""
        with self._database.write() as connection:
            if self._one(connection, "WHERE id = ?", (asked.id,)) is not None:
                return Refusal("taken", "the id is already used")
            asked, at = move_approval(asked, self._ahead()), self._database.time(now)
            about = (asked.kind, asked.tool, asked.tool)
            for row in connection.execute(_STANDING, about).fetchall():
                found = self._settle_one(connection, _approval(row), at, is_gone=False)
                if found.digest == asked.digest and found.status in {PENDING, DENIED}:
                    return self._local(found)
                if found.status == PENDING:
                    self._close(connection, found, "it changed again", at)
            return self._local(self._insert(connection, asked))

    def pins(self) -> PinStore:
        """Return the store of pinned definitions."""
        return PinStore(self._database)

    def policies(self) -> PolicyStore:
        """Return the store of accepted policies."""
        return PolicyStore(self._database)

    def running_calls(self) -> RunningCalls:
        """Return the approved calls that run, in the same store."""
        return RunningCalls(self._database)

    # For channels.

    def vote(
        self,
        ident: str,
        votes: Iterable[Vote],
        now: float,
        *,
        remember: Remember | None = None,
        grant_id: str = "",
        digest: str = "",
    ) -> Approval | Refusal:
        """Count the votes of one poll; if none counts, return the refusal of the last one.

        ``digest`` is that of the call which the voter was shown; a vote on another is refused.
        With ``remember`` (for a single approving vote) the grant is created in the same
        transaction, or the vote is not counted.
        """
        with self._database.write() as connection:
            given = [vote._replace(at=self._database.time(vote.at)) for vote in votes]
            at = self._database.time(now)
            found = self._existing(connection, ident)
            if isinstance(found, Refusal):
                return found
            if digest not in ("", found.digest):
                return Refusal("not_this", f"approval {ident} is not for the call that was shown")
            # Denying releases nothing, so it needs no look at the whole call.
            if any(vote.approve for vote in given):
                why_not = refuse_incomplete(connection, found) or refuse_stopped(connection, found)
                if why_not is not None:
                    return why_not
            is_gone = found.status in OPEN and self._is_gone(found.owner, at)
            found = self._settle_one(connection, found, at, is_gone=is_gone)
            counted, refusals = lifecycle.vote_all(found, given, at)
            if counted == found:
                return refusals[-1] if refusals else self._local(found)
            if remember is not None:
                grant = add_grant(connection, counted, given[-1], remember, grant_id)
                if isinstance(grant, Refusal):
                    return grant
            saved = self._save(connection, counted)
            if saved.kind in STANDING_KINDS and saved.status != PENDING:
                # Settled with the decision: no gate may be running that could do it later.
                settle_standing(connection, saved, given[-1].by, at)
                self._move(connection, saved, USED, at)
            return self._local(saved)

    # Housekeeping, by any process.

    def has_due(self, now: float) -> bool:
        """Tell whether ``settle_due`` would change anything; reads only."""
        at = self._database.time(now)
        if self._database.read(_ANY_LATE, _late(at)):
            return True
        return bool(self._dead_owners(at))

    def settle_due(self, now: float) -> list[Approval]:
        """Expire overdue requests, close those of dead processes, void unused approvals."""
        dead = self._dead_owners(self._database.time(now))
        with self._database.write() as connection:
            settled = self._settle_all(connection, dead, self._database.time(now))
            return [self._local(each) for each in settled]

    def purge(self, now: float) -> int:
        """Delete closed approvals that are old or too many, and expired grants."""
        with self._database.write() as connection:
            at = self._database.time(now)
            connection.execute("DELETE FROM grants WHERE expires_at <= ?", (at,))
            gone = connection.execute(
                "DELETE FROM approvals WHERE status NOT IN ('pending', 'approved') AND "
                "(created_at < ? OR rev <= (SELECT rev FROM approvals "
                "WHERE status NOT IN ('pending', 'approved') ORDER BY rev DESC LIMIT 1 OFFSET ?))",
                (at - KEEP_S, MAX_CLOSED),
            ).rowcount
            connection.execute(
                "DELETE FROM argument_parts WHERE approval NOT IN (SELECT id FROM approvals)"
            )
            connection.execute(
                "DELETE FROM handles WHERE approval NOT IN (SELECT id FROM approvals)"
            )
            return gone

    # Grants.

    def grants(self, now: float) -> list[Grant]:
        """Return the grants in force, oldest first."""
        found = listed_grants(self._database, self._database.time(now))
        return [move_grant(each, -self._ahead()) for each in found]

    def add_grant(
        self, ident: str, remember: Remember, *, by: str, grant_id: str, now: float
    ) -> Grant | Refusal:
        """Create a grant from an earlier request, even if that one has expired."""
        with self._database.write() as connection:
            found = self._existing(connection, ident)
            if isinstance(found, Refusal):
                return found
            vote = Vote(by, approve=True, at=self._database.time(now))
            refusal = lifecycle.may_vote(found, vote.reviewer)
            if refusal is not None:
                return refusal
            grant = add_grant(connection, found, vote, remember, grant_id)
            return grant if isinstance(grant, Refusal) else move_grant(grant, -self._ahead())

    def revoke_grant(self, grant_id: str) -> Grant | Refusal:
        """Revoke a grant."""
        with self._database.write() as connection:
            grant = end_grant(connection, grant_id)
            return grant if isinstance(grant, Refusal) else move_grant(grant, -self._ahead())

    # Handles that channels store for a request, such as the id of a message to update.

    def keep_handle(self, ident: str, channel: str, handle: str) -> None:
        """Store a channel's handle for an approval."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO handles (approval, channel, handle) VALUES (?, ?, ?) "
                "ON CONFLICT (approval, channel) DO UPDATE SET handle = excluded.handle",
                (ident, channel, handle),
            )

    def handle(self, ident: str, channel: str) -> str:
        """Return a channel's handle for an approval, or the empty string."""
        rows = self._database.read(
            "SELECT handle FROM handles WHERE approval = ? AND channel = ?", (ident, channel)
        )
        return str(rows[0][0]) if rows else ""

    # Between the clocks of this machine and of the store.

    def _ahead(self) -> float:
        """Return by how many seconds the store's clock is ahead of this machine's."""
        return self._database.time(0.0)

    def _local(self, found: _Result) -> _Result:
        """Return an approval with times of this machine's clock."""
        return found if isinstance(found, Refusal) else move_approval(found, -self._ahead())

    # Inside a transaction.

    def _ask(
        self, connection: Transaction, asked: Approval, now: float, limits: Limits, whole: str
    ) -> Approval | Refusal:
        earlier = self._earlier(connection, asked, now)
        if earlier is not None:
            return earlier
        if self._one(connection, "WHERE id = ?", (asked.id,)) is not None:
            return Refusal("taken", "the id is already used")
        asked = spend_grant(connection, asked, now, same_rule=limits.same_rule)
        if asked.status != PENDING:
            return self._insert(connection, asked)
        refusal = self._over_limit(connection, asked, now, limits)
        if refusal is not None:
            return refusal
        write_parts(connection, asked.id, whole)
        return self._insert(connection, asked)

    def _earlier(self, connection: Transaction, asked: Approval, now: float) -> Approval | None:
        """Find the same request from before a restart and take it over with its decision."""
        if asked.is_durable:
            found = self._one(connection, "WHERE owner = ? ORDER BY rev DESC", (asked.owner,))
            # A decision on different arguments or another policy must not apply to this call.
            if found is not None and found.digest != asked.digest:
                self._close(connection, found, "the call or the policy changed", now)
                return None
        else:
            # The digest covers the principal. Of several equal calls, each takes over one request.
            where = "WHERE digest = ? AND status IN ('pending', 'approved') ORDER BY rev"
            rows = connection.execute(f"{_SELECT} {where}", (asked.digest,)).fetchall()
            found = next((one for one in map(_approval, rows) if self._is_free(one, asked)), None)
            if found is not None:
                found = self._settle_one(connection, found, now, is_gone=False)
                if found.status not in OPEN:
                    return None
        if found is None:
            return None
        return self._save(connection, found._replace(owner=asked.owner, call_id=asked.call_id))

    def _is_free(self, found: Approval, asked: Approval) -> bool:
        """Tell whether the caller of ``ask`` may continue an open request for the same call."""
        if found.is_durable or found.kind in STANDING_KINDS:
            return False
        # If its gate is alive, that gate answers the request, and the two calls are separate.
        is_same = (found.owner, found.call_id) == (asked.owner, asked.call_id)
        return is_same or not self._alive(found.owner)

    def _dead_owners(self, now: float, *, all_of_them: bool = False) -> list[str]:
        """Return the owners whose open requests are closed, because nobody can continue them.

        With ``all_of_them`` also those whose requests could be continued at another gate.
        """
        rows = self._database.read(
            "SELECT DISTINCT owner FROM approvals WHERE status IN ('pending', 'approved')"
        )
        dead = []
        if all_of_them or not self.is_shared:
            dead = [owner for (owner,) in rows if not self._alive(owner)]
        if any(owner.startswith(DURABLE) for (owner,) in rows):
            orphans = self._database.read(_ORPHANS, (now - ORPHAN_AFTER_S,))
            dead += [owner for (owner,) in orphans]
        return dead

    def _is_gone(self, owner: str, now: float) -> bool:
        if owner.startswith(DURABLE):
            return (owner,) in self._database.read(_ORPHANS, (now - ORPHAN_AFTER_S,))
        return not self.is_shared and not self._alive(owner)

    def _settle_all(self, connection: Transaction, dead: list[str], now: float) -> list[Approval]:
        marks = ", ".join("?" * len(dead)) or "NULL"
        query = (
            f"{_SELECT} WHERE {_LATE} OR (status IN ('pending', 'approved') AND owner IN ({marks}))"
        )
        rows = connection.execute(query, (*_late(now), *dead)).fetchall()
        return [
            self._settle_one(connection, _approval(row), now, is_gone=row[_OWNER] in dead)
            for row in rows
        ]

    def _settle_one(
        self, connection: Transaction, found: Approval, now: float, *, is_gone: bool
    ) -> Approval:
        """Close one approval if it is due; otherwise return it as it is."""
        if is_gone:
            closed = self._close(connection, found, GONE, now)
        elif lifecycle.is_stale(found, now):
            closed = self._move(connection, found, VOID, now, STALE)
        else:
            closed = self._saved(connection, lifecycle.time_out(found, now))
        return found if isinstance(closed, Refusal) else closed

    def _over_limit(
        self, connection: Transaction, asked: Approval, now: float, limits: Limits
    ) -> Refusal | None:
        query = (
            "SELECT count(*), coalesce(sum(CASE WHEN principal = ? THEN 1 ELSE 0 END), 0) "
            "FROM approvals WHERE status = 'pending'"
        )
        total, own = connection.execute(query, (asked.principal,)).fetchone()
        if total < limits.total and own < limits.per_principal:
            return None
        # Count again without requests that are overdue or whose process has died.
        self._settle_all(connection, self._dead_owners(now, all_of_them=True), now)
        total, own = connection.execute(query, (asked.principal,)).fetchone()
        if own >= limits.per_principal:
            return Refusal("limit_principal", "too many approvals of this agent are pending")
        if total >= limits.total:
            return Refusal("limit_total", "too many approvals are pending")
        return None

    def _close(
        self, connection: Transaction, found: Approval, reason: str, now: float
    ) -> Approval | Refusal:
        status = WITHDRAWN if found.status == PENDING else VOID
        return self._move(connection, found, status, now, reason)

    def _move(
        self,
        connection: Transaction,
        found: Approval,
        status: str,
        now: float,
        reason: str = "",
    ) -> Approval | Refusal:
        return self._saved(connection, lifecycle.move(found, status, now, reason))

    def _saved(self, connection: Transaction, changed: Approval | Refusal) -> Approval | Refusal:
        return changed if isinstance(changed, Refusal) else self._save(connection, changed)

    def _insert(self, connection: Transaction, made: Approval) -> Approval:
        made = made._replace(rev=next_rev(connection))
        connection.execute(_INSERT, _row(made))
        return made

    def _save(self, connection: Transaction, changed: Approval) -> Approval:
        changed = changed._replace(rev=next_rev(connection))
        connection.execute(
            "UPDATE approvals SET status = :status, votes = :votes, decided_at = :decided_at, "
            "closed_reason = :closed_reason, owner = :owner, call_id = :call_id, rev = :rev "
            "WHERE id = :id",
            {**changed._asdict(), "votes": votes_to_text(changed.votes)},
        )
        return changed

    def _one(self, connection: Transaction, where: str, values: tuple[Any, ...]) -> Approval | None:
        row = connection.execute(f"{_SELECT} {where}", values).fetchone()
        return _approval(row) if row is not None else None

    def _existing(self, connection: Transaction, ident: str) -> Approval | Refusal:
        found = self._one(connection, "WHERE id = ?", (ident,))
        return found or Refusal("unknown", f"there is no approval {ident}")

    def _read(self, where: str, values: tuple[Any, ...]) -> list[Approval]:
        rows = self._database.read(f"{_SELECT} {where}", values)
        return [self._local(_approval(row)) for row in rows]


def _is_taken_over(found: Approval, owner: str, call_id: str) -> bool:
    return owner not in ("", found.owner) or call_id not in ("", found.call_id)


def _late(now: float) -> tuple[float, float]:
    return now, now - lifecycle.USE_WITHIN_S


def _row(made: Approval) -> list[Any]:
    """Return the values of a row: lists as JSON text, flags as numbers."""
    row: list[Any] = [
        json.dumps(value)
        if isinstance(value, tuple)
        else int(value)
        if value is True or value is False
        else value
        for value in made
    ]
    row[_VOTES] = votes_to_text(made.votes)
    return row


def _approval(row: tuple[Any, ...]) -> Approval:
    plain = Approval(*row)
    try:
        approvers, ended = (tuple(json.loads(row[at])) for at in (_APPROVERS, _ENDED_GRANTS))
        votes = votes_from_text(row[_VOTES])
    except (ValueError, TypeError):
        raise StoreError(f"the store has an approval that cannot be read: {plain.id}") from None
    return plain._replace(
        approvers=approvers,
        votes=votes,
        ended_grants=ended,
        folded=bool(plain.folded),
        elicitation=bool(plain.elicitation),
        remember=bool(plain.remember),
    )
