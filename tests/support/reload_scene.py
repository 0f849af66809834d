"""A gate with a config file that is edited, and the people who are asked about it."""

import json
import os
from pathlib import Path
from typing import Any

from thoughtgate.config.settings import Settings
from thoughtgate.core.approval import PENDING, Approval, Vote
from thoughtgate.core.open_calls import CallRequest
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.gate.open_governor import open_governor
from thoughtgate.gate.reload import Reloader
from thoughtgate.wire.methods import Named

FORWARD = "schema: 1\ndefault: forward\n"
DENY = "schema: 1\ndefault: deny\nholds: {connection: 3}\n"
RULES = "schema: 1\ndefault: deny\nrules:\n  - {tool: echo, action: forward}\n"


class Scene:
    """A governor, its files and a watch on them."""

    def __init__(
        self,
        folder: Path,
        policy: str = FORWARD,
        state: Path | None = None,
        environ: dict[str, str] | None = None,
    ) -> None:
        env = environ or {}
        self.path = folder / "thoughtgate.yaml"
        self.path.write_text(policy, "utf-8")
        self.state = state or folder / "state"
        self.state.mkdir(exist_ok=True)
        self.said: list[str] = []
        self.adopted: list[Settings] = []
        loaded = load_configuration(str(self.path), env, str(folder))
        self.record = f"audit-{id(self)}.jsonl"
        self.governor = open_governor(
            loaded, {}, str(self.state), audit=str(self.state / self.record)
        )
        self.governor.start(now())
        self.watch = Reloader(
            self.governor,
            loaded,
            lambda: load_configuration(
                str(self.path), env, str(folder), profile=loaded.policy.profile
            ),
            self.said.append,
            environ=env,
            adopt=self.adopted.append,
        )
        self.store = open_store(str(self.state))

    def write(self, text: str) -> None:
        self.path.write_text(text, "utf-8")
        # Some file systems keep time in whole seconds; the size tells these apart as well.
        os.utime(self.path, ns=(0, len(text)))
        self.watch.look(now())

    def action(self, tool: str = "echo") -> str:
        named = (Named("tool", tool, {}),)
        question = CallRequest("s", "1", "me", "tools/call", named, 10, "mcp_stdio", now())
        return self.governor.rule(question).verdict.action

    def changes(self) -> list[dict[str, Any]]:
        self.governor.flush()
        lines = (self.state / self.record).read_text("utf-8").splitlines()
        found = [json.loads(line) for line in lines]
        return [one["policy"] for one in found if one["type"] == "policy_changed"]

    def outcomes(self) -> list[str]:
        return [one["outcome"] for one in self.changes()]

    def questions(self) -> list[Approval]:
        return self.store.listed(PENDING)

    def decide(self, *, approve: bool, by: str = "terminal:ann") -> None:
        (question,) = self.questions()
        decided = self.store.vote(question.id, [Vote(by, approve, now())], now())
        assert isinstance(decided, Approval), decided
        self.watch.look(now())

    def accepted(self) -> str:
        found = self.store.policies().accepted(str(self.path))
        return found.file.texts[str(self.path)] if found is not None else ""

    def accept(self, by: str = "terminal:ann") -> None:
        """Accept the file as it is now, as ``policy accept`` does."""
        loaded = load_configuration(str(self.path), {}, str(self.path.parent))
        self.store.policies().accept(loaded.own_file, by, now())
        self.watch.look(now())

    def close(self) -> None:
        self.store.close()
        self.governor.finish("SUCCEEDED", now())
