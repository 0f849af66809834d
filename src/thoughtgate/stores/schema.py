"""The tables of the store, as migrations that both engines run.

The scripts are written for SQLite; ``for_postgres`` returns the same script for PostgreSQL. A
migration only adds: gates of the version before it may still be running.
"""

import re
from typing import Final

_V1: Final = """
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO counter VALUES ('rev', 0);
CREATE TABLE approvals (
  id TEXT PRIMARY KEY, call_id TEXT NOT NULL, digest TEXT NOT NULL, server TEXT NOT NULL,
  kind TEXT NOT NULL, tool TEXT NOT NULL, arguments TEXT NOT NULL, folded INTEGER NOT NULL,
  principal TEXT NOT NULL, session TEXT NOT NULL, workflow TEXT NOT NULL, channel TEXT NOT NULL,
  rule TEXT NOT NULL, reason TEXT NOT NULL, policy_version TEXT NOT NULL,
  created_at REAL NOT NULL, expires_at REAL NOT NULL, required INTEGER NOT NULL,
  approvers TEXT NOT NULL, on_timeout TEXT NOT NULL, elicitation INTEGER NOT NULL,
  remember INTEGER NOT NULL,
  owner TEXT NOT NULL, status TEXT NOT NULL, votes TEXT NOT NULL, decided_at REAL NOT NULL,
  closed_reason TEXT NOT NULL, grant_id TEXT NOT NULL, rev INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX approvals_rev ON approvals (rev);
CREATE INDEX approvals_call ON approvals (call_id);
CREATE INDEX approvals_task ON approvals (owner) WHERE owner LIKE 'task:%';
CREATE INDEX approvals_open ON approvals (status, principal) WHERE status IN ('pending', 'approved');
CREATE TABLE grants (
  id TEXT PRIMARY KEY, principal TEXT NOT NULL, workflow TEXT NOT NULL, server TEXT NOT NULL,
  kind TEXT NOT NULL, tool TEXT NOT NULL, scope TEXT NOT NULL, digest TEXT NOT NULL,
  lifetime TEXT NOT NULL, session TEXT NOT NULL, created_at REAL NOT NULL,
  expires_at REAL NOT NULL, by TEXT NOT NULL, approval TEXT NOT NULL, uses INTEGER NOT NULL,
  last_used_at REAL NOT NULL
) STRICT;
CREATE INDEX grants_call ON grants (principal, server, kind, tool);
CREATE TABLE handles (
  approval TEXT NOT NULL, channel TEXT NOT NULL, handle TEXT NOT NULL,
  PRIMARY KEY (approval, channel)
) STRICT, WITHOUT ROWID;
CREATE TABLE tasks (
  id TEXT PRIMARY KEY, principal TEXT NOT NULL, server TEXT NOT NULL, phase TEXT NOT NULL,
  expires_at REAL NOT NULL, body TEXT NOT NULL, rev INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_principal ON tasks (principal);
"""

_V2: Final = """
ALTER TABLE tasks ADD COLUMN gate TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_gate ON tasks (gate);
"""
"""Adds the gate that a task belongs to, and the process of that gate that owns it."""

_V3: Final = """
ALTER TABLE approvals ADD COLUMN extra TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN definition TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN ended_grants TEXT NOT NULL DEFAULT '[]';
ALTER TABLE grants ADD COLUMN definition TEXT NOT NULL DEFAULT '';
"""
"""Adds what a call carries beyond its arguments, and the definition of the tool that it calls."""

_V4: Final = """
CREATE TABLE record_heads (
  record TEXT PRIMARY KEY, number INTEGER NOT NULL, size INTEGER NOT NULL, chain TEXT NOT NULL,
  run_id TEXT NOT NULL, writer TEXT NOT NULL, seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""
"""Adds how far each file of the record was written."""

_V5: Final = """
CREATE TABLE argument_parts (
  number INTEGER PRIMARY KEY, approval TEXT NOT NULL, part INTEGER NOT NULL, text BLOB NOT NULL,
  UNIQUE (approval, part)
) STRICT;
"""
"""Adds the text of arguments that are too long for their approval."""

_V6: Final = """
CREATE TABLE policies (
  path TEXT NOT NULL, digest TEXT NOT NULL, status TEXT NOT NULL, files TEXT NOT NULL,
  changed_at REAL NOT NULL, accepted_by TEXT NOT NULL, rev INTEGER NOT NULL,
  PRIMARY KEY (path, digest)
) STRICT;
CREATE UNIQUE INDEX policies_accepted ON policies (path) WHERE status = 'accepted';
"""
"""Adds the policies that were accepted, and those that wait to be."""

_V7: Final = "ALTER TABLE approvals ADD COLUMN client TEXT NOT NULL DEFAULT ''"
"""Adds what the agent's client says it is."""

_V8: Final = """
CREATE TABLE gates (
  owner TEXT PRIMARY KEY, started_at REAL NOT NULL, expires_at REAL NOT NULL, facts TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
"""Adds the running gates that share a store."""

_REVIEWER_GROUPS: Final = """
ALTER TABLE grants ADD COLUMN by_groups TEXT NOT NULL DEFAULT '[]';
ALTER TABLE grants ADD COLUMN by_issuer TEXT NOT NULL DEFAULT '';
"""
"""Adds the verified groups of the reviewer who gave a grant."""

MIGRATIONS: Final[tuple[str, ...]] = (_V1, _V2, _V3, _V4, _V5, _V6, _V7, _V8, _REVIEWER_GROUPS)
"""Scripts that each upgrade a file by one version; the version is the number of scripts run."""

OLDEST: Final = 1
"""The oldest version whose gates can use the tables of this one, while both run."""

_POSTGRES: Final = (
    (r"INTEGER PRIMARY KEY", "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    (r"\bINTEGER\b", "bigint"),
    (r"\bREAL\b", "double precision"),
    (r"\bBLOB\b", "bytea"),
    (r"\)\s*STRICT(, WITHOUT ROWID)?", ")"),
)
"""What PostgreSQL calls the same types, and what it does not need."""


def for_postgres(script: str) -> str:
    """Return a migration for PostgreSQL."""
    for ours, theirs in _POSTGRES:
        script = re.sub(ours, theirs, script)
    return script
