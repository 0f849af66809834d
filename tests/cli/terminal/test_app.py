"""The terminal interface over a real hub: what it shows, and what its keys do."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.support.approvals import an_approval
from tests.support.commands import AGENT
from tests.support.frames import call
from tests.support.hub import Served, sample, serving
from tests.support.postgres import PostgresServer
from tests.support.waiting import run_async
from textual.pilot import Pilot
from textual.widgets import DataTable, Footer, Label, Static

from thoughtgate.channels.approval_view import approval_object
from thoughtgate.cli.terminal.app import GateApp
from thoughtgate.cli.terminal.keyed_table import KeyedTable
from thoughtgate.cli.terminal.screens import ApproveScreen, ReasonScreen, TextScreen
from thoughtgate.core.grant import EXACT, SESSION, TOOL, Remember
from thoughtgate.errors import UsageError
from thoughtgate.status.tui_data import TuiSource
from thoughtgate.stores.gates import GateStore
from thoughtgate.stores.open_database import StoreLocation, open_database

RULES = [{"tool": "transfer", "action": "approve"}]


def cells(app: GateApp, name: str) -> list[list[str]]:
    table = app.query_one(f"#{name}-table", DataTable)
    return [[str(cell) for cell in table.get_row_at(row)] for row in range(table.row_count)]


def said(app: GateApp) -> str:
    return str(app.screen_stack[0].query_one("#message", Static).content)


def shown(app: GateApp, name: str) -> str:
    """Return the text of a widget of the main screen."""
    widget = app.screen_stack[0].query_one(f"#{name}", Static)
    return "\n".join(strip.text for strip in widget.render_lines(widget.size.region))


def page(app: GateApp) -> str:
    return str(app.screen.query_one("#page", Static).content)


async def until(pilot: Pilot[None], condition: Callable[[], Any]) -> None:
    for _ in range(200):
        if condition():
            return
        await pilot.pause(0.05)
    raise AssertionError("it did not come true")


def drive(
    hub: Served,
    work: Callable[[GateApp, Pilot[None]], Awaitable[None]],
    size: tuple[int, int] = (140, 40),
) -> None:
    async def main() -> None:
        app = GateApp(TuiSource({"THOUGHTGATE_STATE_DIR": str(hub.state), "HOME": str(hub.state)}))
        async with app.run_test(size=size) as pilot:
            await work(app, pilot)

    run_async(main())


def test_servers_are_shown_started_stopped_and_their_logs_read(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--stderr", "hello from one")}) as hub:
        hub.open()

        async def work(app: GateApp, pilot: Pilot[None]) -> None:
            await until(pilot, lambda: cells(app, "servers"))
            assert cells(app, "servers")[0][:2] == ["one", "idle"]
            await pilot.press("4", "s")
            await until(pilot, lambda: cells(app, "servers")[0][1] == "running")
            await pilot.press("l")
            await until(pilot, lambda: "hello from one" in page(app))
            await pilot.press("escape", "r")
            await until(pilot, lambda: "was restarted" in said(app))
            await pilot.press("x")
            await until(pilot, lambda: cells(app, "servers")[0][1] == "stopped")

        drive(hub, work)
        assert hub.server("one")["status"] == "halted"


def test_the_reason_of_a_failure_can_be_read_in_full(tmp_path: Path) -> None:
    with serving(tmp_path, {"broken": {"command": "/missing/server"}}) as hub:
        hub.open()

        async def work(app: GateApp, pilot: Pilot[None]) -> None:
            await until(pilot, lambda: cells(app, "servers"))
            await pilot.press("4", "s")
            await until(pilot, lambda: cells(app, "servers")[0][1] == "failed")
            await pilot.press("enter")
            await until(pilot, lambda: "could not be started" in page(app))

        drive(hub, work, size=(80, 24))


def test_calls_are_followed_and_approvals_answered(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}, agent=AGENT, rules=RULES) as hub:
        hub.open()
        hub.text(1, "one.echo", {"text": "x"})
        hub.send(call(2, "one.transfer", {"amount": 2}))
        hub.send(call(3, "one.transfer", {"amount": 3}))

        async def work(app: GateApp, pilot: Pilot[None]) -> None:
            await until(pilot, lambda: len(cells(app, "inbox")) == 2)
            assert "2 approvals pending" in app.sub_title
            rows = {row[2]: row for row in cells(app, "calls")}
            assert rows["echo"][3:5] == ["allowed", "ok"]
            assert rows["transfer"][3:5] == ["held", "open"]
            await until(pilot, lambda: "3 calls, 2 held, 1 allowed" in shown(app, "overview-text"))
            assert "2 approvals pending, the next expires in" in shown(app, "overview-text")
            await pilot.press("3", "down", "down", "enter")
            await until(pilot, lambda: "tool echo of one" in page(app))
            await pilot.press("escape", "2", "down")
            await until(pilot, lambda: '"amount": 2' in shown(app, "detail"))
            await pilot.press("a", "y")
            await until(pilot, lambda: len(cells(app, "inbox")) == 1)
            await pilot.press("down", "d")
            await pilot.press(*"too much", "enter")
            await until(pilot, lambda: not cells(app, "inbox"))

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
            await pilot.press("2", "a", "d", "3", "s", "a")
            hub.send(call(2, "one.transfer", {"amount": 2}))
            await until(pilot, lambda: cells(app, "inbox"))
            await pilot.press("2", "down", "d")
            assert isinstance(app.screen, ReasonScreen)
            await pilot.press("escape", "a")
            assert isinstance(app.screen, ApproveScreen)
            await pilot.press("escape")
            assert len(cells(app, "inbox")) == 1

        drive(hub, work)


def test_a_gate_that_is_gone_is_said(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()

        async def work(app: GateApp, pilot: Pilot[None]) -> None:
            await until(pilot, lambda: cells(app, "servers"))
            hub.close_stdin()
            await asyncio.to_thread(hub.wait)
            await pilot.press("4", "s")
            gone = ("cannot be controlled", "has exited")
            await until(
                pilot, lambda: any(one in said(app) for one in gone) or not cells(app, "servers")
            )

        drive(hub, work)


def test_the_gates_of_other_machines_are_shown(tmp_path: Path, postgres: PostgresServer) -> None:
    location = StoreLocation(tmp_path, postgres.url())
    now = time.time()
    with closing(open_database(location)) as database:
        gates = GateStore(database)
        for name, started in (("a", now - 1000), ("b", now)):
            facts = {"kind": "proxy", "server": "one", "host": name, "pid": 7, "held": 2}
            gates.renew(f"gate|{name}", started, facts, started)
    environ = {"THOUGHTGATE_STATE_DIR": str(tmp_path), "HOME": str(tmp_path)}

    async def main() -> None:
        app = GateApp(TuiSource(environ, location))
        async with app.run_test(size=(140, 40)) as pilot:
            await until(pilot, lambda: len(cells(app, "gates")) == 2)
            await pilot.press("5")
            gone, running = cells(app, "gates")
            assert gone[:4] == ["proxy one", "a", "7", "gone"]
            assert "died or cannot reach the store" in gone[-1]
            assert running[:4] == ["proxy one", "b", "7", "running"]
            assert "2 share the store" in app.sub_title

    run_async(main())


class FixedSource(TuiSource):
    """Shows the approvals that a test puts there, and keeps the decisions."""

    def __init__(self, *idents: str) -> None:
        super().__init__({"THOUGHTGATE_STATE_DIR": "/nowhere"})
        self.idents = list(idents)
        self.decided: list[tuple[str, bool, str]] = []
        self.remembered: list[Remember | None] = []

    def look(self) -> dict[str, Any]:
        asked = [
            approval_object(
                an_approval(
                    id=one, tool=f"tool_{one}", digest=f"digest of {one}", client="edi\u200btor 2"
                )
            )
            for one in self.idents
        ]
        return {"gates": [], "calls": [], "servers": [], "approvals": asked}

    def call_page(self, approval: str, page: int) -> tuple[str, int]:
        if approval == "gone":
            raise UsageError("there is no approval gone")
        return f"page {page} of {approval} [bold]", 2

    def decide(
        self,
        approval: str,
        *,
        approve: bool,
        reason: str = "",
        digest: str = "",
        remember: Remember | None = None,
    ) -> str:
        del reason
        self.decided.append((approval, approve, digest))
        self.remembered.append(remember)
        return f"{approval} is decided"


def drive_fixed(
    source: FixedSource,
    work: Callable[[GateApp, Pilot[None]], Awaitable[None]],
    size: tuple[int, int] = (140, 40),
) -> None:
    async def main() -> None:
        app = GateApp(source)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: len(cells(app, "inbox")) == len(source.idents))
            await pilot.press("2")
            await work(app, pilot)

    run_async(main())


def selected(app: GateApp) -> str | None:
    return app.screen_stack[0].query_one("#inbox-table", KeyedTable).selected


def labels(app: GateApp) -> str:
    return "\n".join(str(one.content) for one in app.screen.query(Label))


@pytest.mark.promise("keys-never-change-meaning")
def test_a_refresh_never_selects_another_call() -> None:
    source = FixedSource("aa", "bb", "cc")

    async def work(app: GateApp, pilot: Pilot[None]) -> None:
        assert selected(app) is None
        await pilot.press("a")
        assert "Select a row first" in said(app)
        await pilot.press("down", "down")
        assert selected(app) == "bb"
        source.idents = ["zz", "aa", "bb", "cc"]
        app.show_status(source.look())
        assert selected(app) == "bb"
        source.idents = ["zz", "aa", "cc"]
        app.show_status(source.look())
        assert selected(app) is None
        await pilot.press("a", "d", "enter")
        assert len(app.screen_stack) == 1
        await pilot.press("up")
        assert selected(app) is not None

    drive_fixed(source, work)
    assert source.decided == []


@pytest.mark.parametrize(
    ("keys", "told"), [("2a", "Nothing waits for you."), ("4s", "No gate runs a server.")]
)
def test_a_key_on_an_empty_table_says_that_there_is_nothing(keys: str, told: str) -> None:
    async def work(app: GateApp, pilot: Pilot[None]) -> None:
        await pilot.press(*keys)
        assert said(app) == told

    drive_fixed(FixedSource(), work)


@pytest.mark.promise("keys-never-change-meaning")
def test_a_confirmation_names_the_call_and_decides_that_call_only() -> None:
    source = FixedSource("aa", "bb")

    async def work(app: GateApp, pilot: Pilot[None]) -> None:
        await pilot.press("down", "a")
        for part in ("tool_aa", "files", "aa", "local (says it is edi[U+200B]tor 2)"):
            assert part in labels(app)
        source.idents = ["bb"]
        app.show_status(source.look())
        await pilot.press("y")
        await until(pilot, lambda: source.decided)
        assert source.decided == [("aa", True, "digest of aa")]
        await pilot.press("down", "d")
        assert "tool_bb" in labels(app)
        await pilot.press("enter")
        await until(pilot, lambda: len(source.decided) == 2)

    drive_fixed(source, work)
    assert source.decided[1] == ("bb", False, "digest of bb")


@pytest.mark.parametrize(("key", "scope"), [("s", EXACT), ("t", TOOL)])
def test_one_key_approves_for_the_session(key: str, scope: str) -> None:
    source = FixedSource("aa")

    async def work(app: GateApp, pilot: Pilot[None]) -> None:
        await pilot.press("down", "a")
        assert "until the session ends" in labels(app)
        await pilot.press(key)
        await until(pilot, lambda: source.decided)

    drive_fixed(source, work)
    assert source.decided == [("aa", True, "digest of aa")]
    assert source.remembered == [Remember(SESSION, scope)]


@pytest.mark.promise("approver-sees-every-character")
def test_enter_shows_the_whole_call_page_by_page() -> None:
    source = FixedSource("aa", "gone")

    async def work(app: GateApp, pilot: Pilot[None]) -> None:
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, TextScreen))
        await until(pilot, lambda: "page 0 of aa [bold]" in page(app))
        await pilot.press("n")
        await until(pilot, lambda: "page 1 of aa" in page(app))
        await pilot.press("n", "p")
        await until(pilot, lambda: "page 0 of aa" in page(app))
        assert "page 1 of 2" in labels(app)
        await pilot.press("escape", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, TextScreen) and "failed" in page(app))

    drive_fixed(source, work)


def test_a_click_selects_the_row() -> None:
    source = FixedSource("aa", "bb")

    async def work(app: GateApp, pilot: Pilot[None]) -> None:
        await pilot.click("#inbox-table", offset=(3, 2))
        await until(pilot, lambda: selected(app) == "bb")

    drive_fixed(source, work)


def test_a_call_that_was_read_in_full_can_be_decided_there() -> None:
    source = FixedSource("aa", "bb")

    async def work(app: GateApp, pilot: Pilot[None]) -> None:
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, TextScreen))
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ApproveScreen))
        assert "tool_bb" in labels(app)
        assert "path: /tmp/x" in labels(app)
        await pilot.press("y")
        await until(pilot, lambda: source.decided)

    drive_fixed(source, work)
    assert source.decided == [("bb", True, "digest of bb")]


def test_the_footer_offers_only_keys_that_do_something() -> None:
    source = FixedSource("aa")

    def offered(app: GateApp) -> set[str]:
        return {one.binding.description for one in app.screen.active_bindings.values()}

    async def work(app: GateApp, pilot: Pilot[None]) -> None:
        await until(pilot, lambda: {"Approve", "Deny"} <= offered(app))
        assert "Stop" not in offered(app)
        assert app.query_one(Footer).region.width <= 80
        await pilot.press("4")
        await until(pilot, lambda: {"Start", "Stop", "Restart", "Log"} <= offered(app))
        assert "Approve" not in offered(app)
        await pilot.press("5", "a", "x")
        assert len(app.screen_stack) == 1

    drive_fixed(source, work, size=(80, 24))


def test_a_list_and_the_whole_of_a_short_call_fit_a_small_terminal() -> None:
    source = FixedSource(*(f"a{number}" for number in range(9)))

    async def work(app: GateApp, pilot: Pilot[None]) -> None:
        await pilot.press("down")
        table, details = app.query_one("#inbox-table"), app.query_one("#details")
        await until(pilot, lambda: "page 0 of a0" in shown(app, "detail"))
        assert 5 <= table.region.height <= 10
        assert details.region.height >= 8
        assert table.virtual_size.width <= 80

    drive_fixed(source, work, size=(80, 24))
