"""The terminal interface over a real hub: what it shows, and what its keys do."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from tests.support.commands import AGENT
from tests.support.frames import call
from tests.support.hub import Served, sample, serving
from tests.support.waiting import run_async
from textual.pilot import Pilot
from textual.widgets import DataTable, RichLog

from thoughtgate.cli.tui_app import GateApp
from thoughtgate.status.tui_data import TuiSource

RULES = [{"tool": "transfer", "action": "approve"}]


def cells(app: GateApp, name: str) -> list[list[str]]:
    table = app.query_one(f"#{name}-table", DataTable)
    return [[str(cell) for cell in table.get_row_at(row)] for row in range(table.row_count)]


def logged(app: GateApp) -> str:
    return "\n".join(line.text for line in app.query_one("#log", RichLog).lines)


async def until(pilot: Pilot[None], condition: Callable[[], Any]) -> None:
    for _ in range(200):
        if condition():
            return
        await pilot.pause(0.05)
    raise AssertionError("it did not come true")


def drive(hub: Served, work: Callable[[GateApp, Pilot[None]], Awaitable[None]]) -> None:
    async def main() -> None:
        app = GateApp(TuiSource({"THOUGHTGATE_STATE_DIR": str(hub.state), "HOME": str(hub.state)}))
        async with app.run_test(size=(140, 40)) as pilot:
            await work(app, pilot)

    run_async(main())


def test_servers_are_shown_started_stopped_and_their_logs_read(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--stderr", "hello from one")}) as hub:
        hub.open()

        async def work(app: GateApp, pilot: Pilot[None]) -> None:
            await until(pilot, lambda: cells(app, "servers"))
            assert cells(app, "servers")[0][:2] == ["one", "stopped"]
            assert app.query_one("#servers-table", DataTable).region.height > 5
            await pilot.press("1", "s")
            await until(pilot, lambda: cells(app, "servers")[0][1] == "running")
            await pilot.press("l")
            await until(pilot, lambda: "hello from one" in logged(app))
            await pilot.press("r")
            await until(pilot, lambda: "was restarted" in logged(app))
            await pilot.press("x")
            await until(pilot, lambda: cells(app, "servers")[0][1] == "halted")

        drive(hub, work)
        assert hub.server("one")["status"] == "halted"


def test_calls_are_followed_and_approvals_answered(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}, agent=AGENT, rules=RULES) as hub:
        hub.open()
        hub.text(1, "one.echo", {"text": "x"})
        hub.send(call(2, "one.transfer", {"amount": 2}))
        hub.send(call(3, "one.transfer", {"amount": 3}))

        async def work(app: GateApp, pilot: Pilot[None]) -> None:
            await until(pilot, lambda: len(cells(app, "approvals")) == 2)
            assert "2 approvals pending" in app.sub_title
            assert any(row[2] == "echo" and row[4] == "OK" for row in cells(app, "calls"))
            await pilot.press("3", "a")
            await until(pilot, lambda: len(cells(app, "approvals")) == 1)
            await pilot.press("d")
            await pilot.press(*"too much", "enter")
            await until(pilot, lambda: not cells(app, "approvals"))

        drive(hub, work)
        told = [hub.receive(), hub.receive()]
        kinds = sorted(
            "result" if "result" in one else one["error"]["data"]["kind"] for one in told
        )
        assert kinds == ["approval_rejected", "result"]
        assert "too much" in json.dumps(hub.records())


def test_a_denial_can_be_taken_back_and_keys_without_a_row_do_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}, rules=RULES) as hub:
        hub.open()

        async def work(app: GateApp, pilot: Pilot[None]) -> None:
            await until(pilot, lambda: cells(app, "servers"))
            await pilot.press("3", "a", "d", "2", "s")
            hub.send(call(2, "one.transfer", {"amount": 2}))
            await until(pilot, lambda: cells(app, "approvals"))
            await pilot.press("3", "d")
            await pilot.press("escape")
            await pilot.pause(0.2)
            assert len(cells(app, "approvals")) == 1

        drive(hub, work)


def test_a_gate_that_is_gone_is_said(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()

        async def work(app: GateApp, pilot: Pilot[None]) -> None:
            await until(pilot, lambda: cells(app, "servers"))
            hub.close_stdin()
            await asyncio.to_thread(hub.wait)
            await pilot.press("s")
            await until(pilot, lambda: "not done" in logged(app) or not cells(app, "servers"))

        drive(hub, work)
