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

from thoughtgate.cli.terminal.app import GateApp
from thoughtgate.status.tui_data import TuiSource
from thoughtgate.testing.scripted_agent import ScriptedAgent

OUT: Final = Path(__file__).parents[1] / "docs" / "images"
SIZE: Final = "120x32"
PICTURES: Final = {
    "overview": ("1",),
    "inbox": ("2", "down"),
    "request": ("enter",),
    "approve": ("a",),
    "deny": ("d",),
    "calls": ("3",),
    "call": ("enter",),
    "servers": ("4",),
    "log": ("down", "l"),
    "gates": ("5",),
}
"""The pictures, and the keys that lead to them."""
SHOWN: Final = ("overview", "inbox", "calls", "servers")
"""Those that the documentation shows; the others are for a look at every screen."""

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


async def _take(out: Path, size: tuple[int, int], pictures: list[str]) -> list[Path]:
    app = GateApp(TuiSource())
    taken = []
    async with app.run_test(size=size) as pilot:

        async def until(condition: Callable[[], Any]) -> None:
            for _ in range(PATIENCE):
                if condition():
                    return
                await pilot.pause(0.05)
            raise SystemExit("the interface does not show what it should")

        def rows(name: str) -> int:
            return int(app.query_one(f"#{name}-table", DataTable).row_count)

        await until(lambda: rows("inbox") == len(HELD))
        for name in pictures:
            await pilot.press(*PICTURES[name])
            await pilot.pause(0.5)
            path = out / f"tui-{name}.svg"
            path.write_text(app.export_screenshot(title="thoughtgate tui"), "utf-8")
            taken.append(path)
            while len(app.screen_stack) > 1:
                await pilot.press("escape")
    return taken


def main() -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser("tui_screenshots", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the pictures")
    parser.add_argument("--size", default=SIZE, help="columns and lines")
    parser.add_argument("--all", action="store_true", help="a picture of every screen")
    options = parser.parse_args()
    columns, lines = map(int, options.size.split("x"))
    pictures = list(PICTURES) if options.all else list(SHOWN)
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
            for path in asyncio.run(
                asyncio.wait_for(_take(options.out, (columns, lines), pictures), PATIENCE_S)
            ):
                print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
