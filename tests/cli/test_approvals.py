"""``thoughtgate approvals`` as people and scripts run it: the real command, a real store."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.approvals import CALL, a_desk, a_store, held
from tests.support.commands import thoughtgate
from tests.support.waiting import PATIENCE_S, read_line, read_some, wait_for
from tests.support.warm_command import run_warm

from thoughtgate.channels.terminal import identity
from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import Approval
from thoughtgate.gate.approvals.queue import ApprovalQueue
from thoughtgate.gate.running_gates import announce, describe_governed
from thoughtgate.process.ancestry import read_process
from thoughtgate.stores.approvals import ApprovalStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ApprovalStore]:
    opened = a_store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def desk(store: ApprovalStore) -> ApprovalQueue:
    """A gate with one call that waits: approval ``a1``."""
    workflows = {
        "default": WorkflowSettings("default"),
        "two": WorkflowSettings("two", required=2),
        "bob": WorkflowSettings("bob", approvers=("terminal:bob",)),
    }
    made = a_desk(store, workflows)
    assert made.ask("run.1", held(), "default", time.time()) is None
    return made


def environment(state: Path, **extra: str) -> dict[str, str]:
    return {**os.environ, "THOUGHTGATE_STATE_DIR": str(state), **extra}


def run(state: Path, *args: str, **extra: str) -> subprocess.CompletedProcess[str]:
    return run_warm("approvals", *args, env=environment(state, **extra))


def run_below(state: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run the command as a child of this process, where who its ancestors are matters."""
    return subprocess.run(
        thoughtgate("approvals", *args),
        env=environment(state),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def run_json(state: Path, *args: str) -> Any:
    done = run(state, *args, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def failure(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    return done.stderr


def test_nothing_waits_at_first(tmp_path: Path) -> None:
    state = tmp_path / "fresh"
    assert run_json(state, "list") == []
    done = run(state, "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no pending approval requests" in done.stderr
    assert run_json(state, "grants", "list") == []
    assert "no remembered approvals" in run(state, "grants", "list").stderr


def test_what_waits_is_listed_for_scripts(desk: ApprovalQueue, tmp_path: Path) -> None:
    (shown,) = run_json(tmp_path, "list")
    wanted = {
        "id": "a1",
        "status": "pending",
        "server": "files",
        "tool": "delete_file",
        "arguments": {"path": "/tmp/x"},
        "workflow": "default",
        "rule": "rules[0]",
        "reason": "it deletes",
        "principal": "local",
    }
    assert {key: shown[key] for key in wanted} == wanted
    assert shown["expires_at"] > shown["created_at"]
    assert desk.pending == 1


@pytest.mark.usefixtures("desk")
def test_what_waits_is_shown_to_people(tmp_path: Path) -> None:
    listed = run(tmp_path, "list").stdout
    assert "a1" in listed
    assert "delete_file" in listed
    shown = run(tmp_path, "show", "a1").stdout
    assert "delete_file on files" in shown
    assert run_json(tmp_path, "show", "a1")["id"] == "a1"


def test_an_approval_reaches_the_waiting_gate(desk: ApprovalQueue, tmp_path: Path) -> None:
    done = run(tmp_path, "approve", "a1", "--reason", "fine by me")
    assert (done.returncode, done.stdout) == (0, "Approved a1: delete_file on files.\n")
    ((call_id, decision),) = desk.poll(time.time())
    assert (call_id, decision.approved) == ("run.1", True)
    assert (decision.by, decision.channel, decision.reason) == (
        identity(),
        "terminal",
        "fine by me",
    )
    assert desk.use("run.1") is None
    assert "already used" in failure(run(tmp_path, "approve", "a1"))
    assert run_json(tmp_path, "list") == []
    (used,) = run_json(tmp_path, "list", "--all")
    assert (used["status"], used["decided_by"]) == ("used", identity())


def test_a_refusal_reaches_the_waiting_gate(desk: ApprovalQueue, tmp_path: Path) -> None:
    shown = run_json(tmp_path, "deny", "a1", "--reason", "not today")
    assert (shown["status"], shown["votes"][0]["reason"]) == ("denied", "not today")
    ((_, decision),) = desk.poll(time.time())
    assert (decision.kind, decision.reason) == ("approval_rejected", "not today")
    assert "already denied" in failure(run(tmp_path, "approve", "a1"))
    assert "already denied" in failure(run(tmp_path, "deny", "a1", "--reason", "again"))


def test_an_answer_that_comes_too_late_says_so(
    store: ApprovalStore, desk: ApprovalQueue, tmp_path: Path
) -> None:
    desk.withdraw("run.1", "the caller cancelled", time.time())
    assert "the caller cancelled" in failure(run(tmp_path, "approve", "a1"))
    late = a_desk(store, {"default": WorkflowSettings("default", timeout_s=0.001)})
    late.ask("run.2", held(), "default", time.time())
    assert "expired" in failure(run(tmp_path, "approve", "a2"))


def test_an_unknown_id_says_so(tmp_path: Path) -> None:
    for command in ("show", "approve", "deny"):
        assert "no approval zzz" in failure(run(tmp_path, command, "zzz"))
    assert "no grant zzz" in failure(run(tmp_path, "grants", "revoke", "zzz"))


def test_somebody_who_is_no_approver_is_refused(desk: ApprovalQueue, tmp_path: Path) -> None:
    desk.ask("run.2", held(), "bob", time.time())
    assert "not among the approvers" in failure(run(tmp_path, "approve", "a2"))
    assert desk.poll(time.time()) == []


def test_one_of_two_is_counted(desk: ApprovalQueue, tmp_path: Path) -> None:
    desk.ask("run.2", held(), "two", time.time())
    done = run(tmp_path, "approve", "a2")
    assert done.stdout == "Vote counted for a2: 1 of 2 for delete_file on files.\n"
    assert "already approved" in failure(run(tmp_path, "approve", "a2"))
    assert desk.poll(time.time()) == []


def test_what_the_gate_that_died_had_asked_is_not_listed(
    store: ApprovalStore, tmp_path: Path
) -> None:
    gone = a_desk(store, owner=an_owner_that_died())
    gone.ask("run.1", held(), "default", time.time())
    assert "the gate that asked is gone" in failure(run(tmp_path, "approve", "a1"))
    assert run_json(tmp_path, "list") == []


def an_owner_that_died() -> str:
    code = "from thoughtgate.stores.process_owner import own_name; print(own_name())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    return done.stdout.strip()


# Remembering.


def test_an_approval_is_for_once_unless_more_is_asked(desk: ApprovalQueue, tmp_path: Path) -> None:
    run(tmp_path, "approve", "a1", "--remember", "once")
    desk.poll(time.time())
    assert desk.ask("run.2", held(), "default", time.time()) is None
    assert run_json(tmp_path, "grants", "list") == []


def test_a_remembered_approval_is_listed_used_and_revoked(
    desk: ApprovalQueue, tmp_path: Path
) -> None:
    run(tmp_path, "approve", "a1", "--remember", "2h", "--scope", "tool")
    other = held(CALL._replace(arguments={"path": "/tmp/other"}, session="s2"))
    decision = desk.ask("run.2", other, "default", time.time())
    assert decision is not None
    assert decision.approved
    (grant,) = run_json(tmp_path, "grants", "list")
    assert (grant["scope"], grant["lifetime"], grant["uses"]) == ("tool", "until", 1)
    assert grant["id"] in run(tmp_path, "grants", "list").stdout
    done = run(tmp_path, "grants", "revoke", grant["id"])
    assert done.stdout == f"Revoked {grant['id']}.\n"
    assert desk.ask("run.3", other, "default", time.time()) is None


def test_a_late_answer_can_allow_the_next_call(desk: ApprovalQueue, tmp_path: Path) -> None:
    desk.withdraw("run.1", "the caller cancelled", time.time())
    assert "Granted as" in run(tmp_path, "grants", "add", "a1").stdout
    decision = desk.ask("run.2", held(), "default", time.time())
    assert decision is not None
    assert decision.approved
    assert desk.ask("run.3", held(), "default", time.time()) is None
    grant = run_json(tmp_path, "grants", "add", "a1", "--remember", "session")
    assert run_json(tmp_path, "grants", "revoke", grant["id"])["session"] == "run/s1"


@pytest.mark.usefixtures("desk")
def test_a_wish_that_makes_no_sense_is_refused_and_decides_nothing(
    store: ApprovalStore, tmp_path: Path
) -> None:
    assert "--remember" in failure(run(tmp_path, "approve", "a1", "--remember", "forever"))
    assert "--scope" in failure(run(tmp_path, "approve", "a1", "--scope", "all"))
    assert "30 days" in failure(run(tmp_path, "approve", "a1", "--remember", "60d"))
    found = store.get("a1")
    assert isinstance(found, Approval)
    assert found.status == "pending"


# Who may not.


@pytest.mark.parametrize("args", [("approve", "a1"), ("deny", "a1"), ("grants", "add", "a1")])
def test_a_shell_inside_a_governed_agent_cannot_answer(
    desk: ApprovalQueue, tmp_path: Path, args: tuple[str, ...]
) -> None:
    assert "another terminal" in failure(run(tmp_path, *args, THOUGHTGATE_ACTIVE="1"))
    assert desk.poll(time.time()) == []


def test_a_shell_that_took_the_mark_off_cannot_answer_either(
    desk: ApprovalQueue, tmp_path: Path
) -> None:
    presence = announce(str(tmp_path), "wrap", **describe_governed(read_process(os.getpid())))
    assert presence is not None
    assert "another terminal" in failure(run_below(tmp_path, "approve", "a1"))
    presence.withdraw()
    assert desk.poll(time.time()) == []
    assert run_below(tmp_path, "approve", "a1").returncode == 0


def test_a_state_directory_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said = failure(run(tmp_path / "file", "list", "--json"))
    assert str(tmp_path / "file") in said
    assert "THOUGHTGATE_STATE_DIR" in said
    assert "Errno" not in said


# Watching.


def test_watching_prints_a_line_a_change(desk: ApprovalQueue, tmp_path: Path) -> None:
    process = subprocess.Popen(
        thoughtgate("approvals", "watch", "--json"),
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert json.loads(read_line(process.stdout))["status"] == "pending"
        run(tmp_path, "deny", "a1")
        assert json.loads(read_line(process.stdout))["status"] == "denied"
        assert len(wait_for(lambda: desk.poll(time.time()))) == 1
    finally:
        process.terminate()
        process.communicate(timeout=10)


@pytest.mark.usefixtures("desk")
def test_watching_without_a_terminal_prints_plain_lines(tmp_path: Path) -> None:
    process = subprocess.Popen(
        thoughtgate("approvals", "watch"),
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert read_line(process.stdout) == "a1 pending delete_file on files\n"
    finally:
        process.terminate()
        process.communicate(timeout=10)


def test_watching_in_a_terminal_takes_answers(desk: ApprovalQueue, tmp_path: Path) -> None:
    near, far = pty.openpty()
    process = subprocess.Popen(
        thoughtgate("approvals", "watch"),
        env=environment(tmp_path),
        stdin=far,
        stdout=far,
        stderr=subprocess.DEVNULL,
    )
    try:
        seen = ""
        deadline = time.monotonic() + PATIENCE_S
        while "press Enter: " not in seen:
            assert time.monotonic() < deadline, seen
            if select.select([near], [], [], 0.1)[0]:
                seen += read_some(near).decode()
        assert "delete_file on files" in seen
        os.write(near, b"y\n")
        ((_, decision),) = wait_for(lambda: desk.poll(time.time()))
        assert decision.approved
    finally:
        process.terminate()
        process.wait(10)
        os.close(near)
        os.close(far)


@pytest.mark.promise("approver-sees-every-character")
def test_show_prints_every_character_of_long_arguments(
    tmp_path: Path, store: ApprovalStore, desk: ApprovalQueue
) -> None:
    arguments = {"text": "x" * 100_000 + "\u202eend"}
    call = CALL._replace(arguments=arguments)
    assert desk.ask("run.2", held(call), "default", time.time()) is None
    ident = next(each.id for each in store.listed() if each.folded)

    printed = run(tmp_path, "show", ident).stdout
    assert "x" * 60_000 in printed
    assert printed.rstrip().endswith('[U+202E]end"}')
    shown = json.loads(run(tmp_path, "show", ident, "--json").stdout)
    assert shown["arguments"] == arguments
    assert shown["arguments_folded"] is False
