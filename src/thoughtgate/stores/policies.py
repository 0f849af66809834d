"""Accepted policies in the shared store: for each config file, the texts last accepted.

A gate that an agent starts compares its files with these texts, and a changed policy that a person
must accept is offered here until they decide. The texts are kept, not only a digest, so that the
accepted policy can stay in force while the files differ from it.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

from thoughtgate.core.approval import POLICY_OWNER, Approval
from thoughtgate.stores.database import Store, Transaction, next_rev

ACCEPTED: Final = "accepted"
OFFERED: Final = "offered"

_SELECT: Final = "SELECT path, digest, files, changed_at, accepted_by, rev FROM policies"


class PolicyFile(NamedTuple):
    """The texts of a config file and of the policy files that it names."""

    path: str
    """The config file."""
    digest: str
    """Digest of all texts."""
    texts: Mapping[str, str]
    """The text of each file by its path."""

    @classmethod
    def of(cls, path: str, texts: Mapping[str, str]) -> "PolicyFile":
        """Return the texts with their digest."""
        return cls(path, digest_of_texts(texts), texts)


class AcceptedPolicy(NamedTuple):
    """What was last accepted for a config file."""

    file: PolicyFile
    at: float
    by: str
    """``channel:name`` of a person, or the name of what accepted it automatically."""
    rev: int
    """Position in the order of all changes of the store."""


class PolicyStore(Store):
    """Accepted and offered policies, shared by all processes of the user."""

    def accepted(self, path: str) -> AcceptedPolicy | None:
        """Return what was last accepted for a config file."""
        rows = self._database.read(f"{_SELECT} WHERE path = ? AND status = ?", (path, ACCEPTED))
        return _policy(rows[0]) if rows else None

    def accept(self, file: PolicyFile, by: str, now: float) -> None:
        """Accept a policy in place of the one accepted before."""
        with self._database.write() as connection:
            _accept(connection, file, by, now)

    def accept_first(self, file: PolicyFile, by: str, now: float) -> bool:
        """Accept a policy if none was accepted for this config file; return whether it was."""
        with self._database.write() as connection:
            if _accepted_digest(connection, file.path):
                return False
            _accept(connection, file, by, now)
            return True

    def replace(self, before: str, file: PolicyFile, by: str, now: float) -> bool:
        """Accept a policy in place of the one with this digest; return whether it was that one.

        A gate may only continue from what it has in force: another one could be stricter.
        """
        with self._database.write() as connection:
            if _accepted_digest(connection, file.path) != before:
                return False
            _accept(connection, file, by, now)
            return True

    def forget(self, path: str) -> None:
        """Forget what was accepted for a config file."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM policies WHERE path = ?", (path,))

    def offer(self, file: PolicyFile, now: float) -> None:
        """Keep the texts of a policy that waits for a person, in place of others that waited."""
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM policies WHERE path = ? AND status = ?", (file.path, OFFERED)
            )
            connection.execute(
                "INSERT INTO policies (path, digest, status, files, changed_at, accepted_by, rev) "
                "VALUES (?, ?, ?, ?, ?, '', ?) ON CONFLICT DO NOTHING",
                (file.path, file.digest, OFFERED, json.dumps(file.texts), now, 0),
            )


def digest_of_texts(texts: Mapping[str, str]) -> str:
    """Return a digest of files and their texts."""
    total = sha256()
    # Each part is preceded by its length, so that no two sets of files give the same bytes.
    for part in (part for name in sorted(texts) for part in (name, texts[name])):
        data = part.encode("utf-8", "surrogatepass")
        total.update(len(data).to_bytes(8, "big"))
        total.update(data)
    return total.hexdigest()


def settle_offer(connection: Transaction, decided: Approval, by: str, now: float) -> None:
    """Accept the policy that a question offered; runs in the transaction of the decision."""
    digest = decided.owner.removeprefix(POLICY_OWNER)
    row = connection.execute(
        f"{_SELECT} WHERE path = ? AND digest = ?", (decided.tool, digest)
    ).fetchone()
    if row is not None:
        _accept(connection, _policy(row).file, by, now)


def _accept(connection: Transaction, file: PolicyFile, by: str, now: float) -> None:
    # The offered ones too: accepting one policy decides against them.
    connection.execute("DELETE FROM policies WHERE path = ?", (file.path,))
    connection.execute(
        "INSERT INTO policies (path, digest, status, files, changed_at, accepted_by, rev) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            file.path,
            file.digest,
            ACCEPTED,
            json.dumps(file.texts),
            now,
            by,
            next_rev(connection),
        ),
    )


def _accepted_digest(connection: Transaction, path: str) -> str:
    row = connection.execute(
        "SELECT digest FROM policies WHERE path = ? AND status = ?", (path, ACCEPTED)
    ).fetchone()
    return str(row[0]) if row is not None else ""


def _policy(row: tuple[Any, ...]) -> AcceptedPolicy:
    path, digest, files, at, by, rev = row
    return AcceptedPolicy(PolicyFile(path, digest, json.loads(files)), at, by, rev)
