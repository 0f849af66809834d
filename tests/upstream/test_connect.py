"""From a server's settings to its credentials, its environment and its directory."""

from pathlib import Path

import pytest

from thoughtgate.config.server_auth import ServerAuth
from thoughtgate.config.settings import ServerSettings
from thoughtgate.upstream.connect import child_command, open_pool


@pytest.mark.requirement("FR14")
def test_the_token_goes_with_every_request_and_is_not_shown() -> None:
    server = ServerSettings(
        "up",
        url="http://127.0.0.1/mcp",
        auth=ServerAuth(token_env="T"),
        headers={"X-Team": "blue"},
    )
    pool = open_pool(server, {"T": " secret "})

    assert pool.options.headers == [(b"x-team", b"blue"), (b"authorization", b"Bearer secret")]
    assert pool.options.tls is None
    assert "secret" not in repr(pool.options)


def test_only_https_is_encrypted() -> None:
    assert open_pool(ServerSettings("up", url="https://example.com/mcp"), {}).options.tls


def test_a_server_gets_its_own_variables_but_none_of_the_gates_secrets(tmp_path: Path) -> None:
    server = ServerSettings("kid", command="cat", args=("-u",), env={"MINE": "m", "PATH": "/own"})
    environ = {"PATH": "/bin", "THOUGHTGATE_X": "own", "TOKEN": "s", "PLAIN": "p"}
    command = child_command(server, environ, ["TOKEN"], str(tmp_path))

    assert command.command == "cat"
    assert list(command.args) == ["-u"]
    assert command.env == {"PATH": "/own", "PLAIN": "p", "MINE": "m"}


@pytest.mark.parametrize(("cwd", "below"), [("", ""), ("sub", "base/sub"), ("/other", "/other")])
def test_a_relative_directory_is_below_the_configs(tmp_path: Path, cwd: str, below: str) -> None:
    server = ServerSettings("kid", command="cat", cwd=cwd)
    command = child_command(server, {}, [], str(tmp_path / "base"))

    assert command.cwd == (str(tmp_path / below) if below else "")
