"""What is found in agents' files, and what is wrong with them."""

import os
from pathlib import Path

import pytest
from tests.support.agent_files import Scene, head, server

from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.discovery import MAX_FILE, Plan, discover, unset_variable
from thoughtgate.errors import ConfigError


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def _statuses(plan: Plan) -> dict[str, str]:
    return {f"{one.layer.scope}:{one.id}": one.status for one in plan.entries}


def _problem(plan: Plan) -> str:
    with pytest.raises(ConfigError) as caught:
        plan.require()
    return str(caught.value)


@pytest.mark.requirement("EC-STDIO-001")
def test_a_missing_config_is_answered_with_the_expected_path(scene: Scene) -> None:
    message = _problem(scene.plan())
    assert "No config file of Claude Desktop found" in message
    assert str(scene.desktop) in message
    assert "--config-path" in message


@pytest.mark.requirement("EC-STDIO-001")
def test_a_missing_named_config_is_answered_with_its_path(scene: Scene) -> None:
    scene.agent, scene.config_path = "custom", scene.top / "no" / "mcp.json"
    assert str(scene.config_path) in _problem(scene.plan())


@pytest.mark.requirement("EC-STDIO-002")
def test_an_empty_config_is_a_parse_error(scene: Scene) -> None:
    scene.write(scene.desktop, "")
    message = _problem(scene.plan())
    assert str(scene.desktop) in message
    assert "not valid JSON: the file is empty" in message


@pytest.mark.requirement("EC-STDIO-003")
@pytest.mark.parametrize("content", ["{}", '{"mcpServers": {}}', '{"theme": "dark"}'])
def test_a_config_without_servers_is_refused(scene: Scene, content: str) -> None:
    scene.write(scene.desktop, content)
    assert f"{scene.desktop}: No MCP servers found in config" in _problem(scene.plan())


@pytest.mark.requirement("EC-STDIO-004")
def test_a_config_with_all_servers_disabled_is_refused(scene: Scene) -> None:
    servers = {"a": server(disabled=True), "b": server(disabled=True)}
    scene.write(scene.desktop, {"mcpServers": servers})
    assert "All MCP servers are disabled" in _problem(scene.plan())


@pytest.mark.requirement("EC-STDIO-004")
def test_all_disabled_is_refused_where_the_agent_would_start_them(scene: Scene) -> None:
    scene.agent = "claude-code"
    scene.write(scene.home / ".claude.json", {"mcpServers": {"a": server(disabled=True)}})
    plan = scene.plan()
    assert _statuses(plan) == {"user:a": "governed"}
    assert (
        "All MCP servers are disabled; Claude Code ignores that key and would start them"
        in _problem(plan)
    )


def test_one_enabled_server_is_enough(scene: Scene) -> None:
    servers = {"a": server(disabled=True), "b": server(), "c": {"url": "https://c"}, "d": {}}
    scene.write(scene.desktop, {"mcpServers": servers})
    plan = scene.plan()
    plan.require()
    assert _statuses(plan) == {
        "user:a": "disabled",
        "user:b": "governed",
        "user:c": "remote",
        "user:d": "unsupported",
    }
    (entry,) = plan.with_status("unsupported")
    assert entry.note == "has neither a command nor a URL"


@pytest.mark.requirement("EC-STDIO-023")
def test_vscode_servers_are_read_from_their_own_key(scene: Scene) -> None:
    scene.agent = "vscode"
    scene.write(
        scene.project / ".vscode/mcp.json",
        '{ // comments are normal here\n"inputs": [],\n"servers": {\n'
        '"a": {"type": "stdio", "command": "npx", "args": ["-y", "${input:t}"]},\n'
        '"b": {"command": "no-type"},\n"c": {"type": "http", "url": "https://c"},}}',
    )
    scene.write(scene.home / ".config/Code/User/mcp.json", {"servers": {"u": server()}})
    plan = scene.plan()
    plan.require()
    assert not plan.warnings
    assert _statuses(plan) == {
        "user:u": "governed",
        "project:a": "governed",
        "project:b": "governed",
        "project:c": "remote",
    }


@pytest.mark.requirement("EC-STDIO-024")
def test_zed_servers_are_read_in_all_their_shapes(scene: Scene) -> None:
    scene.agent = "zed"
    scene.write(
        scene.home / ".config/zed/settings.json",
        """{
  // editor settings
  "theme": "One Dark",
  "context_servers": {
    "flat": {"command": "npx", "args": ["-y", "a"], "env": {"K": "v"}},
    "nested": {"source": "custom", "command": {"path": "uvx", "args": ["b"], "env": {"N": "1"}}},
    "off": {"enabled": false, "command": "x"},
    "extension": {"enabled": true, "settings": {}},
    "remote": {"url": "https://r", "headers": {"X": "y"}},
  },
}""",
    )
    plan = scene.plan()
    plan.require()
    by_id = {entry.id: entry for entry in plan.entries}
    assert {name: entry.status for name, entry in by_id.items()} == {
        "flat": "governed",
        "nested": "governed",
        "off": "disabled",
        "extension": "unsupported",
        "remote": "remote",
    }
    assert (by_id["flat"].command, by_id["flat"].args) == ("npx", ("-y", "a"))
    assert (by_id["nested"].command, by_id["nested"].args) == ("uvx", ("b",))
    assert by_id["nested"].env == {"N": "1"}
    assert by_id["remote"].headers == {"X": "y"}


@pytest.mark.requirement("EC-STDIO-025")
def test_claude_code_scopes_are_merged_and_the_project_wins(scene: Scene) -> None:
    scene.agent = "claude-code"
    scene.write(
        scene.home / ".claude.json",
        {
            "mcpServers": {"files": server("user-files"), "only-user": server()},
            "projects": {
                str(scene.project): {"mcpServers": {"db": server("local-db")}},
                "/elsewhere": {"mcpServers": {"other": server()}},
            },
        },
    )
    scene.write(scene.project.parent / ".mcp.json", {"mcpServers": {"files": server("parent")}})
    scene.write(
        scene.project / ".mcp.json",
        {"mcpServers": {"files": server("project-files"), "db": server("project-db")}},
    )
    plan = scene.plan()
    plan.require()
    in_force = {entry.id: entry.command for entry in plan.with_status("governed")}
    assert in_force == {"files": "project-files", "only-user": "npx", "db": "local-db"}
    hidden = sorted(entry.command for entry in plan.with_status("shadowed"))
    assert hidden == ["parent", "project-db", "user-files"]
    assert "other" not in {entry.id for entry in plan.entries}


@pytest.mark.requirement("EC-STDIO-026")
def test_an_undefined_variable_without_default_keeps_the_server_from_starting(scene: Scene) -> None:
    scene.agent = "claude-code"
    entry = server("npx", "${HOME_DIR}/x", "${MODE:-read}", "${CLAUDE_PROJECT_DIR}")
    entry["env"] = {"T": "${FILES_TOKEN}"}
    scene.write(scene.home / ".claude.json", {"mcpServers": {"files": entry}})
    plan = scene.plan()
    plan.require()
    assert unset_variable(plan, plan.entries[0]) == (
        "its entry refers to the variable HOME_DIR, which is not set"
    )
    scene.env = {"HOME_DIR": "/h", "FILES_TOKEN": "secret"}
    plan = scene.plan()
    plan.require()
    assert not unset_variable(plan, plan.entries[0])
    assert plan.entries[0].args[0] == "${HOME_DIR}/x"


def test_an_undefined_variable_is_a_warning_where_it_is_not_in_force(scene: Scene) -> None:
    scene.agent = "claude-code"
    servers = {"r": {"type": "http", "url": "https://r", "headers": {"K": "${KEY}"}}, "s": server()}
    scene.write(scene.home / ".claude.json", {"mcpServers": servers})
    plan = scene.plan()
    plan.require()
    assert [str(one.key) for one in plan.warnings] == ["mcpServers.r"]


def test_codex_entries_are_joined_key_by_key(scene: Scene) -> None:
    scene.agent = "codex"
    scene.write(
        scene.home / ".codex/config.toml",
        '[mcp_servers.files]\ncommand = "npx"\nargs = ["a"]\ncwd = "/srv"\n'
        '[mcp_servers.files.env]\nA = "1"\n'
        '[mcp_servers.off]\ncommand = "x"\nenabled = false\n',
    )
    scene.write(
        scene.project / ".codex/config.toml",
        '[mcp_servers.files]\nargs = ["b"]\nenv = {B = "2"}\n[mcp_servers.off]\nenabled = true\n',
    )
    plan = scene.plan()
    plan.require()
    (files,) = [one for one in plan.with_status("governed") if one.id == "files"]
    assert (files.command, files.args, files.cwd) == ("npx", ("b",), "/srv")
    assert files.env == {"A": "1", "B": "2"}
    assert files.raw == {"args": ["b"], "env": {"B": "2"}}
    # Switched off below and on above: the command stands below, so that entry must be wrapped.
    assert _statuses(plan)["user:off"] == "shadowed"
    assert _statuses(plan)["project:off"] == "governed"


def test_a_layer_for_everybody_is_listed_as_not_governed(scene: Scene) -> None:
    scene.agent = "codex"
    scene.write(scene.top / "machine/etc/codex/config.toml", '[mcp_servers.a]\ncommand = "x"\n')
    plan = scene.plan()
    (entry,) = plan.with_status("unsupported")
    assert "administrator" in entry.note


def test_claude_code_refuses_comments_in_its_own_file(scene: Scene) -> None:
    scene.agent = "claude-code"
    scene.write(scene.home / ".claude.json", '{\n// no\n"mcpServers": {"a": {"command": "x"}}}')
    assert ".claude.json:2: contains a comment; the agent accepts only plain JSON" in _problem(
        scene.plan()
    )


def test_claude_code_ignores_a_project_file_with_comments_and_it_is_governed_anyway(
    scene: Scene,
) -> None:
    scene.agent = "claude-code"
    scene.write(scene.project / ".mcp.json", '{"mcpServers": {"a": {"command": "x"},}}')
    plan = scene.plan()
    plan.require()
    assert _statuses(plan) == {"project:a": "governed"}
    assert "trailing comma; the agent accepts only plain JSON and ignores" in str(plan.warnings[0])


def test_a_broken_file_is_named_even_beside_a_good_one(scene: Scene) -> None:
    scene.agent = "cursor"
    scene.write(scene.home / ".cursor/mcp.json", {"mcpServers": {"a": server()}})
    broken = scene.write(scene.project / ".cursor/mcp.json", "{oops")
    assert f"{broken}:1: not valid JSON" in _problem(scene.plan())


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "mcpServers.a"),
        ('{"mcpServers": {}, "mcpServers": {"a": {"command": "y"}}}', "mcpServers"),
        ('{"mcpServers": {"a": {"command": "x", "command": "y"}}}', "command"),
        ('{"mcpServers": {"a": {"command": "x", "args": [], "args": ["y"]}}}', "args"),
    ],
)
def test_a_key_that_stands_twice_on_the_way_to_a_command_is_refused(
    scene: Scene, text: str, key: str
) -> None:
    scene.write(scene.desktop, text)
    message = _problem(scene.plan())
    assert "duplicate key; remove one" in message
    assert key in message


@pytest.mark.parametrize("text", ["[]", '"x"', '{"mcpServers": []}', '{"mcpServers": "x"}'])
def test_a_file_of_another_form_is_refused(scene: Scene, text: str) -> None:
    scene.write(scene.desktop, text)
    assert "mcpServers: must be an object that maps server names to servers" in _problem(
        scene.plan()
    )


def test_an_entry_of_another_form_cannot_be_governed(scene: Scene) -> None:
    scene.write(scene.desktop, {"mcpServers": {"a": "npx", "b": server()}})
    assert _statuses(scene.plan()) == {"user:a": "unsupported", "user:b": "governed"}


def test_an_entry_that_is_ours_is_known(scene: Scene) -> None:
    wrapped = head("a")
    scene.write(scene.desktop, {"mcpServers": {"a": server(*wrapped, "npx"), "b": server()}})
    plan = scene.plan()
    plan.require()
    assert _statuses(plan) == {"user:a": "managed", "user:b": "governed"}


@pytest.mark.promise("repository-shim")
@pytest.mark.parametrize(
    ("argv", "skipped"),
    [
        (["thoughtgate", "shim", "--profile", "development", "--", "npx", "x"], 5),
        (["/repo/thoughtgate", "shim", "--", "npx"], 3),
        (["python", "-m", "thoughtgate", "shim", "--", "npx"], 5),
        (["thoughtgate", "shim", "--", "thoughtgate", "shim", "--", "npx"], 6),
        (["thoughtgate", "shim", "--", "npx", "--", "x"], 3),
        (["thoughtgate", "shim", "--profile", "development"], 0),
        (["thoughtgate", "shim", "--"], 0),
        (["npx", "--", "thoughtgate", "shim", "--", "x"], 0),
    ],
)
def test_a_shim_that_no_wrap_wrote_is_not_ours(scene: Scene, argv: list[str], skipped: int) -> None:
    scene.write(scene.desktop, {"mcpServers": {"a": server(*argv)}})
    plan = scene.plan()
    plan.require()
    assert [(one.status, one.skipped) for one in plan.entries] == [("governed", skipped)]


@pytest.mark.parametrize(
    "env", ['{"HOME": "a", "HOME": "b"}', '{"A": "1"}, "env": {"LD_PRELOAD": "x"}']
)
def test_variables_that_are_set_twice_are_a_problem(scene: Scene, env: str) -> None:
    scene.write(scene.desktop, f'{{"mcpServers": {{"a": {{"command": "x", "env": {env}}}}}}}')
    assert "duplicate key" in _problem(scene.plan())


def test_a_file_reached_by_two_names_is_read_once(scene: Scene) -> None:
    scene.agent = "cursor"
    user = scene.write(scene.home / ".cursor/mcp.json", {"mcpServers": {"a": server()}})
    (scene.project / ".cursor").symlink_to(user.parent)
    plan = scene.plan()
    assert len(plan.files) == 1


def test_a_directory_in_the_place_of_a_file_is_passed_over(scene: Scene) -> None:
    scene.agent = "cursor"
    scene.write(scene.home / ".cursor/mcp.json", {"mcpServers": {"a": server()}})
    (scene.project / ".cursor/mcp.json").mkdir(parents=True)
    plan = scene.plan()
    plan.require()
    assert "cannot be read" in str(plan.warnings[0])


def test_a_custom_agent_may_list_its_servers_under_any_known_key(scene: Scene) -> None:
    scene.agent = "custom"
    scene.config_path = scene.write(scene.top / "my.json", {"context_servers": {"a": server()}})
    scene.plan().require()
    scene.config_path = scene.write(scene.top / "my.toml", '[mcp_servers.a]\ncommand = "x"\n')
    assert _statuses(scene.plan()) == {"user:a": "governed"}


def test_a_custom_agent_without_a_file_is_a_problem(scene: Scene) -> None:
    scene.agent = "custom"
    assert "--config-path" in _problem(scene.plan())


def test_the_same_search_finds_what_has_changed(scene: Scene) -> None:
    scene.write(scene.desktop, {"mcpServers": {"a": server()}})
    plan = scene.plan()
    scene.write(scene.desktop, {"mcpServers": {"b": server()}})
    assert _statuses(plan.reread()) == {"user:b": "governed"}


def test_discover_takes_its_world_as_arguments(scene: Scene) -> None:
    scene.write(scene.desktop, {"mcpServers": {"a": server()}})
    search = Search("claude-desktop", env={}, cwd=scene.project, home=scene.home)
    assert _statuses(discover(search)) == {"user:a": "governed"}


def test_a_file_with_a_second_name_is_warned_of(scene: Scene) -> None:
    scene.write(scene.desktop, {"mcpServers": {"a": server()}})
    (scene.top / "twin.json").hardlink_to(scene.desktop)
    plan = scene.plan()
    plan.require()
    assert "has 2 hard links" in str(plan.warnings[0])


@pytest.mark.promise("config-restored")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_link_of_another_user_chooses_no_config(scene: Scene) -> None:
    scene.write(scene.top / "other.json", {"mcpServers": {"a": server()}})
    scene.desktop.parent.mkdir(parents=True, exist_ok=True)
    scene.desktop.symlink_to(scene.top / "other.json")
    assert _statuses(scene.plan()) == {"user:a": "governed"}
    os.chown(scene.desktop, 12345, 23456, follow_symlinks=False)
    assert "belongs to another user" in _problem(scene.plan())


def test_a_file_beyond_every_measure_is_refused(scene: Scene) -> None:
    scene.write(scene.desktop, "{}")
    with scene.desktop.open("r+b") as file:
        file.truncate(MAX_FILE + 1)
    assert "larger than 64 MiB" in _problem(scene.plan())


def test_a_pipe_in_the_place_of_a_file_is_refused_without_waiting(scene: Scene) -> None:
    scene.desktop.parent.mkdir(parents=True)
    os.mkfifo(scene.desktop)
    assert "is not a regular file" in _problem(scene.plan())


@pytest.mark.parametrize("last", ["{}", "null"])
def test_a_second_table_of_servers_is_refused(scene: Scene, last: str) -> None:
    scene.write(
        scene.desktop, '{"mcpServers": {"a": {"command": "x"}}, "mcpServers": ' + last + "}"
    )
    assert "mcpServers: duplicate key" in _problem(scene.plan())


def test_a_lasting_plan_has_disabled_entries_and_all_projects(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="claude-code")
    projects = {
        str(scene.project): {"mcpServers": {"a": server()}},
        "/far": {"mcpServers": {"b": server()}},
    }
    scene.write(scene.home / ".claude.json", {"projects": projects})
    search = scene.plan().search

    assert [one.id for one in discover(search).entries] == ["a"]
    assert [one.id for one in discover(search, lasting=True).entries] == ["a", "b"]
    off = Scene(tmp_path / "off", agent="cursor")
    path = off.write(
        off.home / ".cursor/mcp.json", {"mcpServers": {"c": server("${env:NO}", disabled=True)}}
    )
    assert off.plan().problems
    plan = discover(off.plan().search, lasting=True)
    assert [(one.id, one.status) for one in plan.entries] == [("c", "governed")]
    assert plan.problems == ()
    other = discover(plan.search, contents={path: b"{}"}, lasting=True)
    assert (other.entries, other.problems) == ((), ())


@pytest.mark.promise("repository-servers")
def test_opencode_gets_no_server_from_a_reference_in_a_key(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="opencode")
    text = '{"mcp": {"a": {"type": "local", "command": ["a"]}}, "m{env:NONE}cp": {"b": {}}}'
    file = scene.write(scene.project / "opencode.json", text)

    (problem,) = scene.plan().problems

    assert problem.file == str(file)
    assert "only inside values" in problem.message


@pytest.mark.promise("repository-shim")
def test_a_shim_with_a_run_of_its_own_is_unpacked_where_servers_are_given(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="opencode", argv=("opencode",))
    words = ["thoughtgate", "shim", "--run", "/repo/run.json", "--", "server"]
    scene.write(
        scene.project / "opencode.json", {"mcp": {"a": {"type": "local", "command": words}}}
    )

    (entry,) = scene.plan_to_inject().entries

    assert (entry.status, entry.skipped) == ("governed", 5)
    assert scene.inject().governed == ("a",)
