"""Putting policy, record and desk together from a loaded config."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.postgres import PostgresServer
from tests.support.waiting import wait_for

from thoughtgate.core.open_calls import CallRequest
from thoughtgate.core.record_events import TOOLS_LIST, Record
from thoughtgate.errors import ConfigError, RecordError, UsageError
from thoughtgate.gate.approvals.queue import ApprovalQueue
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import Loaded, load_configuration
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.open_governor import open_governor, record_place, refuse_stdout
from thoughtgate.gate.running_gates import announce, describe_governed
from thoughtgate.process.ancestry import read_process
from thoughtgate.record.split_writer import SHARE_BYTES
from thoughtgate.stores.engines.postgres import open_postgres
from thoughtgate.stores.gates import GateStore
from thoughtgate.stores.open_database import open_database
from thoughtgate.stores.process_owner import own_name
from thoughtgate.wire.methods import Named

BASE = "schema: 1\ndefault: forward\n"


def _load(tmp_path: Path, text: str = BASE) -> Loaded:
    path = tmp_path / "c.yaml"
    path.write_text(text)
    return load_configuration(str(path), dict(os.environ), str(tmp_path))


def test_the_flag_goes_before_the_config_and_the_config_before_the_default(tmp_path: Path) -> None:
    named = _load(tmp_path, BASE + "audit: {file: here.jsonl}\n")

    assert record_place(named, "/state", "/x/y") == "/x/y"
    assert record_place(named, "/state") == "/state/here.jsonl"
    elsewhere = _load(tmp_path, BASE + "audit: {file: /logs/here.jsonl}\n")
    assert record_place(elsewhere, "/state") == "/logs/here.jsonl"
    assert record_place(_load(tmp_path), "/state") == "/state/audit.jsonl"
    assert record_place(_load(tmp_path, BASE + "audit: {sink: stderr}\n"), "/s") == "stderr"
    starter = load_configuration(None, {"HOME": str(tmp_path)}, str(tmp_path))
    assert record_place(starter, "/state") == "/state/audit.jsonl"


def test_a_governor_records_where_it_was_told(tmp_path: Path) -> None:
    governor = open_governor(_load(tmp_path), {"SUB_RUN_ID": "r1"}, str(tmp_path))
    governor.start(1.0)
    governor.finish("SUCCEEDED", 2.0)
    lines = (tmp_path / "audit.jsonl").read_text().splitlines()

    assert [json.loads(line)["type"] for line in lines] == ["run_start", "run_end"]
    assert {json.loads(line)["run_id"] for line in lines} == {"r1"}


@pytest.mark.parametrize(("audit", "waits"), [("", 0), ("audit: {fsync: true}\n", 2)])
def test_the_disk_is_waited_for_only_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, audit: str, waits: int
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    governor = open_governor(_load(tmp_path, BASE + audit), {}, str(tmp_path))
    governor.start(1.0)
    governor.finish("SUCCEEDED", 2.0)

    assert len(synced) == waits


def test_with_a_desk_people_can_be_asked(tmp_path: Path) -> None:
    governor = open_governor(_load(tmp_path), {}, str(tmp_path))

    assert isinstance(governor.approvals, ApprovalQueue)
    governor.finish("SUCCEEDED", 2.0)


def test_a_signing_key_that_is_named_must_be_set(tmp_path: Path) -> None:
    loaded = _load(tmp_path, BASE + "audit: {sign_key_env: RECORD_KEY}\n")

    with pytest.raises(ConfigError, match="RECORD_KEY"):
        open_governor(loaded, {}, str(tmp_path))
    governor = open_governor(loaded, {"RECORD_KEY": "k" * 32}, str(tmp_path))
    governor.start(1.0)
    governor.finish("SUCCEEDED", 2.0)
    assert '"checkpoint"' in (tmp_path / "audit.jsonl").read_text()


def test_a_short_signing_key_is_refused_and_not_shown(tmp_path: Path) -> None:
    loaded = _load(tmp_path, BASE + "audit: {sign_key_env: RECORD_KEY}\n")

    with pytest.raises(ConfigError) as refused:
        open_governor(loaded, {"RECORD_KEY": "q" * 31}, str(tmp_path))
    said = str(refused.value)
    assert f"{loaded.path}: audit.sign_key_env: " in said
    assert "RECORD_KEY" in said
    assert "at least 32 random characters" in said
    assert "qq" not in said
    assert not (tmp_path / "audit.jsonl").exists()


@pytest.mark.promise("nothing-unrecorded")
def test_a_device_in_place_of_the_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").symlink_to("/dev/null")
    with pytest.raises(RecordError, match="must be a regular file"):
        open_governor(_load(tmp_path), {}, str(tmp_path))


@pytest.mark.promise("nothing-unrecorded")
@pytest.mark.parametrize("where", ["state/logs/own.jsonl", "elsewhere/own.jsonl"])
def test_a_device_is_refused_wherever_a_gate_kept_its_record_before(
    tmp_path: Path, where: str
) -> None:
    file, state = tmp_path / where, tmp_path / "state"
    loaded = _load(tmp_path, BASE + f"audit: {{file: {file}}}\n")
    governor = open_governor(loaded, {}, str(state))
    governor.start(1.0)
    governor.finish("SUCCEEDED", 2.0)
    file.unlink()
    file.symlink_to("/dev/null")

    with pytest.raises(RecordError, match="must be a regular file"):
        open_governor(loaded, {}, str(state))


@pytest.mark.promise("nothing-unrecorded")
@pytest.mark.parametrize("plant", [lambda path: path.symlink_to("/dev/null"), os.mkfifo])
def test_traffic_is_not_lost_in_a_device_or_a_pipe(
    tmp_path: Path, plant: Callable[[Path], object]
) -> None:
    plant(tmp_path / "audit.traffic.jsonl")
    governor = open_governor(_load(tmp_path), {}, str(tmp_path))
    governor.start(1.0)
    large = Record(TOOLS_LIST, 1.0, "s", "1", {"list": {"method": "x" * SHARE_BYTES}})

    governor.note(large)
    with pytest.raises(RecordError, match="must be a regular file"):
        governor.flush()


def test_a_device_that_the_config_names_gets_the_record(tmp_path: Path) -> None:
    loaded = _load(tmp_path, BASE + "audit: {file: /dev/null}\n")
    governor = open_governor(loaded, {}, str(tmp_path / "state"))
    governor.start(1.0)
    governor.finish("SUCCEEDED", 2.0)


def test_a_record_that_cannot_be_opened_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="no-dir"):
        open_governor(_load(tmp_path), {}, str(tmp_path), audit="/proc/no-dir/audit.jsonl")


@pytest.mark.parametrize(
    ("profile", "said"),
    [("production", "calls are refused"), ("development", "calls are still forwarded")],
)
def test_the_operator_is_told_what_becomes_of_calls_by_the_profile_in_force(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], profile: str, said: str
) -> None:
    other = "development" if profile == "production" else "production"
    governor = open_governor(_load(tmp_path, BASE + f"profile: {other}\n"), {}, str(tmp_path))
    governor.start(1.0)
    governor.judge.replace_policy(_load(tmp_path, BASE + f"profile: {profile}\n").policy)
    (tmp_path / "audit.jsonl").unlink()
    (tmp_path / "audit.jsonl").mkdir()
    governor.finish("FAILED", 2.0)

    assert capfd.readouterr().err.rstrip().endswith(said)


def test_the_record_may_go_anywhere_but_to_stdout(tmp_path: Path) -> None:
    path = tmp_path / "record"
    path.write_text("")
    refuse_stdout("stderr", "stderr")
    refuse_stdout(str(path), "")
    refuse_stdout(str(tmp_path / "missing"), "")
    refuse_stdout("/dev/null", "")
    with pytest.raises(UsageError, match="stdout carries MCP"):
        refuse_stdout("stdout", "stdout")
    with pytest.raises(ConfigError, match=r"audit\.sink"):
        refuse_stdout("stdout", "")


def test_a_shared_store_has_a_row_while_the_gate_runs(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.url()
    governor = open_governor(_load(tmp_path, f"{BASE}store: '{url}'\n"), {}, str(tmp_path))
    others = open_postgres(url)
    assert GateStore(others).listed() == []

    governor.start(now(), command="proxy", server="up")

    (row,) = GateStore(others).listed()
    assert others.is_alive(own_name())
    assert (row.facts["kind"], row.facts["server"], row.facts["held"]) == ("proxy", "up", 0)
    assert row.facts["policy_version"] == governor.policy.version
    assert row.facts["degraded"] == governor.degraded() == []
    assert url not in str(row.facts)
    governor.finish("SUCCEEDED", now())
    assert GateStore(others).listed() == []
    others.close()


def test_a_store_that_is_away_degrades_the_gate(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        server.start()
        text = f"{BASE}store: '{server.url()}'\n"
        governor = open_governor(_load(tmp_path, text), {}, str(tmp_path))
        governor.start(now(), command="proxy")
        server.stop()
        wait_for(lambda: governor.degraded() == ["store"], what="the degraded gate")
        governor.finish("SUCCEEDED", now())
    finally:
        server.remove()


def test_a_gate_with_a_store_of_its_own_has_no_row(tmp_path: Path) -> None:
    governor = open_governor(_load(tmp_path), {}, str(tmp_path))
    governor.start(now(), command="proxy")
    database = open_database(tmp_path)
    assert GateStore(database).listed() == []
    assert governor.degraded() == []
    database.close()
    governor.finish("SUCCEEDED", now())


WEBHOOK = """
approval:
  default: {channel: webhook, webhook: {url: 'http://127.0.0.1:9/', secret_env: HOOK_KEY}}
"""


@pytest.mark.promise("agent-cannot-approve")
@pytest.mark.parametrize("agent_started", [False, True], ids=["http", "stdio"])
def test_a_gate_that_a_wrapped_agent_starts_asks_nobody_through_channels(
    tmp_path: Path, *, agent_started: bool
) -> None:
    """The agent chose its secrets and proxies, and could answer in the name of the channel."""
    loaded = replace(_load(tmp_path, BASE + WEBHOOK), agent_started=agent_started)
    with pytest.raises(ConfigError, match="HOOK_KEY"):
        open_governor(loaded, {}, str(tmp_path))
    governor = open_governor(loaded, {"THOUGHTGATE_ACTIVE": "1"}, str(tmp_path))
    governor.finish("SUCCEEDED", 2.0)


def test_the_shims_of_an_agent_that_is_not_wrapped_have_channels(tmp_path: Path) -> None:
    presence = announce(str(tmp_path), "shim", **describe_governed(read_process(os.getpid())))
    assert presence is not None
    loaded = replace(_load(tmp_path, BASE + WEBHOOK), agent_started=True)
    with pytest.raises(ConfigError, match="HOOK_KEY"):
        open_governor(loaded, {}, str(tmp_path))
    presence.withdraw()


def _rotate(governor: Governor, tmp_path: Path, *, times: int) -> None:
    named = (Named("tool", "echo", {"text": "x" * 200}),)
    while not (tmp_path / f"audit.jsonl.{times:06}").exists():
        governor.rule(CallRequest("s", "1", "me", "tools/call", named, 10, "mcp_stdio", now()))
        governor.flush()


@pytest.mark.promise("traffic-cannot-erase-calls")
def test_a_gate_that_a_wrapped_agent_starts_removes_nothing_of_the_record(tmp_path: Path) -> None:
    loaded = _load(tmp_path, BASE + "audit: {rotate: {size: 64KiB, keep: 1}}\n")
    governor = open_governor(loaded, {"THOUGHTGATE_ACTIVE": "1"}, str(tmp_path))
    governor.start(now())
    _rotate(governor, tmp_path, times=2)
    governor.finish("SUCCEEDED", now())
    # The next run removes what the head of the record no longer needs.
    governor = open_governor(loaded, {"THOUGHTGATE_ACTIVE": "1"}, str(tmp_path))
    governor.start(now())
    _rotate(governor, tmp_path, times=4)
    governor.finish("SUCCEEDED", now())

    assert (tmp_path / "audit.jsonl.000001").exists()
