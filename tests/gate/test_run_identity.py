"""Who a run is, from the environment."""

import json
import os
from pathlib import Path

import pytest
from tests.support.http_gate import Gate
from tests.support.http_hub import serving_http
from tests.support.hub import sample

from thoughtgate.core.envelope import UNKNOWN
from thoughtgate.gate.run_identity import MAX_VALUE, host_id, identify_run, principal_of


@pytest.mark.requirement("ID-001")
def test_our_names_go_before_the_older_ones(tmp_path: Path) -> None:
    environ = {
        "SUB_RUN_ID": "old",
        "THOUGHTGATE_RUN_ID": "new",
        "SUB_AGENT_ID": "a",
        "SUB_CLIENT": "codex",
        "SUB_ENV": "prod",
        "SUB_PRINCIPAL": "me",
        "SUB_WORKLOAD": '{"namespace":"n"}',
    }
    run = identify_run(environ, "production", str(tmp_path))

    assert run.run_id == "new"
    assert (run.agent_id, run.client, run.env, run.principal) == ("a", "codex", "prod", "me")
    assert run.workload == {"namespace": "n"}
    assert run.proc_id == str(os.getpid())
    assert run.shim_id


def test_gates_that_share_a_run_id_name_their_calls_differently(tmp_path: Path) -> None:
    runs = [identify_run({"SUB_RUN_ID": "run-77"}, "production", str(tmp_path)) for _ in range(2)]

    assert {run.run_id for run in runs} == {"run-77"}
    assert runs[0].calls_prefix != runs[1].calls_prefix
    assert all(run.calls_prefix.startswith("run-77.") for run in runs)
    assert not identify_run({}, "production", str(tmp_path)).calls_prefix


@pytest.mark.parametrize(
    ("environ", "principal"),
    [
        ({}, "local"),
        ({"THOUGHTGATE_AGENT_ID": "coder"}, "coder"),
        ({"THOUGHTGATE_PRINCIPAL": "kim"}, "kim"),
        ({"THOUGHTGATE_PRINCIPAL": "kim", "THOUGHTGATE_AGENT_ID": "coder"}, "kim"),
    ],
)
def test_the_principal_is_named_or_the_agent_or_local(
    tmp_path: Path, environ: dict[str, str], principal: str
) -> None:
    run = identify_run(environ, "production", str(tmp_path))
    assert principal_of(run) == principal
    assert principal_of(run, by_agent=True) == "local"


@pytest.mark.parametrize(("agent", "principal"), [("coder", "coder"), ("", "local")])
def test_it_is_the_same_over_http(tmp_path: Path, agent: str, principal: str) -> None:
    environ = {"THOUGHTGATE_AGENT_ID": agent}
    for name in ("hub", "proxy"):
        (tmp_path / name).mkdir()
    with serving_http(tmp_path / "hub", {"one": sample()}, env=environ) as hub:
        hub.modern(1, "tools/call", {"name": "one.echo", "arguments": {"text": "x"}})
        records = (hub.state / "audit.jsonl").read_text("utf-8").splitlines()
        config = hub.config.read_text("utf-8")
    with Gate(tmp_path / "proxy", config, environ=environ) as gate:
        gate.call("echo", {"text": "x"})
        theirs = gate.records("tool_call_start")

    ours = [one for one in map(json.loads, records) if one["type"] == "tool_call_start"]
    assert [one["call"]["principal"] for one in (*ours, *theirs)] == [principal] * 2


@pytest.mark.requirement("ID-002")
@pytest.mark.parametrize("workload", ["", "not json", "[1]", "{}", "5"])
def test_what_is_missing_or_unknown_is_unknown(tmp_path: Path, workload: str) -> None:
    environ = {"SUB_CLIENT": "netscape", "SUB_ENV": "moon", "SUB_WORKLOAD": workload}
    run = identify_run(environ, "development", str(tmp_path))

    assert (run.agent_id, run.client, run.env) == (UNKNOWN,) * 3
    assert run.workload is None
    assert run.run_id
    assert run.profile == "development"


def test_values_are_cut_and_made_text(tmp_path: Path) -> None:
    run = identify_run(
        {"SUB_AGENT_ID": "x" * 1000, "SUB_RUN_ID": "a\udc80b"}, "production", str(tmp_path)
    )

    assert run.agent_id == "x" * MAX_VALUE
    assert run.run_id == "a?b"


def test_the_host_keeps_its_id(tmp_path: Path) -> None:
    first = host_id(str(tmp_path))

    assert first
    assert host_id(str(tmp_path)) == first
    assert (tmp_path / "host-id").stat().st_mode & 0o777 == 0o600


def test_a_host_id_is_never_empty(tmp_path: Path) -> None:
    # As a gate of an earlier version leaves it between its creation and its content.
    (tmp_path / "host-id").touch()

    assert host_id(str(tmp_path))


def test_a_host_without_a_place_to_keep_it_gets_an_id_all_the_same(tmp_path: Path) -> None:
    assert host_id(str(tmp_path / "missing"))


def test_a_host_id_that_is_no_text_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "host-id").write_bytes(b"\xff\xfe")

    assert host_id(str(tmp_path)).isascii()
