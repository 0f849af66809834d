"""Pinned definitions in the shared store: what servers say about their tools, and what was accepted.

A pin belongs to a server key: the server's id and a digest of its command line or URL
(``server_key``), so that two servers with the same name do not share pins. Each tool, prompt or
resource has at most one accepted definition; one that a person has not accepted is ``held``, or
``refused``. The policy decides whether a held definition can be used.
"""

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from thoughtgate.core.approval import APPROVED, DEFINITION_OWNER, Approval
from thoughtgate.core.definitions.pinned import Definition
from thoughtgate.stores.database import Store, Transaction, next_rev

ACCEPTED: Final = "accepted"
REFUSED: Final = "refused"
HELD: Final = "held"

LIST_KIND: Final = "list"
"""The kind of a row that says that a server's list was once seen whole: later additions are new."""

FIRST_SEEN: Final = "first seen"
"""Who accepted what a server said when it was first seen."""

MAX_PINS: Final = 20_000
"""Definitions per server; as many as the judge remembers tools."""

MAX_HISTORY: Final = 20
"""Decisions kept per definition."""

_COLUMNS: Final = (
    "server, kind, name, digest, status, definition, findings, changed_at, decided_by, "
    "change_set, rev"
)
_SELECT: Final = f"SELECT {_COLUMNS} FROM pins"  # noqa: S608 - a constant
_INSERT: Final = f"INSERT INTO pins ({_COLUMNS}) VALUES ({', '.join('?' * 11)})"  # noqa: S608


class Pin(NamedTuple):
    """A definition with what was decided about it."""

    server: str
    """The server key."""
    kind: str
    name: str
    digest: str
    status: str
    text: str
    """Canonical JSON of the definition; empty if it could not be read."""
    findings: tuple[dict[str, Any], ...]
    """What the definition checks found."""
    at: float
    by: str
    """``channel:name`` of a person, ``first seen``, or empty if nobody decided."""
    change_set: str = ""
    """Digest of the changes that one question is about."""
    rev: int = 0

    @property
    def definition(self) -> Definition:
        """The definition itself."""
        return Definition(self.kind, self.name, self.text, self.digest)

    @property
    def key(self) -> tuple[str, str]:
        """Kind and name."""
        return self.kind, self.name


class PastDecision(NamedTuple):
    """An earlier decision on a definition, for people."""

    kind: str
    name: str
    digest: str
    status: str
    text: str
    at: float
    by: str


def server_key(server: str, identity: Sequence[str]) -> str:
    """Return the key of a server's pins; ``identity`` is its command line or its URL.

    Only a digest of the command line is stored, because it may contain secrets.
    """
    if not identity:
        return server
    total = sha256()
    for part in identity:
        data = part.encode("utf-8", "surrogateescape")
        total.update(len(data).to_bytes(8, "big"))
        total.update(data)
    return f"{server}#{total.hexdigest()[:12]}"


def server_of(key: str) -> str:
    """Return the id of the server that a key is for."""
    return key.rpartition("#")[0] or key


class PinLine(NamedTuple):
    """A pin without its definition, for lists."""

    server: str
    kind: str
    name: str
    status: str
    at: float
    by: str


class PinStore(Store):
    """Accepted, held and refused definitions, shared by all processes of the user."""

    def servers(self) -> list[str]:
        """Return the keys of all servers that have pins."""
        rows = self._database.read("SELECT DISTINCT server FROM pins ORDER BY server")
        return [str(key) for (key,) in rows]

    def of_server(self, server: str) -> list[Pin]:
        """Return everything about a server, in the order of kind and name."""
        rows = self._database.read(
            f"{_SELECT} WHERE server = ? ORDER BY kind, name, status", (server,)
        )
        return [_pin(row) for row in rows]

    def named(self, server: str, kind: str, name: str) -> list[Pin]:
        """Return what is known about one definition, of every server with this id."""
        where = "WHERE kind = ? AND name = ? AND (server = ? OR substr(server, 1, ?) = ?)"
        key = f"{server}#"
        rows = self._database.read(f"{_SELECT} {where}", (kind, name, server, len(key), key))
        return [pin for pin in map(_pin, rows) if server_of(pin.server) == server]

    def listed(self, limit: int, *, server: str = "", since: float = 0.0) -> list[PinLine]:
        """Return the definitions of a server key, or of all, that changed last, newest first."""
        where = "kind <> ? AND changed_at >= ?" + (" AND server = ?" if server else "")
        rows = self._database.read(
            "SELECT server, kind, name, status, changed_at, decided_by FROM pins "  # noqa: S608 - constants
            f"WHERE {where} ORDER BY changed_at DESC, server, kind, name LIMIT ?",
            (LIST_KIND, since, *((server,) if server else ()), limit),
        )
        return [PinLine(*row) for row in rows]

    def waiting(self) -> list[Pin]:
        """Return every definition that nobody has accepted or refused."""
        where = "WHERE status = 'held' ORDER BY server, kind, name"
        return [_pin(row) for row in self._database.read(f"{_SELECT} {where}")]

    def history(self, server: str, kind: str, name: str) -> list[PastDecision]:
        """Return the decisions on a definition, the latest first."""
        rows = self._database.read(
            "SELECT kind, name, digest, status, definition, changed_at, decided_by "
            "FROM pin_history WHERE server = ? AND kind = ? AND name = ? ORDER BY number DESC",
            (server, kind, name),
        )
        return [PastDecision(*row) for row in rows]

    def add(self, server: str, pins: Iterable[Pin], lists: Iterable[str], now: float) -> None:
        """Store new definitions with their status, and note which lists were seen whole.

        What another gate decided in the meantime is kept.
        """
        with self._database.write() as connection:
            rev = next_rev(connection)
            count = connection.execute("SELECT count(*) FROM pins WHERE server = ?", (server,))
            room = MAX_PINS - int(count.fetchone()[0])
            for pin in pins:
                if room > 0 and _add(connection, pin._replace(at=now, rev=rev)):
                    room -= 1
            for name in lists:
                seen = Pin(
                    server, LIST_KIND, name, "", ACCEPTED, "{}", (), now, FIRST_SEEN, "", rev
                )
                _insert(connection, seen)

    def take_back(self, server: str, names: Iterable[tuple[str, str]]) -> None:
        """Forget held definitions: the server offers the accepted ones again."""
        with self._database.write() as connection:
            next_rev(connection)
            for kind, name in names:
                _delete(connection, server, kind, name, HELD)

    def offer(self, server: str, change_set: str, pins: Iterable[Pin]) -> None:
        """Note which held definitions a question is about."""
        with self._database.write() as connection:
            for pin in pins:
                connection.execute(
                    "UPDATE pins SET change_set = ? WHERE server = ? AND kind = ? AND name = ? "
                    "AND digest = ? AND status = 'held'",
                    (change_set, server, pin.kind, pin.name, pin.digest),
                )

    def decide(self, pins: Iterable[Pin], status: str, by: str, now: float) -> list[Pin]:
        """Accept or refuse definitions; return those that were still as shown."""
        with self._database.write() as connection:
            return [pin for pin in pins if _decide(connection, pin, status, by, now)]

    def forget(self, server: str) -> None:
        """Forget everything about a server: what it says next is accepted as first seen."""
        with self._database.write() as connection:
            next_rev(connection)
            connection.execute("DELETE FROM pins WHERE server = ?", (server,))


def settle_definitions(connection: Transaction, decided: Approval, by: str, now: float) -> None:
    """Accept or refuse what a question was about; runs in the transaction of the decision."""
    change_set = decided.owner.removeprefix(DEFINITION_OWNER)
    rows = connection.execute(
        f"{_SELECT} WHERE server = ? AND change_set = ? AND status = 'held'",
        (decided.tool, change_set),
    ).fetchall()
    status = ACCEPTED if decided.status == APPROVED else REFUSED
    for row in rows:
        _decide(connection, _pin(row), status, by, now)


def _add(connection: Transaction, pin: Pin) -> bool:
    """Add a definition unless the store has it; return whether it was new."""
    found = connection.execute(
        f"{_SELECT} WHERE server = ? AND kind = ? AND name = ?", (pin.server, pin.kind, pin.name)
    ).fetchall()
    known = [_pin(row) for row in found]
    if any(one.digest == pin.digest for one in known):
        return False
    if pin.status == ACCEPTED and any(one.status == ACCEPTED for one in known):
        # Another gate saw the server first, and it said something else then.
        pin = pin._replace(status=HELD, by="")
    _delete(connection, pin.server, pin.kind, pin.name, HELD)
    _insert(connection, pin)
    return True


def _decide(connection: Transaction, pin: Pin, status: str, by: str, now: float) -> bool:
    row = connection.execute(
        f"{_SELECT} WHERE server = ? AND kind = ? AND name = ? AND digest = ?",
        (pin.server, pin.kind, pin.name, pin.digest),
    ).fetchone()
    # A definition that cannot be shown cannot be accepted: nobody would know what they accept.
    if row is None or (status == ACCEPTED and not pin.text) or _pin(row).status == status:
        return False
    if status == ACCEPTED:
        _delete(connection, pin.server, pin.kind, pin.name, ACCEPTED)
    connection.execute(
        "UPDATE pins SET status = ?, changed_at = ?, decided_by = ?, rev = ?, change_set = '' "
        "WHERE server = ? AND kind = ? AND name = ? AND digest = ?",
        (status, now, by, next_rev(connection), pin.server, pin.kind, pin.name, pin.digest),
    )
    _remember(connection, pin._replace(status=status, by=by, at=now))
    return True


def _remember(connection: Transaction, pin: Pin) -> None:
    connection.execute(
        "INSERT INTO pin_history "
        "(server, kind, name, digest, status, definition, changed_at, decided_by) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (pin.server, pin.kind, pin.name, pin.digest, pin.status, pin.text, pin.at, pin.by),
    )
    connection.execute(
        "DELETE FROM pin_history WHERE server = ? AND kind = ? AND name = ? AND number <= "
        "(SELECT max(number) FROM pin_history WHERE server = ? AND kind = ? AND name = ?) - ?",
        (pin.server, pin.kind, pin.name, pin.server, pin.kind, pin.name, MAX_HISTORY),
    )


def _insert(connection: Transaction, pin: Pin) -> None:
    row = pin._replace(findings=json.dumps(pin.findings))  # type: ignore[arg-type]
    connection.execute(f"{_INSERT} ON CONFLICT DO NOTHING", tuple(row))


def _delete(connection: Transaction, server: str, kind: str, name: str, status: str) -> None:
    connection.execute(
        "DELETE FROM pins WHERE server = ? AND kind = ? AND name = ? AND status = ?",
        (server, kind, name, status),
    )


def _pin(row: tuple[Any, ...]) -> Pin:
    return Pin(*row)._replace(findings=tuple(json.loads(row[6])))
