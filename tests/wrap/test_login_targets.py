"""Which server ``thoughtgate login NAME`` means."""

import json
from pathlib import Path

import pytest
from tests.support.agent_files import Scene

from thoughtgate.config.settings import ServerSettings, Settings
from thoughtgate.errors import UsageError
from thoughtgate.wrap.login_targets import find_login_server, wrapped_servers

URL = "https://example.com/mcp"


def find(scene: Scene, name: str, **servers: ServerSettings) -> ServerSettings:
    environ = {"HOME": str(scene.home), "THOUGHTGATE_STATE_DIR": str(scene.state)}
    return find_login_server(
        name, Settings("forward", servers=servers), environ, scene.project, scene.home
    )


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(tmp_path, agent="claude-code")
    scene.write(scene.home / ".claude.json", {"mcpServers": {"far": {"url": URL}}})
    return scene


def test_a_server_of_the_config_comes_first(scene: Scene) -> None:
    own = ServerSettings("far", url="https://other.example/mcp")

    assert find(scene, "far", far=own) is own


def test_a_server_with_a_command_needs_no_login(scene: Scene) -> None:
    with pytest.raises(UsageError, match="started with a command"):
        find(scene, "near", near=ServerSettings("near", command="run"))


def test_a_url_stands_for_itself(scene: Scene) -> None:
    assert find(scene, URL) == ServerSettings("example.com", url=URL)
    with pytest.raises(UsageError, match="cannot sign in"):
        find(scene, "https://user:word@example.com/mcp")


def test_a_remote_entry_of_an_agent_is_found_by_its_name(scene: Scene) -> None:
    assert find(scene, "far") == ServerSettings("far", url=URL)


def test_an_entry_whose_url_cannot_be_used_is_an_error_with_a_reason(scene: Scene) -> None:
    odd = {"mcpServers": {"odd": {"url": "https://user:word@example.com/mcp"}}}
    scene.write(scene.home / ".claude.json", odd)

    with pytest.raises(UsageError, match="must not contain credentials") as refused:
        find(scene, "odd")
    assert "word" not in str(refused.value)


def test_the_names_are_listed_if_none_fits(scene: Scene) -> None:
    with pytest.raises(UsageError, match="known: far, own"):
        find(scene, "fra", own=ServerSettings("own", url=URL))


def test_two_servers_of_one_name_must_be_told_apart(scene: Scene) -> None:
    other = {"mcpServers": {"far": {"url": "https://other.example/mcp"}}}
    scene.write(scene.home / ".cursor" / "mcp.json", other)

    with pytest.raises(UsageError, match="different URLs; give the URL"):
        find(scene, "far")


def test_while_an_agent_is_wrapped_its_servers_are_in_the_file_of_the_run(scene: Scene) -> None:
    scene.write(scene.home / ".claude.json", {"mcpServers": {"far": {"command": "shim"}}})
    place = scene.state / "remotes"
    place.mkdir(parents=True)
    (place / "a.json").write_text(json.dumps({"servers": {"far": {"url": URL}, "odd": 1}}))
    (place / "b.json").write_text("{")
    (place / "c.json").write_text("[]")

    assert list(wrapped_servers(str(scene.state))) == [("far", URL)]
    assert find(scene, "far") == ServerSettings("far", url=URL)
