"""OAuth tokens of servers, encrypted, one row per principal, server and issuer.

A server is named by a hash of its URL: URLs may contain secrets, and a token must never be sent to
a different URL that happens to have the same id in a config. The encrypted text also contains the
row's key, so somebody who can write to the database cannot give one principal's tokens to another.

Only the holder of a row's lease renews its tokens, because a rotating refresh token can be used only
once. All others wait until the generation of the row changes.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

from thoughtgate.errors import StoreError
from thoughtgate.stores.database import Database, Store, Transaction, next_rev
from thoughtgate.stores.process_owner import own_name

LEASE_S: Final = 45.0
"""How long a renewal may take; longer than all of its requests together."""

_COLUMNS: Final = "principal, server, issuer, body, generation, expires_at"
_FIND: Final = (
    f"SELECT {_COLUMNS} FROM oauth_tokens WHERE principal = ? AND server = ?"  # noqa: S608
    " ORDER BY generation DESC LIMIT 1"
)
_CLAIMED: Final = (
    f"SELECT {_COLUMNS}, lease_owner, lease_until FROM oauth_tokens"  # noqa: S608
    " WHERE principal = ? AND server = ? AND issuer = ?"
)
_CLAIM: Final = (
    "UPDATE oauth_tokens SET lease_owner = ?, lease_until = ?"
    " WHERE principal = ? AND server = ? AND issuer = ?"
)
_RENEW: Final = (
    "UPDATE oauth_tokens SET body = ?, scopes = ?, expires_at = ?, renewable = ?,"
    " generation = ?, lease_owner = '', lease_until = 0"
    " WHERE principal = ? AND server = ? AND issuer = ? AND generation = ? AND lease_owner = ?"
)
_RELEASE: Final = (
    "UPDATE oauth_tokens SET lease_owner = '', lease_until = 0"
    " WHERE principal = ? AND server = ? AND issuer = ? AND lease_owner = ?"
)


class Cipher(Protocol):
    """Encrypts and decrypts, such as ``cryptography``'s ``MultiFernet``."""

    def encrypt(self, msg: bytes) -> bytes:
        """Return the encrypted text."""

    def decrypt(self, msg: bytes) -> bytes:
        """Return the text; raises ValueError if no key fits."""


class TokenKey(NamedTuple):
    """Identifies the tokens of one principal for one server."""

    principal: str
    server: str
    """The hash of the server's URL."""
    issuer: str


class StoredTokens(NamedTuple):
    """The tokens of a row."""

    key: TokenKey
    body: bytes
    """Decrypted."""
    generation: int
    """Differs after each login and renewal."""
    expires_at: float


class TokenFacts(NamedTuple):
    """What is not secret about a row."""

    principal: str
    server: str
    name: str
    issuer: str
    scopes: tuple[str, ...]
    signed_in_at: float
    expires_at: float
    is_renewable: bool
    generation: int


class Claim(NamedTuple):
    """The outcome of an attempt to renew."""

    stored: StoredTokens | None
    """The row as it is now; None if there is none any more."""
    is_held: bool
    """Whether this caller may renew it; otherwise another does, or the row has changed."""


def server_key(url: str) -> str:
    """Return the name of a server in the table."""
    return hashlib.sha256(url.encode()).hexdigest()


class TokenStore(Store):
    """The table; ``cipher`` is needed to read and to save tokens, not to list or delete rows."""

    def __init__(self, database: Database, cipher: Cipher | None = None) -> None:
        super().__init__(database)
        self._cipher = cipher

    def save_login(self, key: TokenKey, body: bytes, facts: TokenFacts, now: float) -> None:
        """Save the tokens of a login; they replace those of the same principal and server.

        ``facts`` says what may be seen; its key and generation are ignored.
        """
        with self._database.write(through_power_loss=True) as transaction:
            self._delete(transaction, key.principal, key.server)
            transaction.execute(
                "INSERT INTO oauth_tokens (principal, server, issuer, name, body, scopes, missing,"
                " signed_in_at, expires_at, renewable, generation, lease_owner, lease_until)"
                " VALUES (?, ?, ?, ?, ?, ?, '', ?, ?, ?, ?, '', 0)",
                (
                    *key,
                    facts.name,
                    self._seal(key, body),
                    " ".join(facts.scopes),
                    self._database.time(now),
                    self._to_store(facts.expires_at),
                    int(facts.is_renewable),
                    next_rev(transaction),
                ),
            )

    def find(self, principal: str, server: str) -> StoredTokens | None:
        """Return the tokens of a principal for a server.

        Raises:
            StoreError: the store cannot be read, or no key fits.
        """
        rows = self._database.read(_FIND, (principal, server))
        return self._open(rows[0]) if rows else None

    def claim(self, key: TokenKey, generation: int, owner: str, now: float) -> Claim:
        """Take the lease of a row, if it still has this generation and nobody else renews it."""
        with self._database.write() as transaction:
            at = self._database.time(now)
            row = transaction.execute(_CLAIMED, key).fetchone()
            if row is None:
                return Claim(None, is_held=False)
            *columns, holder, until = row
            stored = self._open(columns)
            # Somebody else has renewed the tokens since: the caller uses those.
            if stored.generation != generation:
                return Claim(stored, is_held=False)
            if holder not in {"", owner} and until > at and self._may_live(holder):
                return Claim(stored, is_held=False)
            transaction.execute(_CLAIM, (owner, at + LEASE_S, *key))
            return Claim(stored, is_held=True)

    def renew(
        self, stored: StoredTokens, body: bytes, facts: TokenFacts, owner: str
    ) -> StoredTokens | None:
        """Save renewed tokens; None if the row was changed or removed meanwhile."""
        with self._database.write(through_power_loss=True) as transaction:
            generation = next_rev(transaction)
            changed = transaction.execute(
                _RENEW,
                (
                    self._seal(stored.key, body),
                    " ".join(facts.scopes),
                    self._to_store(facts.expires_at),
                    int(facts.is_renewable),
                    generation,
                    *stored.key,
                    stored.generation,
                    owner,
                ),
            ).rowcount
        if not changed:
            return None
        return StoredTokens(stored.key, body, generation, facts.expires_at)

    def release(self, stored: StoredTokens, owner: str) -> None:
        """Give up a lease without new tokens."""
        with self._database.write() as transaction:
            transaction.execute(_RELEASE, (*stored.key, owner))

    def forget(self, principal: str, server: str, generation: int | None = None) -> bool:
        """Delete tokens, if they still have this generation; False if there were none."""
        with self._database.write(through_power_loss=True) as transaction:
            changed = self._delete(transaction, principal, server, generation)
            if changed:
                next_rev(transaction)
        return changed

    def want_scopes(self, principal: str, server: str, scopes: Sequence[str]) -> None:
        """Note the scopes that a server asked for, so that the next login requests them too."""
        query = "SELECT missing FROM oauth_tokens WHERE principal = ? AND server = ?"
        with self._database.write() as transaction:
            rows = transaction.execute(query, (principal, server)).fetchall()
            known = [word for row in rows for word in row[0].split()]
            missing = " ".join(dict.fromkeys((*known, *scopes)))[:8192]
            transaction.execute(
                "UPDATE oauth_tokens SET missing = ? WHERE principal = ? AND server = ?",
                (missing, principal, server),
            )

    def wanted_scopes(self, principal: str, server: str) -> tuple[str, ...]:
        """Return the scopes that a server asked for since the last login."""
        query = "SELECT missing FROM oauth_tokens WHERE principal = ? AND server = ?"
        rows = self._database.read(query, (principal, server))
        return tuple(word for row in rows for word in row[0].split())

    def listed(self, server: str = "") -> list[TokenFacts]:
        """Return what is not secret about all rows, or about those of one server."""
        rows = self._database.read(
            "SELECT principal, server, name, issuer, scopes, signed_in_at, expires_at, renewable,"
            " generation FROM oauth_tokens ORDER BY name, principal"
        )
        return [
            TokenFacts(
                principal=principal,
                server=place,
                name=name,
                issuer=issuer,
                scopes=tuple(scopes.split()),
                signed_in_at=self._from_store(since),
                expires_at=self._from_store(until),
                is_renewable=bool(renewable),
                generation=generation,
            )
            for principal, place, name, issuer, scopes, since, until, renewable, generation in rows
            if server in {"", place}
        ]

    def _delete(
        self, transaction: Transaction, principal: str, server: str, generation: int | None = None
    ) -> bool:
        query = "DELETE FROM oauth_tokens WHERE principal = ? AND server = ?"
        values: tuple[Any, ...] = (principal, server)
        if generation is not None:
            query, values = f"{query} AND generation = ?", (*values, generation)
        return bool(transaction.execute(query, values).rowcount)

    def _to_store(self, at: float) -> float:
        return self._database.time(at) if at else 0.0

    def _from_store(self, at: float) -> float:
        """Return the time of this machine's clock, from which the store's differs by a constant."""
        return at - self._database.time(0.0) if at else 0.0

    def _may_live(self, holder: str) -> bool:
        # With a shared store, only gates have rows to check; a command that signs in has none.
        process = holder.partition("#")[0]
        return self._database.is_shared or self._database.is_alive(process)

    def _seal(self, key: TokenKey, body: bytes) -> bytes:
        if self._cipher is None:
            raise StoreError("there is no key to encrypt tokens with")
        return self._cipher.encrypt(json.dumps([*key, body.decode()]).encode())

    def _open(self, row: Sequence[Any]) -> StoredTokens:
        principal, server, issuer, sealed, generation, expires_at = row
        key = TokenKey(principal, server, issuer)
        if self._cipher is None:
            raise StoreError("there is no key to decrypt tokens with")
        try:
            *bound, body = json.loads(self._cipher.decrypt(bytes(sealed)))
        except ValueError:
            bound, body = [], ""
        if bound != [*key]:
            raise StoreError(
                "the stored tokens were encrypted with a different key; restore the key, or sign"
                " in again"
            )
        return StoredTokens(key, body.encode(), generation, self._from_store(expires_at))


def lease_owner(number: int) -> str:
    """Return the name of one of this process's holders of leases."""
    return f"{own_name()}#{number}"
