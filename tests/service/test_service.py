"""The governance service: what is asked and answered, and who may ask it."""

import asyncio
import json
import os
import subprocess
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.governed import ended, hello, open_governance, question
from tests.support.waiting import PATIENCE_S, ending, read_line, run_async, wait_for

from thoughtgate.core.approval import Vote
from thoughtgate.errors import PeerError
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.clock import now
from thoughtgate.policy.inspection.marks import marks_for
from thoughtgate.service import service as module
from thoughtgate.service.service import Governance

POLICY = """\
schema: 1
default: forward
servers: {files: {expose: {block: [hidden]}, timeout: 9s}}
rules:
  - {tool: delete, action: approve, reason: it deletes}
  - {tool: ["format", "format *"], action: deny, reason: never}
"""

Act = Callable[[Governance], Awaitable[None]]


def _with(folder: Path, act: Act, profile: str | None = None) -> list[dict[str, Any]]:
    """Run against a service and return its record."""

    async def run() -> None:
        governance = open_governance(folder, POLICY, profile)
        await asyncio.wait_for(act(governance), 10)
        governance.governor.finish("SUCCEEDED", now())

    run_async(run())
    lines = (folder / "state" / "audit.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _types(record: list[dict[str, Any]]) -> list[str]:
    return [one["type"] for one in record]


def test_the_checks_are_loaded_when_the_first_shim_connects(tmp_path: Path) -> None:
    marks_for.cache_clear()

    async def act(governance: Governance) -> None:
        hello(governance)
        loading = [one for one in threading.enumerate() if one.name == "load the checks"]
        for thread in loading:
            thread.join(PATIENCE_S)
        hello(governance, "other")
        assert len([one for one in threading.enumerate() if one.name == "load the checks"]) == 0

    _with(tmp_path, act)
    assert marks_for.cache_info().currsize == 1


@pytest.mark.requirement("S000-F-016")
def test_the_answers_have_the_members_of_the_shared_types(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        session = hello(governance)
        allowed = governance.evaluate(question(session, "read"))
        denied = governance.evaluate(question(session, "format"))
        held = governance.evaluate(question(session, "delete"))
        members = {"decision", "task_id", "policy_id", "reason", "poll_interval_ms", "shutdown"}
        for answer in (allowed, denied, held):
            assert members <= answer.keys()
            assert answer["shutdown"] is False
        assert allowed["decision"] == "forward"
        assert (denied["decision"], denied["policy_id"]) == ("deny", "rules[1]")
        assert held["decision"] == "pending_approval"
        assert held["task_id"] == held["call_id"]
        assert held["poll_interval_ms"] > 0

    _with(tmp_path, act)


@pytest.mark.requirement("S000-F-016")
def test_a_caller_that_knows_only_the_shared_types_is_served(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        assert governance.evaluate(question(None, "read"))["decision"] == "forward"
        assert governance.evaluate(question(None, "format"))["decision"] == "deny"
        assert governance.heartbeat({"server_id": "files"}) == {"shutdown": False}
        passing = question(None, "x", method="ping", params=None)
        assert governance.evaluate(passing)["decision"] == "forward"
        assert len(governance.sessions) == 1

    _with(tmp_path, act)


def test_hello_tells_a_shim_all_it_needs(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        reply = governance.heartbeat({"server_id": "files", "hello": True})
        assert reply["profile"] == "production"
        assert reply["timeout_s"] == 9.0
        assert reply["max_held"] == 32
        assert (reply["log_format"], reply["log_level"]) == ("human", "info")
        assert reply["withheld"] == ["OUR_SECRET"]

    _with(tmp_path, act)


def test_lists_are_screened(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        entries = [{"name": "read"}, {"name": "hidden"}, "junk", {"name": 3}]
        body = question(hello(governance), "", direction="server_to_agent", method="tools/list")
        assert governance.evaluate({**body, "params": {"entries": entries}})["hidden"] == ["hidden"]

    assert "tools_list" in _types(_with(tmp_path, act))


def test_verdicts_are_on_record_before_they_are_given(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        governance.evaluate(question(hello(governance), "read"))
        lines = (tmp_path / "state" / "audit.jsonl").read_text("utf-8")
        assert "tool_call_decision" in lines

    _with(tmp_path, act)


def test_calls_of_a_run_that_names_nobody_are_local(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        governance.evaluate(question(hello(governance), "read"))

    (start,) = (one for one in _with(tmp_path, act) if one["type"] == "tool_call_start")
    assert start["call"]["principal"] == "local"


def test_development_forwards_and_says_what_would_have_been(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        answer = governance.evaluate(question(hello(governance), "format"))
        assert (answer["decision"], answer["outcome"]) == ("forward", "WOULD_BLOCK")
        assert (answer["tool"], answer["gate"]) == ("format", "rules")
        answer = governance.evaluate(question(hello(governance), "format ghp_abcdefghijklmnop"))
        assert answer["tool"].startswith("format ")
        assert "abcdefghijklmnop" not in answer["tool"]

    record = _with(tmp_path, act, "development")
    decision = next(one for one in record if one["type"] == "tool_call_decision")["decision"]
    assert decision["enforced"] is False


def test_a_session_cannot_speak_for_another(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        mine, theirs = hello(governance), hello(governance, "other")
        call_id = governance.evaluate(question(mine, "read"))["call_id"]
        held = governance.evaluate(question(mine, "delete"))["task_id"]
        foreign = {"server_id": "other", "session_id": theirs}
        governance.events({**foreign, "records": [ended(call_id)]})
        governance.withdraw({**foreign, "task_id": held, "reason": "mine now"})
        for wrong in ("", "guess", 3, theirs):
            with pytest.raises(PeerError):
                governance.evaluate({**question(mine, "read"), "session_id": wrong})
        assert call_id in governance.sessions[mine].open_calls
        answer = await governance.task(held, 0)
        assert answer is not None
        assert answer["status"] == "pending"

    record = _with(tmp_path, act)
    assert "tool_call_end" not in _types(record)[: _types(record).index("run_end")][:-2]


def test_session_ids_cannot_be_guessed(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        ids = {hello(governance) for _ in range(50)}
        assert len(ids) == 50
        assert all(len(one) >= 32 for one in ids)

    _with(tmp_path, act)


def test_a_decision_wakes_whoever_waits_for_it(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        held = governance.evaluate(question(hello(governance), "delete"))["task_id"]
        waiting = asyncio.ensure_future(governance.task(held, 30))
        await asyncio.sleep(0)
        store = open_store(str(tmp_path / "state"))
        (asked,) = store.listed("pending")
        store.vote(asked.id, [Vote("console:ann", approve=True, at=now())], now())
        await governance.settle()
        answer = await waiting
        assert answer is not None
        assert (answer["status"], answer["decision"]) == ("decided", "forward")
        assert await governance.task(held, 0) is None

    _with(tmp_path, act)


def test_a_shutdown_withdraws_what_was_asked_and_denies_what_comes(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        session = hello(governance)
        held = governance.evaluate(question(session, "delete"))["task_id"]
        waiting = asyncio.ensure_future(governance.task(held, 30))
        await asyncio.sleep(0)
        await governance.shut_down()
        answer = await waiting
        assert answer is not None
        assert (answer["decision"], answer["kind"]) == ("deny", "approval_withdrawn")
        assert governance.evaluate(question(session, "read"))["decision"] == "deny"
        assert governance.heartbeat({"server_id": "files", "session_id": session})["shutdown"]

    record = _with(tmp_path, act)
    decided = next(one for one in record if one["type"] == "approval_decided")
    assert decided["approval"]["outcome"] == "withdrawn"


def test_a_shim_that_left_has_its_calls_ended(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        session = hello(governance)
        for tool in ("read", "format", "delete"):
            governance.evaluate(question(session, tool))
        governance.heartbeat({"server_id": "files", "session_id": session, "bye": True})
        await asyncio.wait_for(governance.all_gone(), 10)
        assert governance.heartbeat({"server_id": "files", "session_id": session})["shutdown"]

    record = _with(tmp_path, act)
    ends = [one for one in record if one["type"] == "tool_call_end"]
    assert [(one["call"]["tool_name"], one["status"]) for one in ends] == [
        ("read", "ERROR"),
        ("format", "ERROR"),
        ("delete", "CANCELLED"),
    ]
    # Only what the shim was told to send may have reached the server; a person still had the last.
    classes = [one["error"]["class"] for one in ends]
    assert classes == ["unknown", "policy_block", "policy_block"]
    assert ends[0]["error"]["kind"] == "outcome_unknown"


def test_a_shim_whose_process_ended_is_gone_and_its_server_is_killed(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        session = hello(governance, pid=shim.pid)
        started = ["server_started", now(), {"server": {"pid": server}}]
        told = {"server_id": "files", "session_id": session, "records": [started]}
        governance.events(told)
        assert governance.sessions[session].group == server
        watching = asyncio.ensure_future(governance.watch())
        shim.kill()
        shim.wait(PATIENCE_S)
        await asyncio.wait_for(governance.all_gone(), 10)
        watching.cancel()

    command = ["sh", "-c", "setsid sleep 600 & echo $!; wait"]
    with ending(subprocess.Popen(command, stdout=subprocess.PIPE)) as shim:
        server = int(read_line(shim.stdout))
        wait_for(lambda: os.getpgid(server) == server, what="a group of its own")
        _with(tmp_path, act)
    wait_for(lambda: _state(server) == "Z", what="the end of the server")


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_a_flood_of_shims_and_of_events_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_SESSIONS", 3)
    monkeypatch.setattr(module, "MAX_OPEN_CALLS", 2)

    async def act(governance: Governance) -> None:
        session = hello(governance)
        for _ in range(2):
            hello(governance)
            governance.evaluate(question(session, "read"))
        with pytest.raises(PeerError, match="too many shims"):
            hello(governance)
        with pytest.raises(PeerError, match="too many calls"):
            governance.evaluate(question(session, "read"))
        records = [["message", now(), {}]] * (module.MAX_BATCH + 1)
        with pytest.raises(PeerError):
            governance.events({"server_id": "files", "session_id": session, "records": records})

    _with(tmp_path, act)


def test_one_bad_event_means_that_none_of_its_batch_counts(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        session = hello(governance)
        call_id = governance.evaluate(question(session, "read"))["call_id"]
        records = [ended(call_id), ["run_end", now(), {}]]
        with pytest.raises(PeerError):
            governance.events({"server_id": "files", "session_id": session, "records": records})
        assert call_id in governance.sessions[session].open_calls

    assert "tool_call_end" not in _types(_with(tmp_path, act))


def test_a_record_that_cannot_be_written_means_no(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        session = hello(governance)
        record = tmp_path / "state" / "audit.jsonl"
        saved = record.read_bytes()
        record.unlink()
        record.mkdir()
        answer = governance.evaluate(question(session, "delete"))
        assert (answer["decision"], answer["kind"]) == ("deny", "service_unavailable")
        assert await governance.task(answer["call_id"], 0) is None
        record.rmdir()
        record.write_bytes(saved)

    _with(tmp_path, act)


def test_decisions_that_cannot_be_recorded_together_mean_no_for_each(tmp_path: Path) -> None:
    async def act(governance: Governance) -> None:
        session = hello(governance)
        held = [governance.evaluate(question(session, "delete"))["task_id"] for _ in range(2)]
        store = open_store(str(tmp_path / "state"))
        for asked in store.listed("pending"):
            store.vote(asked.id, [Vote("console:ann", approve=True, at=now())], now())
        record = tmp_path / "state" / "audit.jsonl"
        saved = record.read_bytes()
        record.unlink()
        record.mkdir()
        await governance.settle()
        record.rmdir()
        record.write_bytes(saved)
        for call_id in held:
            answer = await governance.task(call_id, 0)
            assert answer is not None
            assert (answer["decision"], answer["kind"]) == ("deny", "service_unavailable")

    _with(tmp_path, act)
