"""Real agents run whole sessions under ``wrap``: a model on loopback has them call governed tools."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.support.model_server import ModelServer
from tests.support.real_agents import QUIET, program, run_agent, wrap_agent
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for
from tests.support.wraps import Machine, entry

pytestmark = pytest.mark.long

SLOW_S = 180.0
"""Real agents start in seconds; on a busy machine it may be many."""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    made = Machine(tmp_path)
    # The usual place of the state, because the agents below filter what would move it.
    made.state = made.home / ".local" / "state" / "thoughtgate"
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x", "--allow-empty"]):
        _git(made, *command)
    return made


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def _git(machine: Machine, *args: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(
        ["git", "-C", str(machine.project), *own, *args],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout


@dataclass(frozen=True)
class Session:
    """How one agent is set up and told to run one prompt."""

    name: str
    set_up: Callable[[Machine, ModelServer], dict[str, str]]
    """Writes the agent's files; returns variables for it."""
    args: tuple[str, ...]
    flags: tuple[str, ...] = ()

    def start(self, machine: Machine, variables: dict[str, str]) -> StdioPeer:
        """Start the agent under ``wrap``."""
        peer = wrap_agent(machine, self.name, *self.args, flags=self.flags, variables=variables)
        peer.close_stdin()  # some agents read the rest of the prompt from there
        return peer


def _claude(machine: Machine, model: ModelServer) -> dict[str, str]:
    machine.write_config({"usr": entry()}, path=machine.home / ".claude.json")
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "none",
        "ENABLE_TOOL_SEARCH": "false",
        "IS_SANDBOX": "1",
    }


CLAUDE = Session("claude", _claude, ("-p", "hi", "--allowedTools", "mcp__usr"))


def _codex(machine: Machine, model: ModelServer) -> dict[str, str]:
    sample = entry()
    text = f"""\
model = "fake"
model_provider = "fake"
approval_policy = "never"
[model_providers.fake]
name = "fake"
base_url = "{model.url}/v1"
wire_api = "responses"
[mcp_servers.usr]
command = {json.dumps(sample["command"])}
args = {json.dumps(sample["args"])}
required = true
"""
    path = machine.home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(text, "utf-8")
    return {}


CODEX = Session("codex", _codex, ("exec", "--dangerously-bypass-approvals-and-sandbox", "hi"))


def _opencode(machine: Machine, model: ModelServer, name: str = "opencode") -> dict[str, str]:
    options = {"baseURL": f"{model.url}/v1", "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": options}
    sample = entry()
    values = {
        "$schema": "https://opencode.ai/config.json",
        "model": "fake/fake",
        "small_model": "fake/fake",
        "provider": {"fake": {**provider, "models": {"fake": {"name": "fake"}}}},
        "mcp": {"usr": {"type": "local", "command": [sample["command"], *sample["args"]]}},
    }
    (machine.project / f"{name}.json").write_text(json.dumps(values, indent=2), "utf-8")
    # Two first starts at once can wait for each other's database for minutes.
    subprocess.run(
        [program(name), "session", "list"],
        cwd=machine.home,
        env={**QUIET, "HOME": str(machine.home), "PATH": "/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SLOW_S,
        check=True,
    )
    kind = name.upper()
    return {f"{kind}_DISABLE_MODELS_FETCH": "1", f"{kind}_DISABLE_DEFAULT_PLUGINS": "1"}


OPENCODE = Session("opencode", _opencode, ("run", "hi"))
KILO = Session("kilo", partial(_opencode, name="kilo"), ("run", "--auto", "hi"))


def _qwen(machine: Machine, model: ModelServer) -> dict[str, str]:
    path = machine.home / ".qwen" / "settings.json"
    path.parent.mkdir()
    values = {"mcpServers": {"usr": entry()}, "tools": {"toolSearch": {"enabled": False}}}
    path.write_text(json.dumps(values), "utf-8")
    return {
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "OPENAI_API_KEY": "none",
        "OPENAI_MODEL": "fake",
    }


QWEN = Session("qwen", _qwen, ("--auth-type", "openai", "-y", "-p", "hi"))


def _gemini(machine: Machine, model: ModelServer) -> dict[str, str]:
    machine.write_config({"usr": entry()}, path=machine.project / ".gemini" / "settings.json")
    path = machine.home / ".gemini" / "settings.json"
    path.parent.mkdir()
    own = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    path.write_text(json.dumps(own), "utf-8")
    return {"GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_API_KEY": "none"}


def _copilot(machine: Machine, model: ModelServer) -> dict[str, str]:
    usr = {"type": "local", "tools": ["*"], **entry()}
    machine.write_config({"usr": usr}, path=machine.project / ".mcp.json")
    folders = {"trustedFolders": [str(machine.project)], "trusted_folders": [str(machine.project)]}
    (machine.home / ".copilot").mkdir()
    for name in ("config.json", "settings.json"):
        (machine.home / ".copilot" / name).write_text(json.dumps(folders), "utf-8")
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{model.url}/v1",
        "COPILOT_OFFLINE": "true",
        "COPILOT_MODEL": "fake",
    }


GEMINI = Session("gemini", _gemini, ("-m", "gemini-2.5-flash", "-y", "-p", "hi"))
COPILOT = Session("copilot", _copilot, ("--no-auto-update", "--allow-all-tools", "-p", "hi"))
SESSIONS = [CLAUDE, CODEX, OPENCODE, KILO, QWEN, COPILOT]
REWRITTEN = [replace(one, flags=("--rewrite",)) for one in (GEMINI, COPILOT)]


def _end(peer: StdioPeer) -> str:
    lines = peer.remaining_lines(SLOW_S)
    said = b"\n".join(lines).decode("utf-8", "replace") + peer.stderr
    assert peer.finish(SLOW_S) == 0, said
    peer.assert_nothing_left()
    return said


def _commit(machine: Machine) -> None:
    _git(machine, "add", "-A")
    _git(machine, "commit", "-qm", "config", "--allow-empty")


def _assert_clean(machine: Machine) -> None:
    assert _git(machine, "status", "--porcelain") == ""
    _git(machine, "add", "-A")
    assert _git(machine, "diff", "--cached", "--name-only") == ""


def _wait_for_tools(model: ModelServer, sessions: int) -> None:
    """Wait until so many sessions have offered the tools of the sample server."""

    def offers() -> bool:
        tools = [one for one in model.offered if any(name.endswith("echo") for name in one)]
        return len(tools) >= sessions

    wait_for(offers, SLOW_S, what="the tools of all sessions")


@pytest.mark.parametrize("session", SESSIONS, ids=lambda one: one.name)
def test_two_sessions_at_once_call_tools_through_the_gate_and_touch_no_file(
    machine: Machine, model: ModelServer, session: Session
) -> None:
    variables = session.set_up(machine, model)
    _commit(machine)
    model.may_answer.clear()

    with session.start(machine, variables) as one, session.start(machine, variables) as other:
        _wait_for_tools(model, 2)
        _assert_clean(machine)
        model.may_answer.set()
        said = [_end(one), _end(other)]

    _assert_clean(machine)
    assert all("configured 1 server: usr" in text for text in said), said
    ends = [(end["call"]["tool_name"], end["status"]) for end in machine.events("tool_call_end")]
    assert ends == [("echo", "OK")] * 2, (said, model.offered, model.results)
    assert len(machine.events("run_end")) == 2
    assert any("hi" in result for result in model.results)
    assert not list(machine.state.glob("injected/*"))
    assert not list((machine.state / "runs").iterdir())
    machine.assert_record_is_sound()


@pytest.fixture
def machine_of_root() -> Iterator[Machine]:
    """A machine below a directory that only root can write, as in a container."""
    with TemporaryDirectory(dir="/run" if os.geteuid() == 0 else None) as top:
        made = Machine(Path(top))
        made.state = made.home / ".local" / "state" / "thoughtgate"
        yield made


def test_gemini_gets_system_settings_from_root_and_is_rewritten_for_others(
    machine_of_root: Machine, model: ModelServer
) -> None:
    machine = machine_of_root
    variables = _gemini(machine, model)
    files = [one / ".gemini" / "settings.json" for one in (machine.home, machine.project)]
    before = [file.read_bytes() for file in files]
    model.may_answer.clear()

    with GEMINI.start(machine, variables) as peer:
        _wait_for_tools(model, 1)
        untouched = [file.read_bytes() for file in files] == before
        model.may_answer.set()
        said = _end(peer)

    assert untouched is (os.geteuid() == 0), said
    assert ("root alone" in said) is (os.geteuid() != 0)
    assert [file.read_bytes() for file in files] == before
    ends = [(end["call"]["tool_name"], end["status"]) for end in machine.events("tool_call_end")]
    assert ends == [("echo", "OK")], (said, model.offered, model.results)
    assert any("mcp_usr_echo" in names for names in model.offered)


def test_copilot_does_not_get_the_servers_of_a_folder_that_is_not_trusted(
    machine: Machine, model: ModelServer
) -> None:
    variables = _copilot(machine, model)
    machine.write_config(
        {"own": {"type": "local", "tools": ["*"], **entry()}},
        path=machine.home / ".copilot" / "mcp-config.json",
    )
    (machine.home / ".copilot" / "config.json").write_text("{}", "utf-8")

    said = _run(machine, model, COPILOT, variables)

    assert "LEFT OUT: usr (the folder is not trusted in Copilot CLI)" in said
    assert {one["server_name"] for one in machine.events("server_started")} == {"own"}


@pytest.mark.parametrize("session", REWRITTEN, ids=lambda one: one.name)
def test_a_rewritten_config_is_in_no_commit_and_is_restored(
    machine: Machine, model: ModelServer, session: Session
) -> None:
    variables = session.set_up(machine, model)
    _commit(machine)
    model.may_answer.clear()

    with session.start(machine, variables) as peer:
        _wait_for_tools(model, 1)
        _assert_clean(machine)
        model.may_answer.set()
        said = _end(peer)

    _assert_clean(machine)
    assert "git ignores this change until it is restored" in said
    ends = [(end["call"]["tool_name"], end["status"]) for end in machine.events("tool_call_end")]
    assert ends == [("echo", "OK")], (said, model.offered, model.results)
    machine.assert_record_is_sound()


def _run(machine: Machine, model: ModelServer, session: Session, variables: dict[str, str]) -> str:
    """Run a session to its end; return what was printed."""
    model.offered.clear()
    with session.start(machine, variables) as peer:
        return _end(peer)


def test_claude_code_gets_a_project_server_only_after_the_user_has_approved_it(
    machine: Machine, model: ModelServer
) -> None:
    variables = _claude(machine, model)
    machine.write_config({"proj": entry()}, path=machine.project / ".mcp.json")

    said = _run(machine, model, CLAUDE, variables)
    assert "LEFT OUT: proj" in said
    assert not any("mcp__proj" in name for names in model.offered for name in names)

    settings = machine.home / ".claude" / "settings.json"
    settings.write_text(json.dumps({"enabledMcpjsonServers": ["proj"]}), "utf-8")
    said = _run(machine, model, CLAUDE, variables)
    assert "configured 2 servers: proj, usr" in said
    assert any("mcp__proj__echo" in names for names in model.offered)


def test_claude_code_keeps_the_names_of_a_plugins_tools(
    machine: Machine, model: ModelServer
) -> None:
    variables = _claude(machine, model)
    folder = machine.top / "plug"
    machine.write_config({"srv": entry()}, path=folder / ".mcp.json")
    (folder / ".claude-plugin").mkdir()
    (folder / ".claude-plugin" / "plugin.json").write_text('{"name": "plug"}', "utf-8")
    session = replace(CLAUDE, args=(f"--plugin-dir={folder}", *CLAUDE.args))

    said = _run(machine, model, session, variables)

    assert "configured 2 servers: plugin:plug:srv, usr" in said
    assert any("mcp__plugin_plug_srv__echo" in names for names in model.offered), model.offered


def test_codex_does_not_get_the_servers_of_a_folder_that_is_not_trusted(
    machine: Machine, model: ModelServer
) -> None:
    _codex(machine, model)
    user = machine.home / ".codex" / "config.toml"
    sample = entry()
    text = f"""\
[mcp_servers.proj]
command = {json.dumps(sample["command"])}
args = {json.dumps(sample["args"])}
"""
    project = machine.project / ".codex" / "config.toml"
    project.parent.mkdir()
    project.write_text(text, "utf-8")
    trust = f'[projects."{machine.project}"]\ntrust_level = '

    own = user.read_text("utf-8")
    user.write_text(f'{own}{trust}"untrusted"\n', "utf-8")
    said = _run(machine, model, CODEX, {})
    assert "LEFT OUT: proj (the folder is not trusted in Codex)" in said
    assert {one["server_name"] for one in machine.events("server_started")} == {"usr"}

    user.write_text(f'{own}{trust}"trusted"\n', "utf-8")
    said = _run(machine, model, CODEX, {})
    assert "configured 2 servers: proj, usr" in said
    assert {one["server_name"] for one in machine.events("server_started")} == {"usr", "proj"}


def test_codex_gets_the_server_of_a_plugin_that_it_installed_behind_the_gate(
    machine: Machine, model: ModelServer
) -> None:
    _codex(machine, model)
    market = machine.top / "market"
    machine.write_config({"plg": entry()}, path=market / "plug" / ".mcp.json")
    sources = {"name": "plug", "source": {"source": "local", "path": "./plug"}}
    for path, values in {
        ".agents/plugins/marketplace.json": {"name": "market", "plugins": [sources]},
        "plug/.codex-plugin/plugin.json": {"name": "plug", "version": "1.0.0"},
    }.items():
        (market / path).parent.mkdir(parents=True)
        (market / path).write_text(json.dumps(values), "utf-8")
    for words in (["marketplace", "add", str(market)], ["add", "plug@market"]):
        with run_agent(machine, "codex", "plugin", *words) as peer:
            _end(peer)

    said = _run(machine, model, CODEX, {})

    assert "configured 2 servers: plg, usr" in said
    assert {one["server_name"] for one in machine.events("server_started")} == {"usr", "plg"}


def test_qoder_starts_its_servers_behind_the_gate_before_it_asks_for_a_login(
    machine: Machine,
) -> None:
    user = machine.home / ".qoder" / "settings.json"
    machine.write_config({"usr": entry()}, path=user)
    project = machine.write_config({"proj": entry()}, path=machine.project / ".mcp.json")
    _commit(machine)

    with wrap_agent(machine, "qodercli", "-p", "hi") as peer:
        peer.close_stdin()
        lines = peer.remaining_lines(SLOW_S)
        said = b"\n".join(lines).decode("utf-8", "replace") + peer.stderr
        peer.wait(SLOW_S)
        peer.assert_nothing_left()

    assert "configured 2 servers: proj, usr" in said
    assert {one["server_name"] for one in machine.events("server_started")} == {"usr", "proj"}
    assert (machine.project / ".mcp.json").read_bytes() == project
    _assert_clean(machine)
