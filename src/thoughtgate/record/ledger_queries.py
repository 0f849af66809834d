"""Queries on the ledger: calls by filter, single calls, runs, and totals for charts.

They are the same for the ledger of one machine (SQLite) and for the shared one (PostgreSQL),
except for what ``_Dialect`` lists.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from thoughtgate.core.record_events import FRAME_REFUSED, MESSAGE
from thoughtgate.record.call_rows import CALL_COLUMNS
from thoughtgate.record.search_words import search_words

MAX_LATENCIES: Final = 20_000
"""How many of the newest calls the percentiles are computed from: read within 50 ms."""

MAX_LATENCIES_BY: Final = 5000
"""The same for percentiles by server or tool, of which a page needs two."""

MAX_APPROVALS: Final = 5000
"""How many of the newest approvals the times that people took are computed from."""

_LOST_START: Final = (
    "coalesce(nullif(calls.decided_at, 0), nullif(calls.asked_at, 0), "
    "nullif(calls.approval_at, 0), nullif(calls.ended_at, 0))"
)
_NO_START: Final = f"(calls.started_at IS NULL OR calls.started_at <= 0) AND {_LOST_START} > 0"

_ALL: Final = 2**62
"""The limit that stands for no limit, in a form that both engines accept."""


class Selecting(Protocol):
    """The connection to a shared ledger."""

    def select(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a query."""


Connection: TypeAlias = sqlite3.Connection | Selecting


class _Dialect(NamedTuple):
    """What the engines spell differently."""

    like: str
    """A case-sensitive comparison with a pattern."""
    word_hits: str
    """Calls with certain words. Other filters apply to the newest 5,000 of them, so that searching
    a common word stays fast."""
    whole: str
    """Rounds a number down."""
    text: str
    """Converts a column to text."""
    has_start: str
    """Whether a call has a start time."""

    @property
    def times(self) -> tuple[tuple[str, str], ...]:
        """The time of a call, and the calls it applies to: those with a start time, then others.

        These are two queries, because the first can use an index alone.
        """
        return ("calls.started_at", self.has_start), (_LOST_START, _NO_START)


_SQLITE: Final = _Dialect(
    "{} GLOB ?",
    "calls.id IN (SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT 5000)",
    "cast({} AS INTEGER)",
    "{}",
    # The plus keeps SQLite from choosing a less useful index.
    "+calls.started_at > 0",
)
_POSTGRES: Final = _Dialect(
    "{} LIKE ?",
    "calls.id IN (SELECT id FROM call_words WHERE words @@ to_tsquery('simple', ?) "
    "ORDER BY id DESC LIMIT 5000)",
    "floor({})",
    "{}::text",
    "calls.started_at > 0",
)

MAX_RANGES: Final = 1000
"""Time steps that are counted one by one."""

_DECISIONS: Final = """\
WITH RECURSIVE named AS (
  (SELECT decision FROM calls ORDER BY decision LIMIT 1)
  UNION ALL
  SELECT (SELECT decision FROM calls WHERE decision > named.decision ORDER BY decision LIMIT 1)
  FROM named WHERE named.decision IS NOT NULL
)"""
"""All decisions that calls have, each found with one look into the index."""


def _dialect(connection: Connection) -> _Dialect:
    return _SQLITE if isinstance(connection, sqlite3.Connection) else _POSTGRES


def select(connection: Connection, query: str, values: Sequence[Any] = ()) -> list[Any]:
    """Return all rows of a query, on either engine."""
    if isinstance(connection, sqlite3.Connection):
        return connection.execute(query, values).fetchall()
    return connection.select(query, values)


_CALL_NAMES: Final = tuple(column.name for column in CALL_COLUMNS)
_LISTS: Final = tuple(one.name for one in CALL_COLUMNS if one.type == "list of object")
_CALL: Final = ", ".join(f"calls.{name}" for name in _CALL_NAMES)


OPEN: Final = "OPEN"
"""As a status in a filter: the call has no end in the record."""

DECISIONS: Final = ("ALLOW", "HOLD", "BLOCK", "THROTTLE")
STATUSES: Final = ("OK", "ERROR", "TIMEOUT", "CANCELLED", OPEN)

EXACT: Final = ("rule", "error_kind", "approval", "approved_by", "principal")
"""Columns that a filter compares exactly: ``*`` and ``?`` are ordinary characters in them."""


@dataclass(frozen=True, slots=True)
class CallFilter:
    """A filter for calls; an empty field matches any call."""

    run: str = ""
    server: str = ""
    tool: str = ""
    """Exact, or with ``*`` and ``?`` as wildcards."""
    decision: str = ""
    """One of ``DECISIONS``."""
    status: str = ""
    """One of ``STATUSES``."""
    since: float = 0.0
    until: float = 0.0
    text: str = ""
    """A phrase in the name, the arguments or the reason; the last word may be a prefix."""
    finding: str = ""
    """A check that found something in the arguments or the result; ``*`` and ``?`` are wildcards."""
    rule: str = ""
    error_kind: str = ""
    approval: str = ""
    """The outcome of an approval."""
    approved_by: str = ""
    principal: str = ""
    before: tuple[float, int] | None = None
    """Only calls that come after this position in the list, newest first; see ``page_end``."""
    is_untimed: bool = False
    """Only calls without a start time, which come last in the list."""
    among_newest: int = 0
    """Only calls among this many that were recorded last; 0 for all."""
    limit: int = 50
    """0 for all."""

    def where(self, connection: Connection) -> tuple[str, list[Any]]:
        """Return the condition and its values, for a ledger."""
        dialect, status = _dialect(connection), self.status.upper()
        where, values = _all(
            _named(dialect, "calls.run_id", self.run),
            _named(dialect, "calls.server", self.server),
            _named(dialect, "calls.tool", self.tool),
            ("calls.decision = ?", self.decision.upper()),
            ("calls.status = ?", "" if status == OPEN else status),
            ("calls.started_at >= ?", self.since),
            ("calls.started_at < ?", self.until),
            _words(dialect, self.text),
            _found(dialect, self.finding),
            *((f"calls.{name} = ?", getattr(self, name)) for name in EXACT),
            ("calls.id > (SELECT max(id) FROM calls) - ?", self.among_newest),
        )
        if status == OPEN:
            where += " AND calls.status IS NULL"
        if self.is_untimed:
            where += " AND (calls.started_at IS NULL OR calls.started_at <= 0)"
        if self.before is not None:
            where, values = (
                f"{where} AND (calls.started_at, calls.id) < (?, ?)",
                [*values, *self.before],
            )
        return where, values

    def where_traffic(self, connection: Connection) -> tuple[str, list[Any]]:
        """Return the condition for messages and frames: by run, server and time, to the minute."""
        dialect = _dialect(connection)
        return _all(
            _named(dialect, "run_id", self.run),
            _named(dialect, "server", self.server),
            ("minute >= ?", self.since // 60),
            ("minute < ?", -(-self.until // 60)),
        )


def _all(*terms: tuple[str, Any]) -> tuple[str, list[Any]]:
    """Join the conditions whose value is not empty, and return the values with them."""
    chosen = [(term, value) for term, value in terms if value]
    return " AND ".join(term for term, _ in chosen) or "1 = 1", [value for _, value in chosen]


def find_calls(connection: Connection, wanted: CallFilter) -> list[dict[str, Any]]:
    """Return the calls that match a filter, newest first."""
    where, values = wanted.where(connection)
    limit = wanted.limit or _ALL
    query = (
        f"SELECT {_CALL} FROM {_source(connection, wanted)} WHERE {where} "  # noqa: S608 - names of our own, values bound
        "ORDER BY calls.started_at DESC NULLS LAST, calls.id DESC LIMIT ?"
    )
    return [_call(row) for row in select(connection, query, (*values, limit))]


def _source(connection: Connection, wanted: CallFilter) -> str:
    """Return the calls, read by the index that finds the fewest; PostgreSQL chooses it itself."""
    if wanted.is_untimed:
        return _indexed(connection, "calls_untimed")
    is_sqlite = isinstance(connection, sqlite3.Connection)
    # Calls with certain words are looked up by their ids, for which no index is needed.
    return "calls NOT INDEXED" if is_sqlite and has_words(wanted.text) else "calls"


def page_end(connection: Connection, call: dict[str, Any]) -> tuple[float, int] | None:
    """Return the position of a listed call, after which the next page begins."""
    query = "SELECT started_at, id FROM calls WHERE call_id = ? AND writer = ?"
    found = select(connection, query, (call["call_id"], call["writer"]))
    return (float(found[0][0]), int(found[0][1])) if found and found[0][0] else None


def policy_changes(connection: Connection, limit: int) -> list[tuple[float, dict[str, Any]]]:
    """Return the newest changes of the policy."""
    query = "SELECT at, told FROM policy_changes ORDER BY at DESC LIMIT ?"
    found = []
    for at, told in select(connection, query, (limit,)):
        try:
            found.append((float(at), json.loads(told)))
        except ValueError:
            continue  # cut off at ``MAX_POLICY_TEXT``, so it is no longer JSON
    return found


def find_call(connection: Connection, ident: str) -> list[dict[str, Any]]:
    """Return the calls with this id or approval request, or else those whose id ends with it."""
    for term, value in (
        ("call_id = ?", ident),
        ("asked_at > 0 AND approval_id = ?", ident),
        _ends_with(_dialect(connection), "call_id", ident),
    ):
        query = (
            f"SELECT {_CALL} FROM calls WHERE {term} "  # noqa: S608 - as above
            "ORDER BY started_at DESC NULLS LAST LIMIT 20"
        )
        rows = select(connection, query, (value,))
        if rows:
            return [_call(row) for row in rows]
    return []


def _call(row: tuple[Any, ...]) -> dict[str, Any]:
    call = dict(zip(_CALL_NAMES, row, strict=True))
    for name in _LISTS:
        call[name] = json.loads(call[name]) if call[name] else []
    return call


def count_by(
    connection: Connection, column: str, wanted: CallFilter, limit: int = 20
) -> list[tuple[str, int]]:
    """Count calls by one of their columns, most first."""
    if column not in _CALL_NAMES:
        raise ValueError(f"calls have no column {column!r}")
    where, values = wanted.where(connection)
    text = _dialect(connection).text.format(f"calls.{column}")
    query = (
        f"SELECT coalesce({text}, ''), count(*) FROM calls WHERE {where} "  # noqa: S608 - checked above
        "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ?"
    )
    return [(str(name), int(count)) for name, count in select(connection, query, (*values, limit))]


def count_over_time(
    connection: Connection, wanted: CallFilter, step_s: int
) -> list[tuple[float, str, int]]:
    """Count calls by decision per time step, except those without any time."""
    where, values = wanted.where(connection)
    sums: dict[tuple[float, str], int] = {}
    dialect = _dialect(connection)
    started, others = dialect.times
    if dialect is _POSTGRES and _count_ranges(connection, wanted, step_s, sums):
        started = (started[0], "calls.decision IS NULL AND " + started[1])
    for time, which in (started, others):
        query = (
            f"SELECT {dialect.whole.format(f'{time} / ?')} * ?, coalesce(decision, ''), count(*) "  # noqa: S608 - as above
            f"FROM calls WHERE {where} AND {which} GROUP BY 1, 2"
        )
        for at, decision, count in select(connection, query, (step_s, step_s, *values)):
            key = (float(at), str(decision))
            sums[key] = sums.get(key, 0) + int(count)
    return [(at, decision, count) for (at, decision), count in sorted(sums.items())]


def _count_ranges(
    connection: Connection, wanted: CallFilter, step_s: int, sums: dict[tuple[float, str], int]
) -> bool:
    """Count the calls with a start time and a decision; return False if there are too many ranges.

    PostgreSQL groups a million rows in half a second; counting ranges of an index is three times
    as fast.
    """
    where, values = wanted.where(connection)
    bounds = "SELECT min(calls.started_at), max(calls.started_at) FROM calls WHERE "
    ((first, last),) = select(connection, f"{bounds}{where} AND {_POSTGRES.has_start}", values)
    if first is None or (last - first) / step_s > MAX_RANGES:
        return False
    steps = (int(first // step_s), int(last // step_s))
    query = (
        f"{_DECISIONS} SELECT step * ?, named.decision, counted FROM named, "  # noqa: S608 - as above
        "generate_series(?::bigint, ?::bigint) AS step, LATERAL (SELECT count(*) AS counted FROM calls "
        f"WHERE {where} AND calls.decision = named.decision "
        "AND calls.started_at >= (step * ?)::float8 "
        "AND calls.started_at < ((step + 1) * ?)::float8) AS ranges WHERE counted > 0"
    )
    # The values of the filter come in the order of the placeholders.
    for at, decision, count in select(connection, query, (step_s, *steps, *values, step_s, step_s)):
        sums[float(at), str(decision)] = int(count)
    return True


def time_between(connection: Connection, wanted: CallFilter) -> float:
    """Return the seconds between the first and the last call."""
    where, values = wanted.where(connection)
    ends = list[float]()
    for time, which in _dialect(connection).times:
        query = f"SELECT min({time}), max({time}) FROM calls WHERE {where} AND {which}"  # noqa: S608 - as above
        found = select(connection, query, values)[0]
        ends += [float(end) for end in found if end is not None]
    return max(ends) - min(ends) if ends else 0.0


def latencies_by(connection: Connection, column: str, wanted: CallFilter) -> dict[str, list[int]]:
    """Return the latencies of the newest answered calls, sorted, by server or tool."""
    if column not in _CALL_NAMES:
        raise ValueError(f"calls have no column {column!r}")
    where, values = wanted.where(connection)
    query = (
        f"SELECT coalesce(calls.{column}, ''), latency_ms FROM calls WHERE {where} "  # noqa: S608 - checked above
        "AND latency_ms IS NOT NULL AND status = 'OK' "
        "ORDER BY calls.started_at DESC NULLS LAST LIMIT ?"
    )
    found: dict[str, list[int]] = {}
    for name, latency in select(connection, query, (*values, MAX_LATENCIES_BY)):
        found.setdefault(str(name), []).append(int(latency))
    return {name: sorted(each) for name, each in found.items()}


def latencies(connection: Connection, wanted: CallFilter) -> list[int]:
    """Return the latencies of answered calls, sorted."""
    where, values = wanted.where(connection)
    query = (
        f"SELECT latency_ms FROM calls WHERE {where} AND latency_ms IS NOT NULL AND status = 'OK' "  # noqa: S608 - as above
        "ORDER BY calls.started_at DESC NULLS LAST LIMIT ?"
    )
    return sorted(int(row[0]) for row in select(connection, query, (*values, MAX_LATENCIES)))


def _indexed(connection: Connection, index: str) -> str:
    """Return the calls, read by an index of only some of them that SQLite would not choose itself."""
    is_sqlite = isinstance(connection, sqlite3.Connection)
    return f"calls INDEXED BY {index}" if is_sqlite else "calls"


def approval_times(connection: Connection, wanted: CallFilter) -> list[int]:
    """Return how many seconds people took to decide, sorted."""
    where, values = wanted.where(connection)
    query = (
        f"SELECT approval_at - asked_at FROM {_indexed(connection, 'calls_asked')} WHERE {where} AND asked_at > 0 "  # noqa: S608 - as above
        "AND approval_at > 0 AND approved_by <> '' "
        "ORDER BY calls.started_at DESC NULLS LAST LIMIT ?"
    )
    return sorted(round(row[0]) for row in select(connection, query, (*values, MAX_APPROVALS)))


def find_decisions(
    connection: Connection, since: float, limit: int
) -> list[tuple[str, str, float, float]]:
    """Return who decided about held calls since a time, newest first.

    Each has the person, the outcome, and when approval was requested and given.
    """
    query = (
        f"SELECT approved_by, coalesce(approval, ''), asked_at, approval_at FROM {_indexed(connection, 'calls_asked')} "  # noqa: S608 - as above
        "WHERE asked_at > 0 AND started_at >= ? AND approval_at > 0 AND approved_by <> '' "
        "ORDER BY started_at DESC LIMIT ?"
    )
    rows = select(connection, query, (since, limit))
    return [(str(by), str(outcome), float(asked), float(at)) for by, outcome, asked, at in rows]


def count_traffic(
    connection: Connection, kind: str, wanted: CallFilter | None = None, limit: int = 20
) -> list[tuple[str, str, int, int]]:
    """Count messages or refused frames by direction and detail: direction, detail, count, bytes.

    Only the filter's run, server and times apply.
    """
    where, values = (wanted or CallFilter()).where_traffic(connection)
    query = (
        "SELECT direction, detail, sum(count), sum(bytes) FROM traffic "  # noqa: S608 - as above
        f"WHERE type = ? AND {where} GROUP BY 1, 2 ORDER BY 3 DESC, 2, 1 LIMIT ?"
    )
    return [
        (str(direction), str(detail), int(count), int(size))
        for direction, detail, count, size in select(
            connection, query, (kind, *values, limit or _ALL)
        )
    ]


def count_frames(connection: Connection, wanted: CallFilter) -> dict[str, int]:
    """Count refused frames in both directions by the check that they failed, most first."""
    sums: dict[str, int] = {}
    for _, check, count, _ in count_traffic(connection, FRAME_REFUSED, wanted, 0):
        sums[check] = sums.get(check, 0) + count
    return dict(sorted(sums.items(), key=lambda pair: -pair[1]))


def count_messages(connection: Connection, wanted: CallFilter) -> int:
    """Count the messages that no gate decides on."""
    return sum(count for _, _, count, _ in count_traffic(connection, MESSAGE, wanted, 0))


def _named(dialect: _Dialect, column: str, wanted: str) -> tuple[str, str]:
    """Return the condition for a name, in which only ``*`` and ``?`` are wildcards."""
    if "*" not in wanted and "?" not in wanted:
        return f"{column} = ?", wanted
    if dialect is _SQLITE:
        # GLOB has the same two wildcards, and one more, which must be taken literally.
        return dialect.like.format(column), wanted.replace("[", "[[]")
    escaped = _escape_like(wanted)
    return dialect.like.format(column), escaped.replace("*", "%").replace("?", "_")


def _found(dialect: _Dialect, check: str) -> tuple[str, str]:
    """Return the condition for a check that found something."""
    if not check:
        return "", ""
    columns = "coalesce(calls.argument_findings, '') || coalesce(calls.result_findings, '')"
    found, value = _named(dialect, f"({columns})", f'*"check": "{check}"*')
    has_any = "(calls.argument_findings IS NOT NULL OR calls.result_findings IS NOT NULL)"
    return f"{has_any} AND {found}", value


def has_words(text: str) -> bool:
    """Tell whether a text has words that are indexed."""
    return any(char.isalnum() for char in text)


def _words(dialect: _Dialect, text: str) -> tuple[str, str]:
    if not text:
        return "", ""
    if not has_words(text):
        # No letters, so case does not matter. GLOB would take 20 times as long for ``*``.
        return r"calls.preview LIKE ? ESCAPE '\'", f"%{_escape_like(text)}%"
    if dialect is _SQLITE:
        return dialect.word_hits, '"' + text.replace('"', " ") + '"*'
    # Adjacent words, of which the last may be a prefix.
    words = search_words(text) or [text]
    return dialect.word_hits, " <-> ".join(f"'{word}'" for word in words) + ":*"


def _ends_with(dialect: _Dialect, column: str, text: str) -> tuple[str, str]:
    """Return the condition for a text at the end of a column."""
    any_text, escape = ("*", _literal) if dialect is _SQLITE else ("%", _escape_like)
    return dialect.like.format(column), f"{any_text}{escape(text)}"


def _literal(text: str) -> str:
    """Return a GLOB pattern for the text itself."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in text)


def _escape_like(text: str) -> str:
    """Return a LIKE pattern for the text itself."""
    return (
        # A NUL is stored as ``\x00`` (``ledger_index.clean``), whose backslash is escaped here.
        text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("\0", "\\\\x00")
    )
