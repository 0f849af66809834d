"""The ``servers`` command."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.support.warm_command import run_warm

TEXT = "# mine\nschema: 1\ndefault: deny\nservers:\n  files: {command: files-server}  # keep\n"


def run(tmp_path: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return run_warm(
        "servers",
        *words,
        stdin=stdin,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "THOUGHTGATE_STATE_DIR": str(tmp_path),
        },
        cwd=tmp_path,
    )


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / ".config" / "thoughtgate" / "thoughtgate.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    return path


def test_servers_are_listed(tmp_path: Path, config: Path) -> None:
    told = json.loads(run(tmp_path, "list", "--json").stdout)

    assert told == [
        {
            "id": "files",
            "name": "files",
            "kind": "stdio",
            "target": "files-server",
            "args": [],
            "runs": "files-server",
            "env": [],
            "headers": [],
            "enabled": True,
            "eager": False,
            "namespaces": [],
            "status": "not running",
        }
    ]
    assert "files  stdio  not running  files-server" in run(tmp_path, "list").stdout
    assert config.read_text() == TEXT


def test_an_id_in_the_place_of_the_command_is_refused(tmp_path: Path, config: Path) -> None:
    words = ("gh", "--env", "A=b", "--", "npx", "-y", "x")
    done = run(tmp_path, "add", *words)
    assert done.returncode == 2
    assert "run: thoughtgate servers add --id gh --env A=b -- npx -y x" in done.stderr
    assert config.read_text() == TEXT
    # With an id, the words after -- are the command, whatever they look like.
    assert run(tmp_path, "add", "--id", "gh", "--", *words).returncode == 0


def test_a_server_is_added_with_its_command_and_comments_stay(tmp_path: Path, config: Path) -> None:
    done = run(
        tmp_path, "add", "--id", "git", "--env", "A=b=c", "--", "uvx", "mcp-server-git", "--v"
    )

    assert done.returncode == 0, done.stderr
    assert "# mine" in config.read_text()
    assert "# keep" in config.read_text()
    listed = json.loads(run(tmp_path, "list", "--json").stdout)
    assert [one["id"] for one in listed] == ["files", "git"]
    assert "A: b=c" in config.read_text()


@pytest.mark.requirement("S002-54")
def test_an_id_is_generated_when_none_is_given(tmp_path: Path, config: Path) -> None:
    told = json.loads(run(tmp_path, "add", "--url", "https://example.com/mcp", "--json").stdout)

    [ident] = told["added"]
    assert len(ident) == 4
    assert f"{ident}:" in config.read_text()


@pytest.mark.requirement("S002-05")
def test_a_pasted_block_is_imported_from_stdin_or_a_file(tmp_path: Path, config: Path) -> None:
    block = {
        "mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"], "alwaysAllow": []}}
    }
    first = run(tmp_path, "add", "--from", "-", stdin=json.dumps(block))
    (tmp_path / "pasted.json").write_text(json.dumps(block))
    again = run(tmp_path, "add", "--from", "pasted.json")
    replaced = run(tmp_path, "add", "--from", "pasted.json", "--replace")

    assert first.returncode == 0, first.stderr
    assert "Ignored unsupported fields of time: alwaysAllow" in first.stderr
    assert again.returncode != 0
    assert replaced.returncode == 0
    assert "mcp-server-time" in config.read_text()


def test_a_server_is_removed(tmp_path: Path, config: Path) -> None:
    done = run(tmp_path, "remove", "files")
    again = run(tmp_path, "remove", "files")

    assert "Removed files" in done.stdout
    assert "files-server" not in config.read_text()
    assert again.returncode == 2
    assert "has no server" in again.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["add"],
        ["add", "--url", "https://a.example/mcp", "--", "x"],
        ["add", "--env", "nonsense", "--", "x"],
        ["add", "--from", "absent.json"],
        ["add", "--id", "files", "--", "x"],
        ["add", "--id", "two words", "--", "x"],
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(
    tmp_path: Path, config: Path, words: list[str]
) -> None:
    done = run(tmp_path, *words)

    assert done.returncode == 2
    assert done.stderr
    assert config.read_text() == TEXT


def test_without_a_config_there_is_nothing_to_edit(tmp_path: Path) -> None:
    done = run(tmp_path, "add", "--", "x")

    assert done.returncode == 1
    assert "thoughtgate init" in done.stderr


def test_a_trusted_file_stays_trusted_when_its_servers_change(tmp_path: Path) -> None:
    (tmp_path / "thoughtgate.yaml").write_text(TEXT)
    env = {"HOME": str(tmp_path), "THOUGHTGATE_STATE_DIR": str(tmp_path)}
    assert json.loads(run(tmp_path, "list", "--json").stdout) == []
    assert run_warm("trust", "--yes", env=env, cwd=tmp_path).returncode == 0
    assert run(tmp_path, "add", "--id", "git", "--", "uvx").returncode == 0
    (entry,) = json.loads(run_warm("trust", "--list", "--json", env=env, cwd=tmp_path).stdout)
    assert entry["status"] == "trusted"
    assert [one["id"] for one in json.loads(run(tmp_path, "list", "--json").stdout)] == [
        "files",
        "git",
    ]


TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3


def test_the_list_shows_what_is_run_without_secrets(tmp_path: Path, config: Path) -> None:
    config.write_text(
        f"{TEXT}  git: {{command: npx, args: [-y, 'a server', --token, {TOKEN}], env: {{K: v}}}}\n"
        f"  web: {{url: 'https://example.com/mcp?api_key=pa55word99abcdef'}}\n  off: {{command: x, enabled: false}}\n"
    )

    table, told = run(tmp_path, "list").stdout, run(tmp_path, "list", "--json").stdout

    assert table.splitlines()[0].split() == ["ID", "KIND", "STATUS", "RUNS"]
    assert "npx -y 'a server' --token" in table
    assert "not running" in table
    assert "disabled" in table
    assert json.loads(told)[1]["env"] == ["K"]
    for text in (table, told):
        assert TOKEN not in text
        assert "pa55word99" not in text


def test_pasted_secrets_are_named_and_kept_unless_told_otherwise(
    tmp_path: Path, config: Path
) -> None:
    done = run(tmp_path, "add", "--id", "git", "--env", f"GITHUB_TOKEN={TOKEN}", "--", "npx")

    assert done.returncode == 0
    assert "git.env.GITHUB_TOKEN contains a GitHub token" in done.stderr
    assert "--move-secrets" in done.stderr
    assert TOKEN not in done.stdout + done.stderr
    assert TOKEN in config.read_text()
    kept = run(
        tmp_path, "add", "--keep-secrets", "--id", "b", "--env", f"T_TOKEN={TOKEN}", "--", "x"
    )
    assert "--move-secrets" not in kept.stderr


def test_pasted_secrets_move_to_variables_and_the_rest_of_the_file_stays(
    tmp_path: Path, config: Path
) -> None:
    block = {"mcpServers": {"git": {"command": "npx", "env": {"GITHUB_TOKEN": TOKEN}}}}

    done = run(tmp_path, "add", "--move-secrets", "--from", "-", stdin=json.dumps(block))

    assert done.returncode == 0, done.stderr
    text = config.read_text()
    assert TOKEN not in text + done.stdout + done.stderr
    assert "GITHUB_TOKEN: ${GITHUB_TOKEN}" in text
    assert text.startswith(TEXT)
    file = tmp_path / "variables.env"
    assert file.read_text("utf-8") == f"GITHUB_TOKEN={TOKEN}\n"
    assert f"set -a; . {file}; set +a" in done.stderr
