"""Which variables of an entry would reach the gate, and what becomes of them."""

from pathlib import Path
from typing import Any

import pytest

from thoughtgate.agents.catalog import AGENTS
from thoughtgate.agents.entries import Layer, ServerEntry
from thoughtgate.agents.entry_environment import (
    MovedVariables,
    moved_keys,
    moved_variables,
    reaches_gate,
)

LAYER = Layer(Path("c.json"), Path("c.json"), "user", ("mcpServers",))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LD_PRELOAD", True),
        ("DYLD_INSERT_LIBRARIES", True),
        ("PYTHONPATH", True),
        ("PYTHON_GIL", True),
        ("_PYI_ARCHIVE_FILE", True),
        ("PYINSTALLER_RESET_ENVIRONMENT", True),
        ("THOUGHTGATE_CONFIG", True),
        ("SUB_RUN_ID", True),
        ("XDG_CONFIG_HOME", True),
        ("HOME", True),
        ("GCONV_PATH", True),
        ("__PYVENV_LAUNCHER__", True),
        ("__proto__", True),
        ("LD_PRELOAD=/evil.so:", True),
        ("HOME=/evil", True),
        ("{env:NOT_SET}HOME", True),
        ("${NOT_SET}HOME", True),
        (" HOME", True),
        ("HOMEPAGE", False),
        ("NODE_OPTIONS", False),
        ("BASH_ENV", False),
        ("PATH", False),
        ("home", False),
        ("", False),
    ],
)
def test_variables_that_reach_the_gate(name: str, expected: bool) -> None:
    assert reaches_gate(name) is expected


def test_every_table_of_an_entry_is_looked_at() -> None:
    entry = {
        "env": {"HOME": "/h", "A": "b"},
        "environment": {"LD_X": "1"},
        "command": {"path": "x", "env": {"XDG_X": "2"}},
    }
    assert list(moved_keys(entry)) == [
        ("environment", "LD_X"),
        ("env", "HOME"),
        ("command", "env", "XDG_X"),
    ]
    assert list(moved_keys({"env": ["HOME"], "command": ["x"]})) == []


def _moved(env: dict[str, Any], agent: str = "claude-code", skipped: int = 0) -> Any:
    entry = ServerEntry("a", LAYER, "governed", env=env, skipped=skipped)
    return moved_variables(entry, AGENTS[agent], {"V": "/v"})


def test_values_are_what_the_agent_would_pass_on() -> None:
    assert _moved({"A": "b"}) is None
    assert _moved({"A": "b", "HOME": "${V}/${W:-w}"}) == MovedVariables({"HOME": "/v/w"})
    assert _moved({"HOME": "${V}"}, "codex") == MovedVariables({"HOME": "${V}"})


def test_a_shim_in_the_entry_would_have_kept_the_gates_own_variables() -> None:
    env = {"THOUGHTGATE_PROFILE": "development", "SUB_X": "1", "HOME": "/h"}
    assert _moved(env) == MovedVariables(env)
    assert _moved(env, skipped=3) == MovedVariables({"HOME": "/h"})


@pytest.mark.parametrize(
    ("env", "agent", "problem"),
    [
        ({"HOME": "${W}"}, "claude-code", "refers to W, which is not set"),
        ({"HOME": "${CLAUDE_PROJECT_DIR}"}, "claude-code", "refers to CLAUDE_PROJECT_DIR"),
        ({"HOME": "${workspaceFolder}"}, "vscode", "only the agent can expand"),
        ({"HOME": "{file:secret}"}, "opencode", "only the agent can expand"),
        ({"HOME": "${V}"}, "custom", "only the agent can expand"),
        ({"HOME": 5}, "claude-code", "is not a text"),
        ({"HOME": None}, "claude-code", "is not a text"),
        ({"HOME": "a\0b"}, "claude-code", "is not a text"),
        ({"LD_PRELOAD=x": "y"}, "claude-code", "name of the variable 'LD_PRELOAD=x'"),
    ],
)
def test_a_value_that_cannot_be_known_is_a_problem(
    env: dict[str, Any], agent: str, problem: str
) -> None:
    moved = _moved(env, agent)
    assert problem in moved.problem
    assert moved.values == {}


def _with_file(tmp_path: Path, named: Any, **env: str) -> MovedVariables | None:
    (tmp_path / ".env").write_text("A=file\nB=file\nLD_PRELOAD=evil\n", "utf-8")
    path = tmp_path / ".vscode" / "mcp.json"
    layer = Layer(path, path, "project", ("servers",))
    entry = ServerEntry("a", layer, "governed", env=env, raw={"envFile": named, "env": env})
    return moved_variables(entry, AGENTS["vscode"], {"V": str(tmp_path)})


@pytest.mark.parametrize("place", ["${workspaceFolder}", "${env:V}"])
def test_variables_of_a_named_file_go_to_the_server_alone(tmp_path: Path, place: str) -> None:
    assert _with_file(tmp_path, f"{place}/.env", A="own", HOME=place) == MovedVariables(
        {"B": "file", "LD_PRELOAD": "evil", "HOME": str(tmp_path)}
    )


@pytest.mark.parametrize(
    ("named", "problem"),
    [
        ("${userHome}/.env", "only the agent can expand"),
        (".env", "not an absolute path"),
        ("${workspaceFolder}/missing", "cannot be read"),
        (5, "is not a text"),
    ],
)
def test_a_named_file_that_cannot_be_known_is_a_problem(
    tmp_path: Path, named: Any, problem: str
) -> None:
    moved = _with_file(tmp_path, named, HOME="/h")
    assert moved is not None
    assert problem in moved.problem


def test_the_folder_of_an_editor_is_known_in_its_own_files_only(tmp_path: Path) -> None:
    for path, scope in ((tmp_path / "mcp.json", "project"), (tmp_path / ".vscode/m.json", "user")):
        entry = ServerEntry(
            "a", Layer(path, path, scope, ()), "governed", env={"HOME": "${workspaceFolder}"}
        )
        moved = moved_variables(entry, AGENTS["vscode"], {})
        assert moved is not None
        assert "only the agent can expand" in moved.problem
