"""Entries put behind the gate: what changes, and what does not."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_files import OURS, Scene, head, put_behind_gate, server, shim_args

from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.revert import revert
from thoughtgate.agents.rewrite import rewrite
from thoughtgate.errors import ConfigError


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def _texts(scene: Scene) -> dict[str, str]:
    plan = scene.plan()
    plan.require()
    return {one.file.path.name: one.content.decode() for one in put_behind_gate(plan).files}


@pytest.mark.requirement("EC-STDIO-029")
def test_an_entry_runs_our_absolute_path_and_its_own_command_follows(scene: Scene) -> None:
    original = {"mcpServers": {"files": server("npx", "-y", "files", env={"K": "${V}"}, timeout=5)}}
    scene.write(scene.desktop, original)
    (text,) = _texts(scene).values()
    expected = {"command": OURS, "args": [*head("files")[1:], "npx", "-y", "files"]}
    assert json.loads(text) == {
        "mcpServers": {"files": {**original["mcpServers"]["files"], **expected}}
    }


def test_comments_order_indentation_and_line_endings_survive(scene: Scene) -> None:
    scene.agent = "zed"
    before = (
        '\ufeff// settings\r\n{\r\n\t"context_servers": {\r\n\t\t"a": { // mine\r\n'
        '\t\t\t"args": [\r\n\t\t\t\t"-y", // yes\r\n\t\t\t\t"x",\r\n\t\t\t],\r\n'
        '\t\t\t"command" : "npx", "z": 1.50,\r\n\t\t},\r\n\t},\r\n\t"é": "\\u00e9"\r\n}'
    )
    scene.write(scene.home / ".config/zed/settings.json", before)
    (text,) = _texts(scene).values()
    words = [*head("a")[1:], "npx"]
    inserted = "".join(f'"{word}",\r\n\t\t\t\t' for word in words)
    assert text == before.replace('"-y"', inserted + '"-y"').replace(
        '"command" : "npx"', f'"command" : "{OURS}"'
    )


def test_an_entry_without_args_gets_them_behind_its_command(scene: Scene) -> None:
    scene.write(scene.desktop, '{"mcpServers": {"a": {"command": "x", "env": {}}}}')
    (text,) = _texts(scene).values()
    entry = json.loads(text)["mcpServers"]["a"]
    assert list(entry) == ["command", "args", "env"]
    assert entry["args"] == [*head("a")[1:], "x"]


def test_variables_that_would_reach_the_gate_are_emptied_and_nothing_else(scene: Scene) -> None:
    scene.agent = "zed"
    before = (
        '{"context_servers": {"a": {"command": "x", "args": [], "env": { // c\n'
        ' "K": "v", "PYTHONPATH" : "p", // mine\n "HOME": "h",}},\n'
        ' "b": {"command": {"path": "y", "args": [], "env": {"LD_PRELOAD": "l"}}}}}'
    )
    scene.write(scene.home / ".config/zed/settings.json", before)
    (one,) = put_behind_gate(scene.plan()).files
    text = one.content.decode()
    for value in ("p", "h", "l"):
        before = before.replace(f'"{value}"', '""')
    assert text.partition('"env": {')[2].startswith(before.partition('"env": {')[2][:58])
    assert text.endswith('"env": {"LD_PRELOAD": ""}}}}}')


def test_variables_in_a_layer_without_a_command_bring_the_command_along(scene: Scene) -> None:
    scene.agent = "codex"
    scene.write(scene.home / ".codex/config.toml", '[mcp_servers.a]\ncommand = "x"\n')
    scene.write(scene.project / ".codex/config.toml", '[mcp_servers.a.env]\nHOME = "h"\n')
    _, one = put_behind_gate(scene.plan()).files
    entry = tomllib.loads(one.content.decode())["mcp_servers"]["a"]
    assert entry == {"command": OURS, "args": [*head("a")[1:], "x"], "env": {"HOME": ""}}
    reverted = tomllib.loads(revert(one.content, "toml", one.records).decode())
    assert reverted == {"mcp_servers": {"a": {"env": {"HOME": "h"}}}}


def test_variables_that_another_file_adds_and_nothing_empties_are_refused(scene: Scene) -> None:
    scene.agent = "opencode"
    scene.write(
        scene.home / ".config/opencode/opencode.json",
        {"mcp": {"a": {"environment": {"LD_PRELOAD": "evil"}}}},
    )
    scene.write(scene.project / "opencode.json", {"mcp": {"a": {"command": ["x"]}}})
    with pytest.raises(ConfigError, match="would reach the gate's own process") as caught:
        put_behind_gate(scene.plan())
    assert "mcp.a.environment.LD_PRELOAD" in str(caught.value)


def test_a_file_of_variables_is_not_named_in_the_rewritten_entry(scene: Scene) -> None:
    scene.agent = "vscode"
    before = '{"servers": {"a": {"envFile": "/x/.env", "command": "x", "args": []}}}'
    scene.write(scene.project / ".vscode/mcp.json", before)
    (one,) = put_behind_gate(scene.plan()).files
    assert "envFile" not in json.loads(one.content)["servers"]["a"]
    assert revert(one.content, "json", one.records).decode() == before


def test_variables_of_a_remote_entry_are_removed(scene: Scene) -> None:
    entry = {"url": "https://r", "env": {"SSL_CERT_FILE": "/evil", "LD_PRELOAD": "x"}}
    scene.write(scene.desktop, {"mcpServers": {"r": entry}})
    (one,) = rewrite(scene.plan(), [OURS], shim_args, lambda _: (OURS, ["shim", "r"])).files
    assert json.loads(one.content)["mcpServers"]["r"] == {"command": OURS, "args": ["shim", "r"]}
    assert json.loads(revert(one.content, "json", one.records)) == {"mcpServers": {"r": entry}}


@pytest.mark.parametrize("args", [None, "one", {}])
def test_args_of_another_form_are_replaced(scene: Scene, args: Any) -> None:
    scene.write(scene.desktop, {"mcpServers": {"a": {"command": "x", "args": args}}})
    (text,) = _texts(scene).values()
    assert json.loads(text)["mcpServers"]["a"]["args"] == [*head("a")[1:], "x"]


def test_arguments_that_are_no_strings_are_kept_for_the_agent_to_judge(scene: Scene) -> None:
    scene.write(scene.desktop, {"mcpServers": {"a": {"command": "x", "args": [1, None]}}})
    (text,) = _texts(scene).values()
    assert json.loads(text)["mcpServers"]["a"]["args"] == [*head("a")[1:], "x", 1, None]


@pytest.mark.parametrize("name", ["a b", 'q"uo\\te', "--", "é\u2028", "", "$(x)", "a.b", "\ud800"])
def test_odd_server_names_survive(scene: Scene, name: str) -> None:
    scene.write(scene.desktop, json.dumps({"mcpServers": {name: server()}}))
    (text,) = _texts(scene).values()
    assert json.loads(text)["mcpServers"][name]["args"][:3] == ["shim", "--server-id", name]


def test_a_nested_command_is_changed_inside(scene: Scene) -> None:
    scene.agent = "zed"
    entry = {"command": {"path": "npx", "args": ["x"], "env": {"K": "v"}}}
    bare = {"command": {"path": "y"}}
    path = scene.home / ".config/zed/settings.json"
    scene.write(path, {"context_servers": {"a": entry, "b": bare}})
    (text,) = _texts(scene).values()
    servers = json.loads(text)["context_servers"]
    assert servers["a"]["command"] == {
        "path": OURS,
        "args": [*head("a")[1:], "npx", "x"],
        "env": {"K": "v"},
    }
    assert servers["b"]["command"] == {"path": OURS, "args": [*head("b")[1:], "y"]}


def test_an_opencode_array_gets_a_new_head(scene: Scene) -> None:
    scene.agent = "opencode"
    before = '{"mcp": {"a": {"type": "local", "command": ["npx", "{env:H}/d"], "enabled": true},}}'
    scene.write(scene.project / "opencode.jsonc", before)
    (text,) = _texts(scene).values()
    words = ", ".join(json.dumps(word) for word in head("a"))
    assert text == before.replace('["npx"', f'[{words}, "npx"')


def test_codex_entries_are_wrapped_as_merged_in_every_layer(scene: Scene) -> None:
    scene.agent = "codex"
    scene.write(
        scene.home / ".codex/config.toml",
        '[mcp_servers.files]\ncommand = "npx" # c\nargs = ["a"]\n\n'
        '[mcp_servers.off]\ncommand = "x"\nenabled = false\n',
    )
    project = scene.write(
        scene.project / ".codex/config.toml",
        '# mine\n[mcp_servers.files]\nargs = ["b"] # other\n[mcp_servers.off]\nenabled = true\n',
    )
    plan = scene.plan()
    plan.require()
    result = put_behind_gate(plan)
    user, own = (tomllib.loads(one.content.decode())["mcp_servers"] for one in result.files)
    words = head("files")[1:]
    assert user["files"] == {"command": OURS, "args": [*words, "npx", "a"]}
    assert own["files"] == {"command": OURS, "args": [*words, "npx", "b"]}
    assert user["off"] == {"command": OURS, "args": [*head("off")[1:], "x"], "enabled": False}
    assert own["off"] == {"enabled": True}
    assert result.files[1].file.path == project
    assert b"# mine" in result.files[1].content
    assert b"# other" in result.files[1].content


def test_an_entry_that_an_administrator_gave_is_completed_in_the_users_file(scene: Scene) -> None:
    scene.agent = "codex"
    scene.write(
        scene.top / "machine/etc/codex/config.toml",
        '[mcp_servers.a]\ncommand = "x"\nargs = ["1"]\n',
    )
    scene.write(scene.home / ".codex/config.toml", "[mcp_servers.a]\nenabled = true\n")
    (text,) = _texts(scene).values()
    entry = tomllib.loads(text)["mcp_servers"]["a"]
    assert entry == {"enabled": True, "command": OURS, "args": [*head("a")[1:], "x", "1"]}


def test_disabled_entries_and_unknown_keys_stay(scene: Scene) -> None:
    off = server("x", disabled=True)
    scene.write(scene.desktop, {"mcpServers": {"off": off, "on": server()}, "other": [1]})
    (text,) = _texts(scene).values()
    values = json.loads(text)
    assert values["mcpServers"]["off"] == off
    assert values["other"] == [1]


def test_every_scope_of_claude_code_is_wrapped_in_its_own_file(scene: Scene) -> None:
    scene.agent = "claude-code"
    local = {str(scene.project): {"mcpServers": {"a": server("local")}, "history": []}}
    user = {"mcpServers": {"a": server("user")}, "projects": local}
    scene.write(scene.home / ".claude.json", user)
    scene.write(scene.project / ".mcp.json", {"mcpServers": {"a": server("project")}})
    scene.write(scene.top / ".mcp.json", {"mcpServers": {"a": server("top")}})
    plan = scene.plan()
    result = put_behind_gate(plan)
    assert len(result.files) == 3
    assert len(result.governed) == 4
    values = json.loads(result.files[0].content)
    in_project = values["projects"][str(scene.project)]["mcpServers"]["a"]
    assert values["mcpServers"]["a"]["args"][-1] == "user"
    assert in_project["args"][-1] == "local"


def test_the_same_plan_gives_the_same_text_every_time(scene: Scene) -> None:
    scene.write(scene.desktop, {"mcpServers": {"a": server(), "b": server()}})
    assert _texts(scene) == _texts(scene)


def test_an_interpreter_may_stand_before_our_module(scene: Scene) -> None:
    scene.write(scene.desktop, {"mcpServers": {"a": server("x")}})
    result = rewrite(scene.plan(), ["/usr/bin/python3", "-m", "thoughtgate"], shim_args)
    entry = json.loads(result.files[0].content)["mcpServers"]["a"]
    assert entry["command"] == "/usr/bin/python3"
    assert entry["args"][:4] == ["-m", "thoughtgate", "shim", "--server-id"]


REMOTE: dict[str, Any] = {
    "type": "http",
    "url": "https://r",
    "headers": {"X": "${K:-}"},
    "timeout": 5,
}


def test_remote_entries_are_listed_as_not_governed_without_an_offer(scene: Scene) -> None:
    scene.write(scene.desktop, {"mcpServers": {"r": REMOTE, "s": server(), "e": {}}})
    result = put_behind_gate(scene.plan())
    assert [entry.id for entry in result.ungoverned] == ["e", "r"]
    assert json.loads(result.files[0].content)["mcpServers"]["r"] == REMOTE
    declined = rewrite(scene.plan(), [OURS], shim_args, lambda _: None)
    assert declined == result


def test_a_remote_entry_becomes_one_with_the_offered_command(scene: Scene) -> None:
    def offer(entry: ServerEntry) -> tuple[str, list[str]]:
        assert (entry.url, entry.headers) == ("https://r", {"X": "${K:-}"})
        return OURS, ["shim", "--server-id", entry.id, "--run", "run1"]

    scene.write(scene.desktop, {"mcpServers": {"r": REMOTE}})
    result = rewrite(scene.plan(), [OURS], shim_args, offer)
    assert json.loads(result.files[0].content)["mcpServers"]["r"] == {
        "type": "stdio",
        "timeout": 5,
        "command": OURS,
        "args": ["shim", "--server-id", "r", "--run", "run1"],
    }


def test_a_remote_entry_of_opencode_becomes_a_local_one(scene: Scene) -> None:
    scene.agent = "opencode"
    entry = {"type": "remote", "url": "https://r"}
    scene.write(scene.project / "opencode.json", {"mcp": {"r": entry}})
    result = rewrite(scene.plan(), [OURS], shim_args, lambda _: (OURS, ["shim", "x"]))
    assert json.loads(result.files[0].content)["mcp"]["r"] == {
        "type": "local",
        "command": [OURS, "shim", "x"],
    }


def test_fifty_servers_are_rewritten_in_one_go(scene: Scene) -> None:
    scene.write(scene.desktop, {"mcpServers": {f"s{n}": server() for n in range(50)}})
    assert len(put_behind_gate(scene.plan()).governed) == 50


@pytest.mark.parametrize(
    "entry",
    [
        '{"command": "x", "url": "http://h/", "env": {}}',
        '{"httpUrl": "http://h/", "type": "stdio", "args": ["a"], "command": "x"}',
        '{"url": "http://h/", "command": "x", "httpUrl": "http://g/"}',
    ],
)
def test_a_url_beside_a_command_is_no_way_round_the_gate(scene: Scene, entry: str) -> None:
    scene.agent = "gemini"
    before = f'{{"mcpServers": {{"a": {entry}}}}}'
    scene.write(scene.home / ".gemini/settings.json", before)
    (one,) = put_behind_gate(scene.plan()).files
    written = json.loads(one.content)["mcpServers"]["a"]
    assert written["command"] == OURS
    assert not {"url", "httpUrl"} & written.keys()
    assert json.loads(revert(one.content, "json", one.records)) == json.loads(before)


@pytest.mark.promise("repository-servers")
def test_a_debugger_that_an_entry_names_does_not_run_in_place_of_the_shim(scene: Scene) -> None:
    scene.agent = "vscode"
    debug = {"debug": {"type": "debugpy", "debugpyPath": "${workspaceFolder}/evil"}}
    before = {"servers": {"a": {"command": "python", "args": ["s.py"], "dev": debug}}}
    scene.write(scene.project / ".vscode" / "mcp.json", before)

    (one,) = put_behind_gate(scene.plan()).files

    assert json.loads(one.content)["servers"]["a"].keys() == {"command", "args"}
    assert json.loads(revert(one.content, "json", one.records)) == before
