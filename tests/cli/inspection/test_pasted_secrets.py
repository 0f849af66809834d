"""Secrets in pasted server entries."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from thoughtgate.cli.inspection.pasted_secrets import (
    find_secrets,
    move_secrets,
    save_variables,
    saved_variables,
)
from thoughtgate.errors import Conflict

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def _entry() -> dict[str, Any]:
    return {
        "command": "npx",
        "args": ["-y", "server", f"--token={TOKEN}"],
        "env": {"GITHUB_TOKEN": TOKEN, "DEBUG": "1", "OTHER_TOKEN": "${OTHER_TOKEN}"},
        "headers": {"Authorization": f"Bearer {TOKEN}"},
    }


def test_secrets_are_found_where_they_are_and_references_are_none() -> None:
    assert {one.where for one in find_secrets(_entry())} == {
        "args.2",
        "env.GITHUB_TOKEN",
        "headers.Authorization",
    }
    assert find_secrets({"command": "npx", "args": ["--token", "${TOKEN}"]}) == []


def test_moved_secrets_leave_references_and_are_nowhere_else() -> None:
    entry = _entry()

    moved = move_secrets("git hub", entry, find_secrets(entry), {})

    assert TOKEN not in str(entry)
    assert entry["env"]["GITHUB_TOKEN"] == "${GITHUB_TOKEN}"
    assert entry["headers"]["Authorization"] == "Bearer ${GIT_HUB_AUTHORIZATION}"
    assert entry["args"][2] == "--token=${GIT_HUB_SECRET}"
    assert set(moved.values()) == {TOKEN}


def test_a_variable_with_another_value_is_never_reused() -> None:
    entry = _entry()

    moved = move_secrets("g", entry, find_secrets(entry), {"GITHUB_TOKEN": "another"})

    assert entry["env"]["GITHUB_TOKEN"] == "${GITHUB_TOKEN_2}"
    assert "GITHUB_TOKEN" not in moved


def test_the_file_is_private_and_a_shell_reads_the_exact_values(tmp_path: Path) -> None:
    path = tmp_path / "variables.env"
    save_variables(path, {"A": "it's $HOME `x`"})
    save_variables(path, {"B": "two\nlines"})

    shell = f'. {path}; printf \'%s|%s\' "$A" "$B"'
    done = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, timeout=10, check=True
    )

    assert done.stdout == "it's $HOME `x`|two\nlines"
    assert path.stat().st_mode & 0o777 == 0o600
    assert saved_variables(path) == {"A": "it's $HOME `x`", "B": "two\nlines"}
    assert saved_variables(tmp_path / "none") == {}


def test_a_link_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "variables.env").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(Conflict, match="cannot write"):
        save_variables(tmp_path / "variables.env", {"A": "b"})
    assert not (tmp_path / "elsewhere").exists()
