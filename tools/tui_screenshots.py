"""Pictures of the terminal interface over a real hub: ``make tui-screenshots``.

Starts ``serve`` with sample servers (one of them broken), makes calls, leaves two waiting
for a person, and exports what the interface shows as SVG.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from textual.widgets import DataTable

from thoughtgate.cli.tui_app import GateApp
from thoughtgate.status.tui_data import TuiSource
from thoughtgate.testing.scripted_agent import ScriptedAgent

OUT: Final = Path(__file__).parents[1] / "docs" / "images"
SIZE: Final = (120, 32)
PATIENCE: Final = 200
PATIENCE_S: Final = 300.0
"""All pictures are taken long before."""

RULES: Final = [
    {"tool": "transfer", "when": {"amount": {"gt": 100}}, "action": "approve"},
    {"tool": "delete_*", "action": "approve"},
    {"tool": "env", "action": "deny"},
]
CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("notes.read_note", {"name": "welcome"}),
    ("bank.transfer", {"amount": 20, "to": "ann"}),
    ("notes.env", {}),
    ("notes.add", {"a": 2, "b": 3}),
    ("search.echo", {"text": "weather in Oslo"}),
    ("broken.anything", {}),
)
HELD: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("bank.transfer", {"amount": 5000, "to": "bob"}),
    ("notes.delete_note", {"name": "draft"}),
)


def _config(folder: Path) -> Path:
    sample = {"command": sys.executable, "args": ["-m", "thoughtgate.testing.sample_server"]}
    loud = {**sample, "args": [*sample["args"], "--stderr", "notes server ready"]}
    config = {
        "schema": 1,
        "default": "forward",
        "rules": RULES,
        "servers": {
            "notes": {**loud, "name": "Notes"},
            "bank": {**sample, "name": "Bank"},
            "search": {**sample, "name": "Search"},
            "mail": {**sample, "name": "Mail"},
            "broken": {"command": "/opt/missing/server"},
        },
    }
    path = folder / "thoughtgate.yaml"
    path.write_text(json.dumps(config), "utf-8")
    return path


def _work(agent: ScriptedAgent) -> None:
    agent.open()
    for name, arguments in CALLS:
        agent.ask("tools/call", {"name": name, "arguments": arguments})
    for name, arguments in HELD:
        line = {
            "jsonrpc": "2.0",
            "id": name,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        agent.send_raw(json.dumps(line))


async def _take(out: Path) -> list[Path]:
    app = GateApp(TuiSource())
    taken = []
    async with app.run_test(size=SIZE) as pilot:

        async def until(condition: Callable[[], Any]) -> None:
            for _ in range(PATIENCE):
                if condition():
                    return
                await pilot.pause(0.05)
            raise SystemExit("the interface does not show what it should")

        def rows(name: str) -> int:
            return int(app.query_one(f"#{name}-table", DataTable).row_count)

        await until(lambda: rows("approvals") == len(HELD))
        for key, name in (("1", "servers"), ("2", "calls"), ("3", "approvals")):
            await pilot.press(key)
            if name == "servers":
                await pilot.press("l")
            await pilot.pause(0.3)
            path = out / f"tui-{name}.svg"
            path.write_text(app.export_screenshot(title="thoughtgate tui"), "utf-8")
            taken.append(path)
    return taken


def main() -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser("tui_screenshots", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the pictures")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["THOUGHTGATE_STATE_DIR"] = str(Path(folder, "state"))
        command = [
            str(Path(sys.executable).with_name("thoughtgate")),
            *("serve", "--stdio", "--log-level", "error", "-c", str(_config(Path(folder)))),
            *("--state-dir", os.environ["THOUGHTGATE_STATE_DIR"]),
        ]
        with ScriptedAgent(command) as agent:
            _work(agent)
            for path in asyncio.run(asyncio.wait_for(_take(options.out), PATIENCE_S)):
                print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
