"""Variables of entries on their way through the run file."""

from pathlib import Path

from tests.support.agent_files import Scene, server

from thoughtgate.wrap.server_variables import ServerVariables


def test_entries_of_one_name_in_two_files_keep_their_own_variables(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="claude-code")
    scene.write(
        scene.home / ".claude.json",
        {
            "mcpServers": {"a": server(env={"HOME": "/user"}), "b": server(env={"K": "v"})},
            "projects": {str(scene.project): {"mcpServers": {"a": server(env={"HOME": "${H}"})}}},
        },
    )
    scene.env = {"H": "/local"}
    plan = scene.plan()

    found = ServerVariables(plan, {"H": "/local"})

    by_scope = {entry.layer.scope: found.key_of(entry) for entry in plan.entries if entry.id == "a"}
    assert found.contents == {
        by_scope["user"]: {"env": {"HOME": "/user"}},
        by_scope["local"]: {"env": {"HOME": "/local"}},
    }
    assert [found.key_of(entry) for entry in plan.entries if entry.id == "b"] == [""]
    assert found.refused == []


def test_an_agent_that_merges_its_files_gives_the_variables_of_all(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="codex")
    user = '[mcp_servers.a]\ncommand = "x"\nenv = {HOME = "/user", XDG_A = "1"}\n'
    scene.write(scene.home / ".codex/config.toml", user)
    scene.write(scene.project / ".codex/config.toml", '[mcp_servers.a.env]\nHOME = "/project"\n')

    contents = ServerVariables(scene.plan(), {}).contents

    assert list(contents.values()) == [{"env": {"HOME": "/project", "XDG_A": "1"}}] * 2


def test_a_server_whose_variables_are_unknown_must_not_start(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="gemini")
    path = scene.home / ".gemini" / "settings.json"
    scene.write(path, {"mcpServers": {"a": server(env={"LD_LIBRARY_PATH": "$NOT_SET"})}})

    found = ServerVariables(scene.plan(), {})

    problem = "the variable LD_LIBRARY_PATH refers to NOT_SET, which is not set"
    assert list(found.contents.values()) == [{"problem": problem}]
    assert found.refused == [f"a ({problem})"]
