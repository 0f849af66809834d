"""``thoughtgate wrap``: its arguments, its words, its exit codes."""

import os
from pathlib import Path

import pytest
from tests.support.log_lines import verdicts
from tests.support.wraps import Machine, entry

from thoughtgate.gate.running_gates import announce, describe_governed
from thoughtgate.process.ancestry import read_process


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_help_names_the_agent_and_gives_examples(machine: Machine) -> None:
    done = machine.run("wrap", "--help")

    assert done.returncode == 0
    assert "thoughtgate wrap -- claude" in done.stdout
    for flag in ("--agent-type", "--config-path", "--thoughtgate-config", "--profile", "--dry-run"):
        assert flag in done.stdout


@pytest.mark.requirement("S000-F-001")
def test_a_command_that_is_no_known_agent_gets_the_list_of_types(machine: Machine) -> None:
    done = machine.run("wrap", "--", "some-editor")

    assert done.returncode == 2
    assert "claude-code" in done.stderr
    assert "--agent-type" in done.stderr


@pytest.mark.parametrize(
    "flags", [["--profile", "lax"], ["--agent-type", "emacs"], ["--governance-port", "70000"]]
)
def test_a_wrong_option_is_a_usage_error(machine: Machine, flags: list[str]) -> None:
    machine.write_sample()

    assert machine.wrap_once(*flags).returncode == 2


def test_a_custom_agent_needs_to_say_where_its_config_is(machine: Machine) -> None:
    done = machine.run("wrap", "--agent-type", "custom", "--", "true")

    assert done.returncode == 2
    assert done.stderr.startswith("Error: --agent-type custom needs --config-path FILE")


def test_no_command_is_a_usage_error(machine: Machine) -> None:
    assert machine.run("wrap").returncode == 2


@pytest.mark.parametrize("flag", ["-c", "--config", "--thoughtgate-config"])
def test_our_own_config_can_be_named(machine: Machine, flag: str) -> None:
    machine.write_sample()
    other = machine.top / "other.yaml"
    other.write_text("schema: 1\ndefault: deny\nprofile: development\n", "utf-8")

    done = machine.wrap_once(flag, str(other))

    assert done.returncode == 0
    assert f"policy    {other} (-c), development" in done.stderr


def test_a_missing_config_of_ours_stops_everything(machine: Machine) -> None:
    machine.write_sample()

    done = machine.wrap_once("-c", "nowhere.yaml", agent=["touch", str(machine.top / "ran")])

    assert done.returncode == 1
    assert "nowhere.yaml" in done.stderr
    assert not (machine.top / "ran").exists()


def test_nothing_of_ours_is_on_stdout(machine: Machine) -> None:
    machine.write_sample()

    assert machine.wrap_once(agent=["echo", "the agent's own"]).stdout == "the agent's own\n"


def test_the_agents_own_options_are_left_to_it(machine: Machine) -> None:
    machine.write_sample()

    done = machine.wrap_once(agent=["echo", "--help", "--strict", "--", "x"])

    assert done.stdout == "--help --strict -- x\n"


@pytest.mark.parametrize(
    ("profile", "word"), [("production", "deny"), ("development", "WOULD_BLOCK")]
)
def test_verbose_logs_each_verdict_and_result_once(
    machine: Machine, profile: str, word: str
) -> None:
    machine.policy.write_text(
        "schema: 1\ndefault: forward\nrules: [{tool: add, action: deny}]\n", "utf-8"
    )
    machine.write_sample()
    with machine.wrap("--verbose", "--profile", profile) as run:
        run.open()
        run.call("echo", {"text": "x"})
        run.call("add", {"a": 1, "b": 2})
        assert run.finish() == 0

    lines = run.stderr.splitlines()
    judged = [line for line in lines if "governance_decision=" in line]
    assert len(judged) == 2
    assert "info  call judged server_id=sample" in judged[0]
    assert "message_id=2 latency_us=" in judged[0]
    assert f"governance_decision={word}" in judged[1]
    assert sum("debug call ended" in line for line in lines) == 2
    assert sum("WOULD_BLOCK" in line for line in lines) == (profile == "development"), "not twice"


def test_development_says_what_would_be_masked_and_masks_nothing(machine: Machine) -> None:
    secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    machine.policy.write_text(
        "schema: 1\ndefault: deny\nrules: [{tool: echo, action: forward, redact: true}]\n", "utf-8"
    )
    machine.write_sample()
    with machine.wrap("--profile", "development") as run:
        run.open()
        assert secret in str(run.call("echo", {"text": secret}))
        assert run.finish() == 0
    assert "WOULD_REDACT" in run.stderr
    assert secret not in run.stderr
    (found,) = machine.events("content_found")
    assert (found["content"]["outcome"], found["content"]["enforced"]) == ("WOULD_REDACT", False)
    assert secret not in machine.record.read_text("utf-8")


@pytest.mark.parametrize("flags", [(), ("--verbose",)])
def test_the_service_logs_as_json_when_the_config_wants_it(
    machine: Machine, flags: tuple[str, ...]
) -> None:
    machine.policy.write_text("schema: 1\ndefault: deny\ntelemetry: {log_format: json}\n", "utf-8")
    machine.write_sample()
    with machine.wrap(*flags) as run:
        run.open()
        run.call("echo", {"text": "x"})
        assert run.finish() == 0

    said = verdicts(run.stderr, "wrap")
    assert [(line["server_id"], line["governance_decision"]) for line in said] == [
        ("sample", "deny")
    ]
    assert "BLOCK: sample: 'echo'" not in run.stderr
    assert "thoughtgate: " not in run.stderr


def test_a_dry_run_names_what_would_stay_outside(machine: Machine) -> None:
    machine.write_config({"sample": entry(), "far": {"url": "https://example.com/mcp"}})

    done = machine.wrap_once("--dry-run", "--no-remote")

    assert done.returncode == 0
    assert "NOT GOVERNED: far" in done.stderr
    assert "NOT GOVERNED" not in done.stdout


def test_a_dry_run_writes_no_secret_into_a_command_line(machine: Machine) -> None:
    headers = {"Authorization": "Bearer hush"}
    machine.write_config({"far": {"url": "https://example.com/mcp?key=hush", "headers": headers}})

    done = machine.wrap_once("--dry-run")

    assert done.returncode == 0
    added = [line for line in done.stdout.splitlines() if line.startswith("+")]
    assert any('"proxy"' in line for line in added)
    assert not any("hush" in line for line in added)
    assert not machine.state.exists()


@pytest.mark.promise("agent-cannot-approve")
def test_an_agent_that_wraps_another_gets_no_link_to_a_console(machine: Machine) -> None:
    machine.write_sample()
    words = ["--agent-type", "custom", "--config-path", str(machine.config), "--", "true"]
    assert "/login/" in machine.run_below("wrap", *words).stderr
    governed = describe_governed(read_process(os.getpid()))
    presence = announce(str(machine.state), "shim", **governed)
    assert presence is not None
    done = machine.run_below("wrap", *words)
    presence.withdraw()
    assert done.returncode == 0, done.stderr
    assert "/login/" not in done.stderr


def test_what_a_launcher_sets_decides_which_files_are_governed(machine: Machine) -> None:
    other = machine.top / "other"
    machine.write_config({"sample": entry()}, path=other / ".cursor" / "mcp.json")
    machine.write_config({"wrong": entry()}, path=machine.home / ".cursor" / "mcp.json")

    done = machine.run("wrap", "--dry-run", "--", "nice", "env", f"HOME={other}", "cursor")

    assert done.returncode == 0, done.stderr
    assert str(other / ".cursor" / "mcp.json") in done.stdout
    assert "wrong" not in done.stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["docker", "run", "-it", "image", "claude"], "run 'thoughtgate wrap' as the command of"),
        (["flatpak", "run", "com.visualstudio.code"], "cannot be reached from here"),
        (["sudo", "-u", "nobody", "claude"], "sudo -u nobody thoughtgate wrap -- AGENT"),
    ],
)
def test_an_agent_out_of_reach_is_refused_by_name(
    machine: Machine, command: list[str], words: str
) -> None:
    machine.write_config({"sample": entry()}, path=machine.home / ".claude.json")
    done = machine.run("wrap", "--", *command)
    assert done.returncode == 2
    assert words in done.stderr
