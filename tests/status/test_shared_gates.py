"""The gates that share a store, as people see them."""

from pathlib import Path
from typing import Any

from tests.support.approvals import a_store, an_approval
from tests.support.postgres import PostgresServer

from thoughtgate.gate.clock import now
from thoughtgate.status.shared_gates import describe_gates, gather_shared
from thoughtgate.stores.engines.postgres import open_postgres
from thoughtgate.stores.gates import GateStore, RunningGate
from thoughtgate.stores.open_database import StoreLocation

NOW = 1_800_000_000.0


def gate(
    name: str, *, started_at: float = NOW, ends_in_s: float = 10.0, **facts: Any
) -> RunningGate:
    told = {"kind": "proxy", "server": "up", "version": "1", "policy_version": "p1", **facts}
    return RunningGate(f"gate|{name}", started_at, NOW + ends_in_s, told)


def test_a_gate_is_told_with_what_it_holds_and_whether_it_lives() -> None:
    asked = an_approval(owner="gate|b")
    first, second = describe_gates([gate("a"), gate("b", ends_in_s=-1)], [asked], NOW)
    assert (first["status"], first["holds"]) == ("running", [])
    assert (second["status"], second["holds"]) == ("gone", [asked.id])
    assert (first["differs"], second["differs"]) == ([], [])


def test_the_stores_clock_decides_who_lives() -> None:
    (told,) = describe_gates([gate("a", ends_in_s=50)], [], NOW, ahead_s=60)
    assert told["status"] == "gone"
    assert told["started_at"] < describe_gates([gate("a")], [], NOW)[0]["started_at"]


def test_whoever_differs_from_most_gates_with_the_same_job_is_named() -> None:
    told = describe_gates(
        [
            gate("a"),
            gate("b"),
            gate("c", policy_version="p2", version="2"),
            gate("d", server="other", policy_version="p9"),
            gate("e", ends_in_s=-1, version="0"),
        ],
        [],
        NOW,
    )
    assert [one["differs"] for one in told] == [[], [], ["policy", "version"], [], []]


def test_of_two_gates_the_one_that_started_first_differs() -> None:
    told = describe_gates([gate("new", started_at=NOW + 5, version="2"), gate("old")], [], NOW)
    assert [one["differs"] for one in told] == [[], ["version"]]


def test_approvals_name_the_gate_that_holds_them(tmp_path: Path, postgres: PostgresServer) -> None:
    location = StoreLocation(tmp_path, postgres.url())
    database = open_postgres(location.url)
    GateStore(database).renew("gate|a", now(), {"host": "h", "pid": 7}, now())
    store = a_store(location)
    at = now()
    store.ask(an_approval(owner="gate|a", created_at=at, expires_at=at + 60), at)
    store.close()

    (approval,), told = gather_shared(location)

    assert approval["gate"] == "h:7"
    assert [one["host"] for one in told["gates"]] == ["h"]
    assert "owner" not in told["gates"][0]
    database.close()


def test_a_store_that_cannot_be_reached_is_a_problem_and_no_error(tmp_path: Path) -> None:
    approvals, told = gather_shared(StoreLocation(tmp_path, "postgresql://gate:x@127.0.0.1:1/d"))
    assert approvals == told["gates"] == []
    assert "database d on 127.0.0.1" in told["problem"]
