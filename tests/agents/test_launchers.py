"""Launchers before an agent's name: what is skipped, what they change, what is refused."""

import os
from pathlib import Path

import pytest

from thoughtgate.agents.detection import detect_launched
from thoughtgate.agents.launchers import Launch, find_launch, program_name
from thoughtgate.errors import UsageError

CWD = Path("/work/shop")


def _find(line: str, **env: str) -> Launch:
    return find_launch(line.split(), env, CWD, user="ann")


@pytest.mark.parametrize(
    ("line", "start"),
    [
        ("claude -p hi", 0),
        ("/opt/agents/claude -p hi", 0),
        ("env claude", 1),
        ("/usr/bin/env -i -u X A=1 B=2 claude", 6),
        ("env -u X -- claude", 4),
        ("env -uX - A=1 claude", 4),
        ("nice claude", 1),
        ("nice -n 10 claude", 3),
        ("nice -10 claude", 2),
        ("nice --adjustment=5 claude", 2),
        ("time -p claude", 2),
        ("time -o out -f %e claude", 5),
        ("timeout -k 5 1h claude", 4),
        ("nohup setsid claude", 2),
        ("stdbuf -oL claude", 2),
        ("ionice -c 3 nice env A=1 claude", 6),
        ("sudo -u ann claude", 3),
        ("sudo -E -u ann A=1 claude", 5),
        ("npx claude", 1),
        ("npx -y -p @anthropic-ai/claude-code claude", 4),
        ("npx --package=@anthropic-ai/claude-code -- claude", 3),
        ("npm exec -- claude", 3),
        ("pnpm dlx @anthropic-ai/claude-code", 2),
        ("bunx @anthropic-ai/claude-code@latest", 1),
        ("bun x @anthropic-ai/claude-code", 2),
        ("npx -y @anthropic-ai/claude-code@2.1.197 -p hi", 2),
        ("uvx --from some-package --python 3.12 claude", 5),
        ("uv tool run claude", 3),
        ("pipx run --spec some-package claude", 4),
        ("node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js --resume", 1),
        ("node --require ./x.js /opt/claude.mjs", 3),
        ("bun /opt/claude.js", 1),
    ],
)
def test_the_agent_behind_launchers_is_recognised(line: str, start: int) -> None:
    launch = _find(line)

    assert launch.start == start
    assert launch.argv == tuple(line.split()[start:])
    assert detect_launched(launch) == "claude-code"


def test_env_changes_what_discovery_looks_at() -> None:
    launch = _find("env -u CODEX_HOME -C sub HOME=/srv/bot X=a=b codex", CODEX_HOME="/c", KEPT="1")
    assert launch.env == {"HOME": "/srv/bot", "X": "a=b", "KEPT": "1"}
    assert launch.cwd == CWD / "sub"
    assert launch.clears
    assert not _find("env A=1 codex").clears
    assert _find("env -i A=1 codex", OTHER="x").env == {"A": "1"}
    assert _find("env - A=1 codex", OTHER="x").env == {"A": "1"}


@pytest.mark.parametrize(
    "line",
    [
        "docker run -it --rm image claude",
        "docker compose exec app claude",
        "podman exec -it box claude",
        "flatpak run com.visualstudio.code",
        "toolbox run claude",
        "ssh host claude",
        "nice docker run image claude",
    ],
)
def test_an_agent_in_another_place_is_refused_by_name(line: str) -> None:
    name = "docker" if "docker" in line else line.split(maxsplit=1)[0]
    with pytest.raises(UsageError, match=f"'{name}' starts the agent where its config files"):
        _find(line)


@pytest.mark.parametrize("line", ["sudo claude", "sudo -u bob claude", "doas -ubob claude"])
def test_another_users_agent_is_refused_with_the_command_that_works(line: str) -> None:
    target = "bob" if "bob" in line else "root"
    with pytest.raises(UsageError, match=f"-u {target} thoughtgate wrap -- AGENT"):
        _find(line)


def test_the_own_user_by_number_is_the_own_user() -> None:
    assert _find(f"sudo -u #{os.getuid()} claude").argv == ("claude",)


def test_words_that_only_a_shell_or_env_would_split_are_refused() -> None:
    with pytest.raises(UsageError, match="env -S"):
        _find("env -S claude")


@pytest.mark.parametrize("line", ["env", "nice -n 10", "npx", "npm install x", "env A=1", "uv"])
def test_a_launcher_that_starts_nothing_stays_the_command(line: str) -> None:
    assert _find(line).argv == tuple(line.split())
    with pytest.raises(UsageError, match="is not a known agent"):
        detect_launched(_find(line))


def test_a_long_chain_ends() -> None:
    assert find_launch(["nice"] * 1000 + ["claude"], {}, CWD).argv[0] == "nice"


def test_a_name_is_without_directory_and_suffix() -> None:
    assert program_name(r"C:\tools\codex.exe") == "codex"
