"""Totals of calls per hour, quarter of a day and day, so that a chart need not read a million calls.

Both ledgers keep them by themselves: triggers change them in the transaction that changes a call,
so they always agree with the calls. Those of PostgreSQL are in ``stores.engines.schema``, and are
kept for each file, so that two gates never wait for each other. For a part of an hour, the calls
themselves are grouped.
"""

import sqlite3
from dataclasses import replace
from typing import Any, Final, NamedTuple

from thoughtgate.record.ledger_queries import CallFilter, Connection, select

TOTALS: Final = "call_totals"
LATENCIES: Final = "call_latencies"
"""Answered calls by server and latency, to two digits: percentiles are accurate to a tenth."""
KINDS: Final = "call_kinds"
"""Every combination of what is counted, so that a total is three numbers and the count."""

STEPS_S: Final = (3600, 21_600, 86_400)
"""The periods that totals are kept for."""

COUNTED: Final = (
    "server", "tool", "decision", "status", "rule", "error_kind", "principal", "approval",
    "approved_by", "policy",
)  # fmt: skip
"""The columns that calls are counted by."""

MAX_TOTALS: Final = 100_000
"""Totals that are read at once: a tenth of a second. Only a record with as many names of tools has more."""


_NEVER: Final = 1e18
"""A time after all calls."""


class CallTotal(NamedTuple):
    """Calls that agree in everything that is counted."""

    at: float
    """The start of the period."""
    server: str
    tool: str
    decision: str
    status: str
    rule: str
    error_kind: str
    principal: str
    approval: str
    approved_by: str
    policy: str
    calls: int


def read_totals(connection: Connection, wanted: CallFilter, step_s: int) -> list[CallTotal] | None:
    """Return the calls since a time by all columns, per step; None if there are too many totals.

    Only the filter's server and start time apply. The time must be a multiple of the step.
    """
    where, values = _since(wanted)
    if step_s not in STEPS_S:
        each = ", ".join(f"coalesce({name}, '')" for name in COUNTED)
        groups = ", ".join(str(number + 1) for number in range(len(COUNTED) + 1))
        query = (
            f"SELECT {_whole(connection, step_s)}, {each}, count(*) FROM calls "  # noqa: S608 - our own names
            f"WHERE {where} GROUP BY {groups} LIMIT ?"
        )
        rows = select(connection, query, (*values, MAX_TOTALS + 1))
    else:
        names = ", ".join(COUNTED)
        query = (
            f"SELECT started_at, {names}, calls FROM {_kept(connection)} "  # noqa: S608 - our own names
            f"WHERE step_s = ? AND {where} LIMIT ?"
        )
        # PostgreSQL keeps totals for each file, so the totals of all files are added up.
        if not isinstance(connection, sqlite3.Connection):
            query = (
                f"SELECT started_at, {names}, sum(calls)::bigint FROM {TOTALS} "  # noqa: S608 - our own names
                f"WHERE step_s = ? AND {where} GROUP BY kind, started_at, {names} "
                "HAVING sum(calls) > 0 LIMIT ?"
            )
        rows = select(connection, query, (step_s, *values, MAX_TOTALS + 1))
    return None if len(rows) > MAX_TOTALS else [CallTotal(*row) for row in rows]


def count_rules(connection: Connection, policy: str) -> dict[tuple[str, str], int]:
    """Count the calls of a policy's version by rule and decision."""
    query = (
        f"SELECT rule, decision, sum(calls) FROM {_kept(connection)} "  # noqa: S608 - our own names
        f"WHERE step_s = {STEPS_S[-1]} AND policy = ? GROUP BY 1, 2 HAVING sum(calls) > 0"
    )
    found = select(connection, query, (policy,))
    return {(str(rule), str(decision)): int(calls) for rule, decision, calls in found}


def count_steps(connection: Connection, wanted: CallFilter, step_s: int) -> list[tuple[float, int]]:
    """Count the calls that match a filter per step, newest first; steps without any are left out.

    Steps count as a whole, and only columns in ``COUNTED`` can be filtered by.
    """
    where, values = replace(wanted, since=0.0, until=0.0).where(connection)
    times = "step_s = ? AND started_at > ?"
    is_sqlite = isinstance(connection, sqlite3.Connection)
    kept = (
        f"{KINDS} AS calls JOIN {TOTALS} ON kind = calls.id" if is_sqlite else f"{TOTALS} AS calls"
    )
    count = f"sum({TOTALS if is_sqlite else 'calls'}.calls)"
    query = (
        f"SELECT started_at, {count} FROM {kept} WHERE {times} AND started_at < ? AND {where} "  # noqa: S608 - our own names
        f"GROUP BY 1 HAVING {count} > 0 ORDER BY 1 DESC"
    )
    bounds = (step_s, wanted.since - step_s, wanted.until or _NEVER)
    return [(float(at), int(calls)) for at, calls in select(connection, query, (*bounds, *values))]


def read_latencies(
    connection: Connection, wanted: CallFilter, step_s: int
) -> dict[float, list[tuple[int, int]]]:
    """Return the latencies of answered calls per step, rising, each with the number of calls."""
    where, values = _since(wanted)
    if step_s in STEPS_S:
        query = (
            f"SELECT started_at, latency_ms, sum(calls) FROM {LATENCIES} "  # noqa: S608 - our own names
            f"WHERE step_s = ? AND {where} GROUP BY 1, 2 HAVING sum(calls) > 0 ORDER BY 1, 2"
        )
        rows = select(connection, query, (step_s, *values))
    else:
        query = (
            f"SELECT {_whole(connection, step_s)}, {_ROUNDED.format('calls')}, count(*) "  # noqa: S608 - our own names
            f"FROM calls WHERE {where} AND {_ANSWERED.format('calls')} GROUP BY 1, 2 ORDER BY 1, 2"
        )
        rows = select(connection, query, values)
    found: dict[float, list[tuple[int, int]]] = {}
    for at, latency, calls in rows:
        found.setdefault(float(at), []).append((int(latency), int(calls)))
    return found


def _since(wanted: CallFilter) -> tuple[str, list[Any]]:
    where, values = "started_at >= ?", list[Any]([wanted.since])
    return (
        (f"{where} AND server = ?", [*values, wanted.server]) if wanted.server else (where, values)
    )


def _whole(connection: Connection, step_s: int) -> str:
    """Return the start of a call's step."""
    if isinstance(connection, sqlite3.Connection):
        return f"cast(started_at / {step_s} AS INTEGER) * {step_s}.0"
    return f"floor(started_at / {step_s}) * {step_s}"


def _kept(connection: Connection) -> str:
    """Return the totals with everything that is counted."""
    is_sqlite = isinstance(connection, sqlite3.Connection)
    return f"{TOTALS} JOIN {KINDS} ON {KINDS}.id = kind" if is_sqlite else TOTALS


_ANSWERED: Final = "{0}.started_at > 0 AND {0}.status = 'OK' AND {0}.latency_ms IS NOT NULL"
_ROUNDED: Final = (
    "CASE "
    + " ".join(
        f"WHEN {{0}}.latency_ms < {100 * unit} THEN {{0}}.latency_ms / {unit} * {unit}"
        for unit in (1, 10, 100, 1000)
    )
    + " ELSE {0}.latency_ms / 10000 * 10000 END"
)


def _kind(row: str) -> str:
    """Return the condition for the kind of call that a row is."""
    return " AND ".join(f"{KINDS}.{name} = coalesce({row}.{name}, '')" for name in COUNTED)


_STARTS: Final = ", ".join(
    f"({step_s}, cast({{0}}.started_at / {step_s} AS INTEGER) * {step_s}.0)" for step_s in STEPS_S
)


def _more(row: str) -> str:
    names = ", ".join(f"coalesce({row}.{name}, '')" for name in COUNTED)
    return (
        # Not OR IGNORE: in a trigger, the statement that fired it decides about conflicts.
        f"INSERT INTO {KINDS} ({', '.join(COUNTED)}) "  # noqa: S608 - our own names
        f"SELECT {names} WHERE {row}.started_at > 0 ON CONFLICT DO NOTHING; "
        f"INSERT INTO {TOTALS} SELECT step.column1, step.column2, {KINDS}.id, 1 "
        f"FROM {KINDS}, (VALUES {_STARTS.format(row)}) AS step "
        f"WHERE {row}.started_at > 0 AND {_kind(row)} "
        f"ON CONFLICT DO UPDATE SET calls = calls + 1; "
        f"INSERT INTO {LATENCIES} SELECT step.column1, step.column2, coalesce({row}.server, ''), "
        f"{_ROUNDED.format(row)}, 1 FROM (VALUES {_STARTS.format(row)}) AS step "
        f"WHERE {_ANSWERED.format(row)} ON CONFLICT DO UPDATE SET calls = calls + 1;"
    )


def _fewer(row: str) -> str:
    where = (
        f"kind = (SELECT id FROM {KINDS} WHERE {_kind(row)}) "  # noqa: S608 - our own names
        f"AND (step_s, started_at) IN (VALUES {_STARTS.format(row)})"
    )
    answered = (
        f"server = coalesce({row}.server, '') AND latency_ms = {_ROUNDED.format(row)} AND "
        f"{_ANSWERED.format(row)} AND (step_s, started_at) IN (VALUES {_STARTS.format(row)})"
    )
    return " ".join(
        f"UPDATE {table} SET calls = calls - 1 WHERE {which}; "  # noqa: S608 - our own names
        f"DELETE FROM {table} WHERE {which} AND calls <= 0;"
        for table, which in ((TOTALS, where), (LATENCIES, answered))
    )


_CHANGED: Final = " OR ".join(
    f"old.{name} IS NOT new.{name}" for name in ("started_at", "latency_ms", *COUNTED)
)

TOTALS_SCHEMA: Final = (
    f"CREATE TABLE {KINDS} (id INTEGER PRIMARY KEY, "
    f"{', '.join(f'{name} TEXT' for name in COUNTED)}, UNIQUE ({', '.join(COUNTED)}));\n"
    f"CREATE TABLE {TOTALS} (step_s INTEGER, started_at REAL, kind INTEGER, calls INTEGER, "
    "PRIMARY KEY (step_s, started_at, kind)) WITHOUT ROWID;\n"
    f"CREATE INDEX {TOTALS}_kind ON {TOTALS} (kind, step_s, started_at, calls);\n"
    f"CREATE TABLE {LATENCIES} (step_s INTEGER, started_at REAL, server TEXT, latency_ms INTEGER, "
    "calls INTEGER, PRIMARY KEY (step_s, started_at, server, latency_ms)) WITHOUT ROWID;\n"
    f"CREATE TRIGGER calls_added AFTER INSERT ON calls BEGIN {_more('new')} END;\n"
    f"CREATE TRIGGER calls_changed AFTER UPDATE ON calls WHEN {_CHANGED} "
    f"BEGIN {_fewer('old')} {_more('new')} END;\n"
    f"CREATE TRIGGER calls_removed AFTER DELETE ON calls BEGIN {_fewer('old')} END;\n"
)
"""The tables and their triggers, one statement per line."""

FORGET_KINDS: Final = f"DELETE FROM {KINDS} WHERE id NOT IN (SELECT kind FROM {TOTALS})"  # noqa: S608
"""Deletes the kinds of calls that no total counts any more."""
