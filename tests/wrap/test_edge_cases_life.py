"""Edge cases of seed 000, part three: processes that start, stop, crash and hang under ``wrap``."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from tests.support.commands import shim
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import PATIENCE_S, reap, wait_for
from tests.support.wraps import HOLD, Machine, entry, kind_of, pending, text_of

from thoughtgate.gate.run_file import RunFile, write_run_file


@pytest.fixture
def holding(tmp_path: Path) -> Machine:
    """A machine whose policy asks a person before notes are deleted."""
    return Machine(tmp_path, HOLD)


def _is_waiting(machine: Machine) -> list[dict[str, object]]:
    return list(pending(machine))


@pytest.mark.requirement("EC-STDIO-009")
def test_ec_stdio_009_a_server_that_cannot_start_is_told_to_the_agent(machine: Machine) -> None:
    original = machine.write_config({"sample": {"command": "no-such-server-anywhere"}})
    with machine.wrap() as run:
        run.open(greet=False)
        answer = run.order("ask", method="tools/list")["said"]
        assert kind_of(answer) == "server_start_failed"
        run.peer.wait_for_stderr("'no-such-server-anywhere' could not be started")
        assert run.finish() == 0
        run.assert_nothing_left()
    assert machine.config.read_bytes() == original
    assert machine.events("server_exited")[0]["server"]["state"] == "failed_to_start"


@pytest.mark.requirement("EC-STDIO-010")
def test_ec_stdio_010_a_server_that_crashes_ends_its_pending_calls(machine: Machine) -> None:
    machine.write_config({"sample": entry("--crash-on", "fail"), "other": entry()})
    with machine.wrap() as run:
        run.open()
        answer = run.call("fail")
        assert kind_of(answer) == "upstream_connection_failed"
        # The shim of the crashed server is gone; the agent and the other server are not.
        assert run.order("close")["said"] == 70
        assert text_of(run.call("echo", {"text": "on"}, server="other")) == "on"
        assert run.finish() == 0
        run.assert_nothing_left()
    assert machine.unfinished_calls() == set()


def test_a_call_whose_shim_was_killed_while_it_ran_is_recorded_as_unknown(machine: Machine) -> None:
    reached = machine.top / "reached"
    machine.write_sample("--log", str(reached))
    with machine.wrap() as run:
        run.open()
        run.tell_call("slow", {"seconds": 60})
        wait_for(lambda: "slow" in reached.read_text("utf-8"), what="the call at the server")
        os.kill(run.shims["sample"], signal.SIGKILL)
        ended = machine.wait_for_event("tool_call_end")
        run.finish()
    assert (ended["status"], ended["error"]["kind"]) == ("ERROR", "outcome_unknown")
    assert len(machine.events("tool_call_end")) == 1
    machine.assert_record_is_sound()


@pytest.mark.requirement("EC-STDIO-011")
def test_ec_stdio_011_an_agent_that_crashes_takes_its_servers_along(machine: Machine) -> None:
    original = machine.write_sample("--ignore-eof", "--spawn-grandchild")
    with machine.wrap() as run:
        run.open()
        os.kill(run.agent_pid, signal.SIGSEGV)
        assert run.wait() == 128 + signal.SIGSEGV
        run.assert_nothing_left()
    assert machine.config.read_bytes() == original
    assert machine.events()[-1]["run"]["status"] == "FAILED"


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "ident"),
    [
        pytest.param(signal.SIGTERM, 12, marks=pytest.mark.requirement("EC-STDIO-012")),
        pytest.param(signal.SIGINT, 13, marks=pytest.mark.requirement("EC-STDIO-013")),
    ],
)
def test_ec_stdio_012_013_a_signal_drains_stops_restores_and_passes_the_code_on(
    machine: Machine, number: int, ident: int
) -> None:
    # Nothing here stops by itself: not the agent, not the server, not the server's child.
    original = machine.write_sample("--ignore-eof", "--ignore-sigterm", "--spawn-grandchild")
    with machine.wrap(agent=machine.agent("--ignore", "SIGTERM", "--ignore", "SIGINT")) as run:
        run.open()
        run.signal(number)
        assert run.wait() == 128 + signal.SIGKILL
        run.assert_nothing_left()
    assert machine.config.read_bytes() == original
    assert machine.left_in(machine.project) == []
    assert machine.events()[-1]["run"]["status"] == "TERMINATED"
    machine.assert_record_is_sound()


@pytest.mark.requirement("EC-STDIO-021")
def test_ec_stdio_021_an_approval_nobody_can_be_asked_for_times_out(tmp_path: Path) -> None:
    policy = HOLD.replace("timeout: 60s", "timeout: 5s")
    machine = Machine(tmp_path, policy)
    machine.write_sample("--log", str(tmp_path / "reached"))
    with machine.wrap() as run:
        run.open()
        assert kind_of(run.call("delete_note", {"name": "draft"})) == "approval_timeout"
        assert run.finish() == 0
    assert "delete_note" not in (tmp_path / "reached").read_text("utf-8")


@pytest.mark.requirement("EC-STDIO-021")
def test_ec_stdio_021_development_approves_at_once(holding: Machine) -> None:
    holding.write_sample()
    with holding.wrap("--profile", "development") as run:
        run.open()
        assert text_of(run.call("delete_note", {"name": "draft"})) == "deleted draft"
        assert run.finish() == 0
    decision = holding.events("tool_call_decision")[0]["decision"]
    assert (decision["auto_approved"], decision["enforced"]) == (True, False)


@pytest.mark.requirement("EC-STDIO-022")
def test_ec_stdio_022_ctrl_c_withdraws_what_was_asked(holding: Machine) -> None:
    original = holding.write_sample("--log", str(holding.top / "reached"))
    with holding.wrap() as run:
        run.open()
        run.tell_call("delete_note", {"name": "draft"})
        (asked,) = wait_for(lambda: _is_waiting(holding), what="the question")
        run.signal(signal.SIGINT)
        run.wait()
        run.assert_nothing_left()
    late = holding.run("approvals", "approve", str(asked["id"]))
    assert late.returncode != 0
    assert "withdrawn" in late.stderr
    assert "delete_note" not in (holding.top / "reached").read_text("utf-8")
    assert holding.config.read_bytes() == original
    assert holding.unfinished_calls() == set()


@pytest.mark.requirement("EC-STDIO-031")
def test_ec_stdio_031_a_cancelled_call_withdraws_its_approval_and_is_passed_on(
    holding: Machine,
) -> None:
    holding.write_sample("--log", str(holding.top / "reached"))
    with holding.wrap() as run:
        run.open()
        params = {"name": "delete_note", "arguments": {"name": "draft"}}
        ident = run.order("send", method="tools/call", params=params)["said"]
        (asked,) = wait_for(lambda: _is_waiting(holding), what="the question")
        run.order("notify", method="notifications/cancelled", params={"requestId": ident})
        wait_for(lambda: not _is_waiting(holding), what="the withdrawal")
        assert holding.run("approvals", "approve", str(asked["id"])).returncode != 0
        assert run.order("ask", method="ping")["said"]["result"] == {}
        assert run.finish() == 0
    seen = (holding.top / "reached").read_text("utf-8")
    assert "delete_note" not in seen
    assert "notifications/cancelled" in seen
    ended = holding.events("tool_call_end")[0]
    assert (ended["status"], ended["error"]["kind"]) == ("CANCELLED", "approval_withdrawn")
    assert holding.events("approval_decided")[0]["approval"]["outcome"] == "withdrawn"


@pytest.mark.requirement("EC-STDIO-036")
def test_ec_stdio_036_a_shim_waits_for_a_service_that_is_not_there_yet(machine: Machine) -> None:
    original = machine.write_sample()
    with machine.wrap() as run:
        run.wait_until_ready()
        config = json.loads(run.order("text")["said"])["mcpServers"]["sample"]
        place = Path(config["args"][config["args"].index("--run") + 1])
        facts = RunFile(**json.loads(place.read_text("utf-8")))
        # The same run by a file whose port nobody listens on for a moment.
        early = str(place.with_name("early.json"))
        write_run_file(early, facts._replace(port=1))
        command = [early if word == str(place) else word for word in config["args"]]
        with StdioPeer([config["command"], *command], env=machine.env) as late:
            late.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            # Polling cannot be seen from here; being alive without an answer can.
            assert late.process.poll() is None
        with StdioPeer([config["command"], *config["args"]], env=machine.env) as late:
            os.kill(run.peer.pid, signal.SIGSTOP)
            late.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
            resume = threading.Timer(0.5, os.kill, (run.peer.pid, signal.SIGCONT))
            resume.start()
            assert late.receive()["result"] == {}
            resume.join(PATIENCE_S)
            late.finish()
        assert run.finish() == 0
    assert machine.config.read_bytes() == original


@pytest.mark.requirement("EC-STDIO-036")
def test_ec_stdio_036_a_shim_whose_service_is_gone_for_good_ends_with_a_hint(
    machine: Machine, tmp_path: Path
) -> None:
    place = str(tmp_path / "gone.json")
    write_run_file(place, RunFile("127.0.0.1", 1, "token", "production", _dead_process()))
    with StdioPeer(shim(["touch", str(tmp_path / "ran")], "--run", place), env=machine.env) as late:
        assert late.wait() == 2
        assert late.remaining_lines() == []
        late.wait_for_stderr("thoughtgate unwrap")
    assert not (tmp_path / "ran").exists()


def _dead_process() -> int:
    pid = os.posix_spawnp("true", ["true"], {})
    reap(pid)
    return pid


@pytest.mark.requirement("EC-STDIO-037")
def test_ec_stdio_037_a_hung_service_means_no_in_production(machine: Machine) -> None:
    machine.write_sample("--log", str(machine.top / "reached"))
    with machine.wrap() as run:
        run.open()
        os.kill(run.peer.pid, signal.SIGSTOP)
        began = time.monotonic()
        answer = run.call("echo", {"text": "unjudged"})
        assert kind_of(answer) == "service_unavailable"
        assert time.monotonic() - began < 8.0
        listed = run.order("ask", method="tools/list", params={})["said"]
        assert kind_of(listed) == "service_unavailable", "an empty list would say: no tools"
        os.kill(run.peer.pid, signal.SIGCONT)
        ended = machine.wait_for_event("tool_call_end")
        assert run.finish() == 0
    assert "unjudged" not in (machine.top / "reached").read_text("utf-8")
    assert ended["status"] == "CANCELLED"
    assert ended["error"]["message"] == "the verdict came too late: the shim did not wait for it"


@pytest.mark.requirement("EC-STDIO-037")
def test_ec_stdio_037_a_hung_service_is_passed_by_in_development(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap("--profile", "development") as run:
        run.open()
        os.kill(run.peer.pid, signal.SIGSTOP)
        assert text_of(run.call("echo", {"text": "on"})) == "on"
        run.peer.wait_for_stderr("WOULD_BLOCK: the governance service did not answer")
        os.kill(run.peer.pid, signal.SIGCONT)
        assert run.finish() == 0


@pytest.mark.requirement("EC-STDIO-041", "S000-F-019")
def test_ec_stdio_041_an_idle_shim_learns_of_the_shutdown_by_its_heartbeat(
    machine: Machine,
) -> None:
    machine.write_sample()
    # The agent does not stop, and so does not close the shim's input, until it is killed.
    with machine.wrap(agent=machine.agent("--ignore", "SIGTERM")) as run:
        run.open()
        run.signal(signal.SIGTERM)
        run.peer.wait_for_stderr("stopping: the run is over")
        run.wait()
        run.assert_nothing_left()


@pytest.mark.requirement("EC-STDIO-042")
def test_ec_stdio_042_a_crashed_service_ends_its_shims_at_once(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap(agent=machine.agent("--ignore", "SIGTERM")) as run:
        run.open()
        run.signal(signal.SIGKILL)
        run.peer.wait_for_stderr("stopping: the governance service is gone")
        run.wait()
        run.assert_nothing_left()


def test_a_wrap_stopped_by_ctrl_z_goes_on_where_it_was(machine: Machine) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        group = [run.peer.pid, run.agent_pid, *run.shims.values()]
        for pid in group:
            os.kill(pid, signal.SIGSTOP)
        for pid in reversed(group):
            os.kill(pid, signal.SIGCONT)
        assert text_of(run.call("echo", {"text": "back"})) == "back"
        assert run.finish() == 0


@pytest.mark.parametrize(
    "signals",
    [
        pytest.param([[0.0, "SIGINT"], [0.1, "SIGTERM"], [0.4, "SIGKILL"]], id="claude-code"),
        pytest.param([[0.0, "SIGTERM"]], id="gemini"),
        pytest.param([[0.0, "SIGTERM"], [0.005, "SIGKILL"]], id="copilot"),
        pytest.param([[0.0, "SIGKILL"]], id="at-once"),
    ],
)
def test_no_server_outlives_the_way_real_agents_stop_it(
    machine: Machine, signals: list[list[object]]
) -> None:
    machine.write_sample("--ignore-eof", "--ignore-sigterm", "--spawn-grandchild")
    with machine.wrap() as run:
        run.open()
        server = run.pid_of_server()
        run.order("stop", signals=signals)
        wait_for(lambda: not Path(f"/proc/{server}").exists(), what="the end of the server")
        assert run.finish() == 0
        run.assert_nothing_left()
    assert machine.unfinished_calls() == set()


def test_a_server_stopped_behind_its_shims_back_is_told_to_the_agent(machine: Machine) -> None:
    machine.write_sample("--never-answer", "echo")
    with machine.wrap() as run:
        run.open()
        run.tell_call("echo", {"text": "lost"})
        machine.wait_for_event("tool_call_decision")
        os.kill(run.pid_of_server(), signal.SIGTERM)
        assert kind_of(run.peer.receive()["said"]) == "upstream_connection_failed"
        assert run.finish() == 0
    assert machine.unfinished_calls() == set()


@pytest.mark.requirement("S000-F-009", "S000-F-010")
def test_the_agent_gets_the_users_terminal_and_its_exit_code_is_passed_on(
    machine: Machine,
) -> None:
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        assert run.order("environment", name="THOUGHTGATE_ACTIVE")["said"] == "1"
        run.tell("exit", code=37)
        assert run.wait() == 37
        run.assert_nothing_left()


def test_a_held_call_runs_once_a_person_says_so(holding: Machine) -> None:
    holding.write_sample()
    with holding.wrap() as run:
        run.open()
        run.tell_call("delete_note", {"name": "draft"})
        (asked,) = wait_for(lambda: _is_waiting(holding), what="the question")
        assert holding.run("approvals", "approve", str(asked["id"])).returncode == 0
        assert text_of(run.peer.receive()["said"]) == "deleted draft"
        assert run.finish() == 0
    assert "1 call, 0 refused, 1 held for approval" in run.stderr
