"""The ``status`` command."""

import json
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

from tests.support.frames import call
from tests.support.hub import Served, sample, serving
from tests.support.postgres import PostgresServer
from tests.support.shared_ledgers import Writer
from tests.support.waiting import wait_for
from tests.support.warm_command import run_warm

from thoughtgate.gate.clock import now
from thoughtgate.record.shared_ledger import shared_ledger
from thoughtgate.stores.engines.postgres import open_postgres
from thoughtgate.stores.gates import LIFE_S, GateStore
from thoughtgate.stores.open_database import StoreLocation


def run(state: Path, *words: str, code: int = 0) -> str:
    done = run_warm(
        "status",
        *words,
        env={
            "THOUGHTGATE_STATE_DIR": str(state),
            "PATH": "/usr/bin:/bin",
            "HOME": str(state),
            "COLUMNS": "160",
        },
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def test_nothing_runs_where_nothing_was_started(tmp_path: Path) -> None:
    told = json.loads(run(tmp_path / "state", "--json"))

    assert (told["gates"], told["approvals"], told["calls"]) == ([], [], [])
    assert "No gate is running." in run(tmp_path / "state")


def test_gates_servers_approvals_and_calls_are_shown(tmp_path: Path) -> None:
    servers: dict[str, Any] = {"one": sample(), "bad": {"command": "/nonexistent"}}
    rules = [{"tool": "transfer", "action": "approve"}]
    with serving(tmp_path, servers, rules=rules) as hub:
        hub.open()
        hub.names()
        hub.text(1, "one.echo", {"text": "x"})
        hub.send(call(2, "one.transfer", {"amount": 3}))
        told = wait_for(
            lambda: found if (found := json.loads(run(hub.state, "--json")))["approvals"] else None
        )
        table = run(hub.state)

    assert told is not None
    [gate] = told["gates"]
    by_id = {server["id"]: server for server in gate["servers"]}
    assert gate["kind"] == "serve"
    assert by_id["one"]["status"] == "running"
    assert by_id["one"]["tools"] == 14
    assert by_id["bad"]["status"] in {"waiting", "starting", "failed"}
    assert "No such file" in by_id["bad"]["reason"]
    assert told["approvals"][0]["tool"] == "transfer"
    assert [(one["tool"], one["decision"]) for one in told["calls"]] == [
        ("transfer", "HOLD"),
        ("echo", "ALLOW"),
    ]
    for word in ("running", "transfer", "echo", "HOLD", "No such file"):
        assert word in table
    assert "\x1b" not in table


def test_a_killed_gate_is_not_shown(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()
        wait_for(lambda: json.loads(run(hub.state, "--json"))["gates"])
        hub.signal(9)
        hub.process.wait(10)

        assert json.loads(run(hub.state, "--json"))["gates"] == []


def test_gates_that_share_a_store_are_shown_with_their_notes(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.url()
    config = tmp_path / "team.yaml"
    config.write_text(f"schema: 1\ndefault: deny\nstore: '{url}'\n", "utf-8")
    assert "No gate uses the shared store." in run(tmp_path, "-c", str(config))
    with closing(open_postgres(url)) as database:
        facts = {"kind": "proxy", "server": "up", "host": "db1", "pid": 7, "version": "0.1"}
        gates = GateStore(database)
        gates.renew("gate|a", now(), {**facts, "degraded": ["record"]}, now())
        gates.renew("gate|b", now(), facts, now())
        gates.renew("gate|c", now() - 60, {**facts, "policy_version": "p2"}, now())
        gates.renew("gate|d", now(), facts, now() - LIFE_S - 1)

    table = run(tmp_path, "-c", str(config))

    for note in ("degraded: record", "another policy than the others", "died or cannot reach"):
        assert table.count(note) == 1, table
    assert url not in table


def test_a_store_that_cannot_be_reached_is_said(tmp_path: Path) -> None:
    config = tmp_path / "team.yaml"
    config.write_text("schema: 1\ndefault: deny\nstore: postgresql://a@127.0.0.1:1/d\n", "utf-8")
    told = run(tmp_path, "-c", str(config), code=2)
    assert "problem: database d on 127.0.0.1" in told
    assert "no pending approval" not in told  # nobody knows


def test_the_calls_of_gates_on_other_machines_are_shown(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.url()
    config = tmp_path / "team.yaml"
    config.write_text(f"schema: 1\ndefault: deny\nstore: '{url}'\n", "utf-8")
    gate = Writer(tmp_path, "elsewhere")
    gate.call(2)
    with shared_ledger(StoreLocation(tmp_path, url)) as shared:
        gate.ship(shared)

    told = run(tmp_path / "here", "-c", str(config))

    assert told.count("ALLOW") == 2, told
    assert "No gate is running on this machine." in told


def test_settings_that_wait_for_a_restart_are_shown(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}, reload="auto") as hub:
        hub.open()
        hub.text(1, "one.echo", {"text": "x"})
        ids = count(2)
        config = json.loads(hub.config.read_text("utf-8"))
        hub.config.write_text(json.dumps({**config, "tasks": {"total": 5}}), "utf-8")
        told = wait_for(
            lambda: gate if (gate := _asked_again(hub, next(ids))).get("needs_restart") else None,
            what="the reload",
        )
        table = run(hub.state)

    assert told["needs_restart"] == ["tasks.total"]
    assert "after a restart: tasks.total" in table


def _asked_again(hub: Served, ident: int) -> Any:
    """Make a call, so that the gate looks at its files, and return what status says of it."""
    hub.text(ident, "one.echo", {"text": "x"})
    return json.loads(run(hub.state, "--json"))["gates"][0]
