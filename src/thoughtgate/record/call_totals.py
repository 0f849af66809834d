"""Totals of calls per hour, quarter of a day and day, so that a chart need not read a million calls.

The ledger of one machine keeps them by itself: triggers change them in the transaction that
changes a call, so they always agree with the calls. A shared ledger has none; there, and for a
part of an hour, the calls themselves are grouped.
"""

import sqlite3
from typing import Any, Final, NamedTuple

from thoughtgate.record.ledger_queries import CallFilter, Connection, select

TOTALS: Final = "call_totals"
KINDS: Final = "call_kinds"
"""Every combination of what is counted, so that a total is three numbers and the count."""

STEPS_S: Final = (3600, 21_600, 86_400)
"""The periods that totals are kept for."""

COUNTED: Final = (
    "server", "tool", "decision", "status", "rule", "error_kind", "principal", "approval",
    "approved_by",
)  # fmt: skip
"""The columns that calls are counted by."""

MAX_TOTALS: Final = 100_000
"""Totals that are read at once: a tenth of a second. Only a record with as many names of tools has more."""


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
    calls: int


def read_totals(connection: Connection, wanted: CallFilter, step_s: int) -> list[CallTotal] | None:
    """Return the calls since a time by all columns, per step; None if there are too many totals.

    Of the filter, the server and the time count. The time must be a multiple of the step.
    """
    where, values = "started_at >= ?", list[Any]([wanted.since])
    if wanted.server:
        where += " AND server = ?"
        values.append(wanted.server)
    is_sqlite = isinstance(connection, sqlite3.Connection)
    if is_sqlite and step_s in STEPS_S:
        query = (
            f"SELECT started_at, {', '.join(COUNTED)}, calls FROM {TOTALS} "  # noqa: S608 - our own names
            f"JOIN {KINDS} ON {KINDS}.id = kind WHERE step_s = ? AND {where} LIMIT ?"
        )
        rows = select(connection, query, (step_s, *values, MAX_TOTALS + 1))
    else:
        whole = (
            "cast(started_at / {0} AS INTEGER) * {0}.0"
            if is_sqlite
            else "floor(started_at / {0}) * {0}"
        )
        each = ", ".join(f"coalesce({name}, '')" for name in COUNTED)
        groups = ", ".join(str(number + 1) for number in range(len(COUNTED) + 1))
        query = (
            f"SELECT {whole.format(step_s)}, {each}, count(*) FROM calls "  # noqa: S608 - our own names
            f"WHERE {where} GROUP BY {groups} LIMIT ?"
        )
        rows = select(connection, query, (*values, MAX_TOTALS + 1))
    return None if len(rows) > MAX_TOTALS else [CallTotal(*row) for row in rows]


def _kind(row: str) -> str:
    """Return the condition for the kind of call that a row is."""
    return " AND ".join(f"{KINDS}.{name} = coalesce({row}.{name}, '')" for name in COUNTED)


_STARTS: Final = ", ".join(
    f"({step_s}, cast({{0}}.started_at / {step_s} AS INTEGER) * {step_s}.0)" for step_s in STEPS_S
)


def _more(row: str) -> str:
    names = ", ".join(f"coalesce({row}.{name}, '')" for name in COUNTED)
    return (
        f"INSERT OR IGNORE INTO {KINDS} ({', '.join(COUNTED)}) "  # noqa: S608 - our own names
        f"SELECT {names} WHERE {row}.started_at > 0; "
        f"INSERT INTO {TOTALS} SELECT step.column1, step.column2, {KINDS}.id, 1 "
        f"FROM {KINDS}, (VALUES {_STARTS.format(row)}) AS step "
        f"WHERE {row}.started_at > 0 AND {_kind(row)} "
        f"ON CONFLICT DO UPDATE SET calls = calls + 1;"
    )


def _fewer(row: str) -> str:
    where = (
        f"kind = (SELECT id FROM {KINDS} WHERE {_kind(row)}) "  # noqa: S608 - our own names
        f"AND (step_s, started_at) IN (VALUES {_STARTS.format(row)})"
    )
    return (
        f"UPDATE {TOTALS} SET calls = calls - 1 WHERE {where}; "  # noqa: S608 - our own names
        f"DELETE FROM {TOTALS} WHERE {where} AND calls <= 0;"
    )


_CHANGED: Final = " OR ".join(f"old.{name} IS NOT new.{name}" for name in ("started_at", *COUNTED))

TOTALS_SCHEMA: Final = (
    f"CREATE TABLE {KINDS} (id INTEGER PRIMARY KEY, "
    f"{', '.join(f'{name} TEXT' for name in COUNTED)}, UNIQUE ({', '.join(COUNTED)}));\n"
    f"CREATE TABLE {TOTALS} (step_s INTEGER, started_at REAL, kind INTEGER, calls INTEGER, "
    "PRIMARY KEY (step_s, started_at, kind)) WITHOUT ROWID;\n"
    f"CREATE TRIGGER calls_added AFTER INSERT ON calls BEGIN {_more('new')} END;\n"
    f"CREATE TRIGGER calls_changed AFTER UPDATE ON calls WHEN {_CHANGED} "
    f"BEGIN {_fewer('old')} {_more('new')} END;\n"
    f"CREATE TRIGGER calls_removed AFTER DELETE ON calls BEGIN {_fewer('old')} END;\n"
)
"""The tables and their triggers, one statement per line."""

FORGET_KINDS: Final = f"DELETE FROM {KINDS} WHERE id NOT IN (SELECT kind FROM {TOTALS})"  # noqa: S608
"""Deletes the kinds of calls that no total counts any more."""
