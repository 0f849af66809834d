"""Real servers together behind one ``serve``, used by real clients in both eras."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import anyio
import pytest
from mcp import Client, StdioServerParameters
from tests.support.commands import ROOT, thoughtgate, with_state
from tests.support.first_of import first_of
from tests.support.http_hub import serving_http
from tests.support.hub import sample, write_config
from tests.support.waiting import run_async, wait_for

BIN: Final = ROOT / ".node" / "node_modules" / ".bin"
NODE: Final = {
    "everything": ["mcp-server-everything", "stdio"],
    "files": ["mcp-server-filesystem"],
    "memory": ["mcp-server-memory"],
}
HAS_NODE: Final = all((BIN / command[0]).exists() for command in NODE.values())
MODES: Final = ["legacy", "auto", "2026-07-28"]

needs_node = pytest.mark.skipif(
    not HAS_NODE, reason="the Node peers are not installed: run make node"
)


def _console(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _repository(path: Path) -> Path:
    path.mkdir()
    for step in (
        ["init", "-q", "-b", "main"],
        [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "first",
        ],
    ):
        subprocess.run(["git", *step], cwd=path, check=True, timeout=20)
    return path


def _servers(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "hello.txt").write_text("hello from a file")
    repository = str(_repository(tmp_path / "repository"))
    servers: dict[str, Any] = {
        "time": {"command": _console("mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        "git": {"command": _console("mcp-server-git"), "args": ["--repository", repository]},
    }
    if HAS_NODE:
        for ident, (command, *args) in NODE.items():
            servers[ident] = {"command": str(BIN / command), "args": args}
        servers["files"]["args"] = [str(tmp_path / "shared")]
        servers["memory"]["env"] = {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
    return {ident: {**entry, "start_timeout": "30s"} for ident, entry in servers.items()}


def _parameters(tmp_path: Path, servers: dict[str, Any]) -> StdioServerParameters:
    config = write_config(tmp_path / "thoughtgate.yaml", servers)
    command = with_state(thoughtgate("serve", "--stdio", "-c", str(config)))
    env = {
        "THOUGHTGATE_STATE_DIR": str(tmp_path / "state"),
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
    }
    return StdioServerParameters(command=command[0], args=command[1:], env=env)


def _lists_all(names: list[str], servers: dict[str, Any]) -> bool:
    return all(any(name.startswith(f"{ident}.") for name in names) for ident in servers)


@pytest.mark.requirement("S002-61", "S002-62")
@pytest.mark.parametrize("mode", first_of(["auto", "legacy", "2026-07-28"]))
def test_real_servers_are_used_together_by_the_official_client(tmp_path: Path, mode: str) -> None:
    servers = _servers(tmp_path)
    parameters = _parameters(tmp_path, servers)
    repository = str(tmp_path / "repository")
    hour = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}

    async def use() -> dict[str, str]:
        async with Client(parameters, mode=mode) as client:
            names: list[str] = []
            # On a busy machine a server may come up after the first list.
            while not _lists_all(names, servers):
                names = [tool.name for tool in (await client.list_tools()).tools]
            told = {"names": " ".join(names)}
            calls: list[tuple[str, dict[str, Any]]] = [
                ("time.convert_time", hour),
                ("git.git_log", {"repo_path": repository}),
            ]
            if HAS_NODE:
                calls += [
                    ("everything.echo", {"message": "hi there"}),
                    ("everything.get-sum", {"a": 2, "b": 3}),
                    ("files.read_text_file", {"path": str(tmp_path / "shared" / "hello.txt")}),
                    ("memory.read_graph", {}),
                ]
            for name, arguments in calls:
                result = await client.call_tool(name, arguments)
                assert not result.is_error, (name, result)
                told[name] = getattr(result.content[0], "text", "")
            return told

    told = run_async(use(), 100.0)
    assert "time.get_current_time" in told["names"]
    assert "21:00" in told["time.convert_time"]
    assert "first" in told["git.git_log"]
    if HAS_NODE:
        assert "hi there" in told["everything.echo"]
        assert "5" in told["everything.get-sum"]
        assert told["files.read_text_file"] == "hello from a file"
        assert "entities" in told["memory.read_graph"]


@pytest.mark.parametrize("mode", first_of(MODES[::-1]))
def test_the_official_client_over_http(tmp_path: Path, mode: str) -> None:
    servers = {"one": sample(), "old": sample("--era", "legacy")}
    with serving_http(tmp_path, servers) as hub:

        async def main() -> tuple[list[str], list[str], list[str]]:
            with anyio.fail_after(30):
                async with Client(hub.url, mode=mode) as client:
                    names = [tool.name for tool in (await client.list_tools()).tools]
                    told = []
                    for server in servers:
                        said = await client.call_tool(f"{server}.echo", {"text": server})
                        told.append(getattr(said.content[0], "text", ""))
                    steps: list[str] = []

                    async def heard(
                        progress: float, total: float | None, message: str | None
                    ) -> None:
                        steps.append(f"{progress:g}/{total or 0:g}{message or ''}")

                    await client.call_tool("old.slow", {"seconds": 0.2}, progress_callback=heard)
                    return names, told, steps

        names, told, progress = run_async(main())

    assert "one.echo" in names
    assert told == ["one", "old"]
    assert progress == ["1/4", "2/4", "3/4"]


@needs_node
@pytest.mark.long
@pytest.mark.parametrize("era", ["legacy", "auto", "modern"])
def test_the_inspector_lists_and_calls_through_the_hub(tmp_path: Path, era: str) -> None:
    servers = {**_servers(tmp_path), "old": sample("--era", "legacy")}
    parameters = _parameters(tmp_path, servers)
    env = {
        **os.environ,
        **(parameters.env or {}),
        "MCP_CATALOG_PATH": str(tmp_path / "catalog.json"),
    }
    options = [
        "--cli",
        "--connect-timeout",
        "60000",
        "--protocol-era",
        era,
        "--format",
        "json",
        "-q",
    ]

    def inspect(*question: str) -> Any:
        done = subprocess.run(
            [
                str(BIN / "mcp-inspector"),
                *options,
                *question,
                "--",
                parameters.command,
                *parameters.args,
            ],
            capture_output=True,
            env=env,
            cwd=tmp_path,
            check=False,
            timeout=110,
        )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    def call(tool: str, argument: str) -> str:
        question = ["--method", "tools/call", "--tool-name", tool, "--tool-arg", argument]
        return json.dumps(inspect(*question))

    def lists_all() -> bool:
        listed = json.dumps(inspect("--method", "tools/list"))
        return all(f'"{ident}.' in listed for ident in servers)

    # On a busy machine a server may come up after the first list.
    wait_for(lists_all, what="a list of all servers")
    assert "hi" in call("old.echo", "text=hi")
    assert "UTC" in call("time.get_current_time", "timezone=UTC")
    assert "hello from a file" in call(
        "files.read_text_file", f"path={tmp_path / 'shared' / 'hello.txt'}"
    )
