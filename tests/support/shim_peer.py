"""A real shim before a real server, its config, its state and what reached the server."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.commands import sample_server, shim
from tests.support.stdio_peer import StdioPeer

ALLOW_ALL = "schema: 1\ndefault: forward\n"


class ShimPeer(StdioPeer):
    """An agent's view of one shim, with the evidence that it leaves behind."""

    def __init__(
        self,
        folder: Path,
        config: str | None = ALLOW_ALL,
        *,
        server: Sequence[str] | None = None,
        options: Sequence[str] = (),
        flags: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        agent: Sequence[str] = (),
    ) -> None:
        """Start a shim; ``agent`` is a command between the test and the shim, such as ``AGENT``."""
        self.folder = folder
        self.state = folder / "state"
        self.log = folder / "reached.jsonl"
        settings = folder / "thoughtgate.yaml"
        if config is not None:
            settings.write_text(config, "utf-8")
            flags = ["-c", str(settings), *flags]
        command = server or sample_server("--log", str(self.log), *options)
        super().__init__(
            [*agent, *shim(list(command), "--state-dir", str(self.state), *flags)],
            env={"THOUGHTGATE_STATE_DIR": str(self.state), **(env or {})},
            cwd=folder,
        )

    def reached(self) -> list[Any]:
        """Return the messages that reached the sample server, in order."""
        return [json.loads(line) for line in self.reached_lines()]

    def reached_lines(self) -> list[str]:
        """Return the lines that reached the sample server, as they arrived."""
        if not self.log.exists():
            return []
        entries = map(json.loads, self.log.read_text("utf-8").splitlines())
        return [entry["line"] for entry in entries]

    def calls_reached(self) -> list[str]:
        """Return the tools that were called at the server."""
        return [
            body["params"]["name"]
            for body in self.reached()
            if isinstance(body, dict) and body.get("method") == "tools/call"
        ]

    def record(self) -> list[dict[str, Any]]:
        """Return the events of the record."""
        text = (self.state / "audit.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of one type."""
        return [event for event in self.record() if event["type"] == kind]

    def answers(self, count: int) -> dict[int | str, Any]:
        """Return so many responses by their ids, skipping everything else."""
        found: dict[int | str, Any] = {}
        while len(found) < count:
            body = self.receive()
            if "method" not in body:
                assert body["id"] not in found, f"two answers to {body['id']}"
                found[body["id"]] = body
        return found
