"""Real servers from PyPI, with the shim and without it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.support.commands import shim
from tests.support.first_of import first_of
from tests.support.shim_peer import ALLOW_ALL
from tests.support.waiting import PATIENCE_S, run_async

MODES = ["legacy", "auto"]


def _console(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _parameters(command: list[str], tmp_path: Path) -> StdioServerParameters:
    env = {"THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    return StdioServerParameters(command=command[0], args=command[1:], env=env)


def _both(tmp_path: Path, command: list[str], mode: str, calls: list[tuple[str, Any]]) -> Any:
    """Return what a server says directly, after checking that the shim makes no difference."""
    (tmp_path / "c.yaml").write_text(ALLOW_ALL)
    behind = shim(command, "-c", str(tmp_path / "c.yaml"))

    async def use(parameters: StdioServerParameters) -> dict[str, Any]:
        with anyio.fail_after(40):
            async with Client(parameters, mode=mode) as client:
                tools = await client.list_tools()
                found: dict[str, Any] = {"tools": tools.model_dump(mode="json")}
                for name, arguments in calls:
                    outcome = await client.call_tool(name, arguments)
                    found[name] = outcome.model_dump(mode="json")
                return found

    direct = run_async(use(_parameters(command, tmp_path)))
    assert run_async(use(_parameters(behind, tmp_path))) == direct
    return direct


@pytest.mark.parametrize("mode", first_of(MODES))
def test_the_time_server_tells_the_same(tmp_path: Path, mode: str) -> None:
    command = [_console("mcp-server-time"), "--local-timezone", "UTC"]
    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    said = _both(tmp_path, command, mode, [("convert_time", arguments)])

    assert "21:00" in said["convert_time"]["content"][0]["text"]


@pytest.mark.parametrize("mode", first_of(MODES[::-1]))
def test_the_git_server_tells_the_same(tmp_path: Path, mode: str) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    for step in (
        ["init", "-q", "-b", "main"],
        ["-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-q", "--allow-empty", "-m", "first"],
    ):  # fmt: skip
        subprocess.run(["git", *step], cwd=repository, check=True, timeout=PATIENCE_S)
    command = [_console("mcp-server-git"), "--repository", str(repository)]
    where = {"repo_path": str(repository)}
    said = _both(
        tmp_path, command, mode, [("git_log", where), ("git_status", where), ("git_branch", {**where, "branch_type": "local"})]
    )  # fmt: skip

    assert "first" in said["git_log"]["content"][0]["text"]
