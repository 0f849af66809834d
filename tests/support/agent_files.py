"""A home, a project and a state directory for tests of agents' config files."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.commands import ROOT
from tests.support.waiting import ending, read_line

from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.discovery import Plan, discover
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.injection.injection import Injection, governed
from thoughtgate.agents.injection.ways import inject, search_for_injection
from thoughtgate.agents.rewrite import Rewrite, rewrite
from thoughtgate.agents.wrapped_configs import WrappedConfigs

OURS = "/opt/thoughtgate/bin/thoughtgate"

_WRAP_AND_WAIT = """
import sys
from pathlib import Path
from tests.support.agent_files import Scene, put_behind_gate
configs = Scene(Path(sys.argv[1]), agent="claude-code").configs()
configs.acquire()
configs.write(put_behind_gate)
print("wrapped", flush=True)
sys.stdin.read()
"""


def shim_args(entry: ServerEntry) -> list[str]:
    """Return what wrap puts between our command and the server's."""
    return ["shim", "--server-id", entry.id, "--run", "run1", "--"]


def head(server_id: str) -> list[str]:
    """Return the words that a wrapped command line begins with."""
    return [OURS, "shim", "--server-id", server_id, "--run", "run1", "--"]


def proxy(entry: ServerEntry) -> tuple[str, list[str]]:
    """Return the command that reaches a remote entry."""
    return OURS, [*shim_args(entry), OURS, "proxy", "--server", entry.id]


def put_behind_gate(plan: Plan) -> Rewrite:
    """Rewrite a plan as wrap does."""
    return rewrite(plan, [OURS], shim_args)


@dataclass
class Scene:
    """Directories of one made-up user, and what to look for in them."""

    top: Path
    agent: str = "claude-desktop"
    env: Mapping[str, str] = field(default_factory=dict)
    argv: Sequence[str] = ()
    config_path: Path | None = None
    platform: str = "linux"
    cwd: Path | None = None

    def __post_init__(self) -> None:
        for directory in (self.home, self.project, self.state):
            directory.mkdir(parents=True, exist_ok=True)

    @property
    def home(self) -> Path:
        return self.top / "home"

    @property
    def project(self) -> Path:
        return self.cwd or self.top / "work" / "shop"

    @property
    def state(self) -> Path:
        return self.top / "state"

    @property
    def desktop(self) -> Path:
        """Claude Desktop's file."""
        return self.home / ".config" / "Claude" / "claude_desktop_config.json"

    def write(self, path: Path, content: str | bytes | dict[str, Any]) -> Path:
        """Write a config file and its directories."""
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            content = json.dumps(content, indent=2)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def search(self) -> Search:
        """Return where the agent would look."""
        return Search(
            self.agent,
            self.env,
            self.project,
            self.home,
            self.config_path,
            tuple(self.argv),
            self.platform,
            root=self.top / "machine",
        )

    def plan(self) -> Plan:
        """Discover what the agent would load."""
        return discover(self.search())

    def plan_to_inject(self) -> Plan:
        """Discover what the agent would be given at its start."""
        return discover(search_for_injection(self.search()))

    def inject(self, *, remote: bool = True) -> Injection:
        """Return how the agent is started with governed servers."""
        plan = self.plan_to_inject()
        done = rewrite(plan, [OURS], shim_args, proxy if remote else None)
        return inject(governed(plan, done, plan.search.argv, self.state / "injected"))

    def configs(self, *, key: str = "run1", restore_on_exit: bool = True) -> WrappedConfigs:
        """Return a configs over what the agent would load."""
        return WrappedConfigs(
            self.plan(),
            state=self.state,
            key=key,
            started_at="2026-01-01T00:00:00Z",
            restore_on_exit=restore_on_exit,
        )

    def litter(self) -> list[str]:
        """Return the names of everything of ours that lies about."""
        return sorted(path.name for path in self.top.rglob("*thoughtgate*"))


def server(*words: str, **more: Any) -> dict[str, Any]:
    """Return an entry with a command, or a small default one."""
    argv = words or ("npx", "-y", "files")
    return {"command": argv[0], "args": list(argv[1:]), **more}


def two_files(top: Path) -> Scene:
    """Return a scene of Claude Code with a user's and a project's file."""
    scene = Scene(top, agent="claude-code")
    scene.write(
        scene.home / ".claude.json",
        {
            "userID": "u",
            "mcpServers": {"a": server()},
            "projects": {str(scene.project): {"mcpServers": {"db": server("uvx", "db")}}},
        },
    )
    scene.write(scene.project / ".mcp.json", {"mcpServers": {"b": server("node")}})
    return scene


@contextlib.contextmanager
def wrapping(scene: Scene) -> Iterator[subprocess.Popen[str]]:
    """Run a process that has wrapped the files of a scene."""
    command = [sys.executable, "-c", _WRAP_AND_WAIT, str(scene.top)]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, cwd=ROOT)
    with ending(process):
        assert read_line(process.stdout) == "wrapped\n"
        yield process
