"""The tables of the store, as migrations that both engines run.

The scripts are written for SQLite; ``for_postgres`` returns the same script for PostgreSQL. A
migration only adds, because gates of the previous version may still be running.
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
"""Adds the policies that were accepted, and those that wait for acceptance."""

_V7: Final = "ALTER TABLE approvals ADD COLUMN client TEXT NOT NULL DEFAULT ''"
"""Adds what the agent's client says it is."""

_V8: Final = """
CREATE TABLE gates (
  owner TEXT PRIMARY KEY, started_at REAL NOT NULL, expires_at REAL NOT NULL, facts TEXT NOT NULL
) STRICT, WITHOUT ROWID;
"""
"""Adds the running gates that share a store."""

_V9: Final = """
CREATE TABLE used_prompts (
  nonce TEXT PRIMARY KEY, expires_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE running_calls (
  approval TEXT PRIMARY KEY, owner TEXT NOT NULL, call_id TEXT NOT NULL, server TEXT NOT NULL,
  tool TEXT NOT NULL, used_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
"""
"""Adds the states of prompts that were used, and the approved calls that run."""

_V10: Final = "SELECT 'the ledger of SQLite is a file of its own'"

_V10_POSTGRES: Final = """
CREATE TABLE record_files (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, writer text NOT NULL, host text NOT NULL,
  directory text NOT NULL, path text NOT NULL, number bigint NOT NULL, head text NOT NULL,
  previous text NOT NULL, branch_of bigint NOT NULL, branch_at bigint NOT NULL,
  size bigint NOT NULL, lines bigint NOT NULL, chain text NOT NULL,
  cut_size bigint NOT NULL DEFAULT 0, cut_lines bigint NOT NULL DEFAULT 0,
  cut_chain text NOT NULL DEFAULT '', cut_at double precision NOT NULL DEFAULT 0,
  indexed bigint NOT NULL, last_at double precision NOT NULL DEFAULT 0,
  gone_at double precision NOT NULL DEFAULT 0
);
CREATE INDEX record_files_head ON record_files (head);
CREATE TABLE record_chunks (
  file bigint NOT NULL, start bigint NOT NULL, size bigint NOT NULL, lines_before bigint NOT NULL,
  chain text NOT NULL, first_at double precision NOT NULL, last_at double precision NOT NULL,
  has_lists bigint NOT NULL, data bytea NOT NULL, PRIMARY KEY (file, start)
);
CREATE INDEX record_chunks_time ON record_chunks (last_at);
CREATE INDEX record_chunks_lists ON record_chunks (file, start) WHERE has_lists = 1;
CREATE TABLE calls (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  call_id text NOT NULL, writer text NOT NULL, run_id text, session text, server text,
  kind text, tool text, method text, transport text, principal text, profile text,
  args_hash text, preview text, truncated bigint, extra_hash text, extra text, bytes_in
  bigint, number bigint, started_at double precision, decision text, gate text, rule text,
  reason_code text, reason text, enforced bigint, workflow text, policy text, decided_at
  double precision, asked_at double precision, approval_id text, approval text,
  approved_by text, approval_channel text, approval_reason text, approval_at double
  precision, executes bigint, votes text, status text, latency_ms bigint, bytes_out
  bigint, error_class text, error_kind text, error_code bigint, error_message text,
  is_error bigint, result_preview text, ended_at double precision, start_event bigint,
  approval_event bigint, end_event bigint,
  file bigint NOT NULL, UNIQUE (call_id, writer)
);
CREATE INDEX calls_time ON calls (started_at DESC NULLS LAST, id DESC)
  INCLUDE (decision, status, server, tool, error_kind, approval, latency_ms);
CREATE INDEX calls_run ON calls (run_id, started_at DESC NULLS LAST, id DESC);
CREATE INDEX calls_tool ON calls (tool, started_at DESC NULLS LAST, id DESC);
CREATE INDEX calls_server ON calls (server, started_at DESC NULLS LAST, id DESC);
CREATE INDEX calls_decision ON calls (decision, started_at DESC NULLS LAST, id DESC);
CREATE INDEX calls_status ON calls (status, started_at DESC NULLS LAST, id DESC);
CREATE INDEX calls_untimed ON calls (id) WHERE started_at IS NULL OR started_at <= 0;
CREATE TABLE call_words (id bigint PRIMARY KEY, words tsvector NOT NULL);
CREATE INDEX call_words_words ON call_words USING gin (words);
CREATE TABLE traffic (
  run_id text NOT NULL, server text NOT NULL, minute bigint NOT NULL, type text NOT NULL,
  direction text NOT NULL, detail text NOT NULL, count bigint NOT NULL, bytes bigint NOT NULL,
  file bigint NOT NULL, PRIMARY KEY (minute, type, server, direction, detail, run_id, file)
);
"""
"""Adds the ledger: what every gate wrote to its record, and the rows that queries read.

Only PostgreSQL has it; with SQLite the ledger is a file next to the record.
"""

_V11: Final = """
CREATE TABLE limit_budgets (
  space TEXT NOT NULL, key TEXT NOT NULL, limit_id TEXT NOT NULL, scope TEXT NOT NULL,
  total INTEGER NOT NULL, taken INTEGER NOT NULL, window_ends_at REAL NOT NULL,
  epoch INTEGER NOT NULL, used_at REAL NOT NULL,
  PRIMARY KEY (space, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX limit_budgets_limit ON limit_budgets (space, limit_id);
CREATE TABLE limit_portions (
  space TEXT NOT NULL, key TEXT NOT NULL, owner TEXT NOT NULL, limit_id TEXT NOT NULL,
  epoch INTEGER NOT NULL, calls INTEGER NOT NULL,
  PRIMARY KEY (space, key, owner)
) STRICT, WITHOUT ROWID;
CREATE TABLE limit_rates (
  space TEXT NOT NULL, key TEXT NOT NULL, limit_id TEXT NOT NULL, scope TEXT NOT NULL,
  tokens REAL NOT NULL, filled_at REAL NOT NULL, full_at REAL NOT NULL,
  PRIMARY KEY (space, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX limit_rates_limit ON limit_rates (space, limit_id);
CREATE TABLE limit_calls (
  space TEXT NOT NULL, key TEXT NOT NULL, limit_id TEXT NOT NULL, ends_at REAL NOT NULL,
  PRIMARY KEY (space, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX limit_calls_limit ON limit_calls (space, limit_id, ends_at);
CREATE TABLE limit_breakers (
  space TEXT NOT NULL, key TEXT NOT NULL, limit_id TEXT NOT NULL, failures TEXT NOT NULL,
  open_until REAL NOT NULL, trying_until REAL NOT NULL, changed_at REAL NOT NULL,
  rev INTEGER NOT NULL,
  PRIMARY KEY (space, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX limit_breakers_rev ON limit_breakers (space, rev);
"""
"""Adds the counts of limits that several processes share."""

_V12: Final = """
CREATE TABLE ended_sessions (
  session TEXT PRIMARY KEY, expires_at REAL NOT NULL, rev INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX ended_sessions_rev ON ended_sessions (rev);
CREATE TABLE session_messages (
  number INTEGER PRIMARY KEY, session TEXT NOT NULL, body BLOB NOT NULL, expires_at REAL NOT NULL
) STRICT;
"""
"""Adds HTTP sessions that have ended, and messages between the gates that share sessions."""

_V13: Final = """
ALTER TABLE grants ADD COLUMN by_groups TEXT NOT NULL DEFAULT '[]';
ALTER TABLE grants ADD COLUMN by_issuer TEXT NOT NULL DEFAULT '';
"""
"""Adds the verified groups of the reviewer who gave a grant."""

_V14: Final = """
CREATE TABLE oauth_tokens (
  principal TEXT NOT NULL, server TEXT NOT NULL, issuer TEXT NOT NULL, name TEXT NOT NULL,
  body BLOB NOT NULL, scopes TEXT NOT NULL, missing TEXT NOT NULL, signed_in_at REAL NOT NULL,
  expires_at REAL NOT NULL, renewable INTEGER NOT NULL, generation INTEGER NOT NULL,
  lease_owner TEXT NOT NULL, lease_until REAL NOT NULL,
  PRIMARY KEY (principal, server, issuer)
) STRICT, WITHOUT ROWID;
"""
"""Adds the encrypted OAuth tokens of servers."""

_V15: Final = "ALTER TABLE limit_portions ADD COLUMN confirmed_at REAL NOT NULL DEFAULT 0"
"""Adds when a gate last asked for a portion of a budget, which limits how long it may use it."""

_V16: Final = """
CREATE TABLE console_sessions (
  id TEXT PRIMARY KEY, subject TEXT NOT NULL, opened_at REAL NOT NULL, expires_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX console_sessions_subject ON console_sessions (subject, opened_at);
"""
"""Adds the browsers that are signed in to the consoles of gates that share a store."""

_V17: Final = "ALTER TABLE approvals ADD COLUMN session_name TEXT NOT NULL DEFAULT ''"
"""Adds the name of a call's HTTP session, which is the same at every gate."""

_V18: Final = """
CREATE TABLE pins (
  server TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,
  status TEXT NOT NULL, definition TEXT NOT NULL, findings TEXT NOT NULL, changed_at REAL NOT NULL,
  decided_by TEXT NOT NULL, change_set TEXT NOT NULL, rev INTEGER NOT NULL,
  PRIMARY KEY (server, kind, name, digest)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX pins_accepted ON pins (server, kind, name) WHERE status = 'accepted';
CREATE TABLE pin_history (
  number INTEGER PRIMARY KEY, server TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
  digest TEXT NOT NULL, status TEXT NOT NULL, definition TEXT NOT NULL, changed_at REAL NOT NULL,
  decided_by TEXT NOT NULL
) STRICT;
CREATE INDEX pin_history_name ON pin_history (server, kind, name, number);
"""
"""Adds the pinned definitions of servers, those that wait for a person, and what was decided."""

_V19: Final = "SELECT 'the ledger of SQLite has no migrations: it is made anew'"

_V19_POSTGRES: Final = """
ALTER TABLE calls ADD COLUMN argument_findings text;
ALTER TABLE calls ADD COLUMN result_findings text;
ALTER TABLE calls ADD COLUMN result_action text;
ALTER TABLE calls ADD COLUMN result_approval text;
ALTER TABLE calls ADD COLUMN result_decided_by text;
"""
"""Adds what the content checks found in the arguments and results of calls."""

_V20: Final = """
CREATE TABLE facts (
  principal TEXT NOT NULL, fact TEXT NOT NULL, cause TEXT NOT NULL, established_at REAL NOT NULL,
  expires_at REAL NOT NULL, rev INTEGER NOT NULL,
  PRIMARY KEY (principal, fact)
) STRICT, WITHOUT ROWID;
CREATE INDEX facts_rev ON facts (rev);
CREATE TABLE stop_orders (
  scope TEXT NOT NULL, name TEXT NOT NULL, reason TEXT NOT NULL, ordered_by TEXT NOT NULL,
  ordered_at REAL NOT NULL,
  PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;
"""
"""Adds the facts of principals, and stop orders."""

_V21: Final = "SELECT 'the ledger of SQLite counts its calls itself'"

_COUNTED: Final = (
    "server", "tool", "decision", "status", "rule", "error_kind", "principal", "approval",
    "approved_by", "policy",
)  # fmt: skip
_V21_NAMES: Final = ", ".join(_COUNTED)


def _changed_calls(rows: str, change: int, file: str = "file") -> str:
    """Return the calls of a transition table, with what they add to the totals of a file."""
    names = ", ".join(f"coalesce({rows}.{name}, '') AS {name}" for name in _COUNTED)
    return (
        f"SELECT {file} AS file, {change} AS change, {rows}.started_at, {rows}.latency_ms, {names} "  # noqa: S608 - our own names
        f"FROM {rows}"
    )


def _count_calls(event: str, changed: str, tables: str) -> str:
    """Return a trigger that keeps the totals of calls while a statement changes calls."""
    steps = "(VALUES (3600), (21600), (86400)) AS steps (step)"
    digits = " ".join(
        f"WHEN latency_ms < {100 * unit} THEN latency_ms / {unit} * {unit}"
        for unit in (1, 10, 100, 1000)
    )
    name = f"count_calls_{event.lower()}"
    return f"""
CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO call_totals AS kept
    SELECT step, floor(started_at / step) * step, md5(concat_ws(chr(31), {_V21_NAMES})),
      {_V21_NAMES}, file, sum(change)
    FROM ({changed}) AS changed, {steps} WHERE started_at > 0
    GROUP BY step, 2, {_V21_NAMES}, file HAVING sum(change) <> 0 ORDER BY 1, 2, 3
    ON CONFLICT (step_s, started_at, kind, file) DO UPDATE SET calls = kept.calls + excluded.calls;
  DELETE FROM call_totals WHERE calls = 0 AND file IN (SELECT file FROM ({changed}) AS changed);
  INSERT INTO call_latencies AS kept
    SELECT step, floor(started_at / step) * step, server,
      CASE {digits} ELSE latency_ms / 10000 * 10000 END, file, sum(change)
    FROM ({changed}) AS changed, {steps}
    WHERE started_at > 0 AND status = 'OK' AND latency_ms IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5 HAVING sum(change) <> 0 ORDER BY 1, 2, 3, 4
    ON CONFLICT (step_s, started_at, server, latency_ms, file)
      DO UPDATE SET calls = kept.calls + excluded.calls;
  RETURN NULL;
END $$;
CREATE TRIGGER {name} AFTER {event} ON calls REFERENCING {tables}
  FOR EACH STATEMENT EXECUTE FUNCTION {name}();
"""  # noqa: S608 - our own names


# Both changes belong to the new file, which no other transaction indexes meanwhile.
_MOVED_CALLS: Final = (
    f"{_changed_calls('new_calls', 1, 'new_calls.file')} UNION ALL "
    f"{_changed_calls('old_calls', -1, 'new_calls.file')} JOIN new_calls USING (id)"
)

_V21_POSTGRES: Final = f"""
TRUNCATE calls, call_words, traffic;
UPDATE record_files SET indexed = greatest(branch_at, cut_size);
CREATE TABLE policy_changes (
  at double precision NOT NULL, told text NOT NULL, file bigint NOT NULL
);
CREATE INDEX policy_changes_time ON policy_changes (at);
CREATE INDEX calls_asked ON calls (started_at DESC NULLS LAST)
  INCLUDE (asked_at, approval_at, approved_by, approval, server) WHERE asked_at > 0;
CREATE INDEX calls_rule ON calls (rule, started_at DESC NULLS LAST, id DESC);
CREATE INDEX calls_found ON calls (started_at DESC NULLS LAST, id DESC)
  WHERE argument_findings IS NOT NULL OR result_findings IS NOT NULL;
CREATE TABLE call_totals (
  step_s bigint NOT NULL, started_at double precision NOT NULL, kind text NOT NULL,
  {", ".join(f"{name} text NOT NULL" for name in _COUNTED)},
  file bigint NOT NULL, calls bigint NOT NULL, PRIMARY KEY (step_s, started_at, kind, file)
);
CREATE INDEX call_totals_policy ON call_totals (policy) WHERE step_s = 86400;
CREATE INDEX call_totals_none ON call_totals (file) WHERE calls = 0;
CREATE TABLE call_latencies (
  step_s bigint NOT NULL, started_at double precision NOT NULL, server text NOT NULL,
  latency_ms bigint NOT NULL, file bigint NOT NULL, calls bigint NOT NULL,
  PRIMARY KEY (step_s, started_at, server, latency_ms, file)
);
CREATE FUNCTION mark_failed_call() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.status = 'ERROR';
  RETURN NEW;
END $$;
CREATE TRIGGER calls_failed BEFORE INSERT OR UPDATE ON calls FOR EACH ROW
  WHEN (NEW.is_error = 1 AND NEW.status = 'OK') EXECUTE FUNCTION mark_failed_call();
{_count_calls("INSERT", _changed_calls("new_calls", 1), "NEW TABLE AS new_calls")}
{_count_calls("DELETE", _changed_calls("old_calls", -1), "OLD TABLE AS old_calls")}
{_count_calls("UPDATE", _MOVED_CALLS, "OLD TABLE AS old_calls NEW TABLE AS new_calls")}
"""  # noqa: S608 - our own names
"""Adds totals of calls and past policies, and deletes all rows, which are then indexed again.

Rows of earlier versions say that a call succeeded although its tool reported an error.
"""

_V22: Final = """
CREATE TABLE server_tasks (
  id TEXT PRIMARY KEY, principal TEXT NOT NULL, expires_at REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX server_tasks_principal ON server_tasks (principal, expires_at);
"""
"""Adds the principals for which servers made tasks."""

MIGRATIONS: Final[tuple[str, ...]] = (
    _V1,
    _V2,
    _V3,
    _V4,
    _V5,
    _V6,
    _V7,
    _V8,
    _V9,
    _V10,
    _V11,
    _V12,
    _V13,
    _V14,
    _V15,
    _V16,
    _V17,
    _V18,
    _V19,
    _V20,
    _V21,
    _V22,
)
"""Scripts that each upgrade a file by one version; the version is the number of scripts run."""

OLDEST: Final = 1
"""The oldest version whose gates can use these tables while gates of this version run."""

_POSTGRES: Final = (
    (r"INTEGER PRIMARY KEY", "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    (r"\bINTEGER\b", "bigint"),
    (r"\bREAL\b", "double precision"),
    (r"\bBLOB\b", "bytea"),
    (r"\)\s*STRICT(, WITHOUT ROWID)?", ")"),
)
"""SQLite's types and options with what PostgreSQL has in their place."""


_ONLY_POSTGRES: Final = {
    _V10: _V10_POSTGRES,
    _V19: _V19_POSTGRES,
    _V20: f"{_V20}ALTER TABLE calls ADD COLUMN facts text;",
    _V21: _V21_POSTGRES,
}
"""Migrations that differ for PostgreSQL; with SQLite, the ledger is a separate file."""


def for_postgres(script: str) -> str:
    """Return a migration for PostgreSQL."""
    script = _ONLY_POSTGRES.get(script, script)
    for ours, theirs in _POSTGRES:
        script = re.sub(ours, theirs, script)
    return script
