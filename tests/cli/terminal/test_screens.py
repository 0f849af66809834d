"""The screen that shows long texts; confirmations are tested with the whole interface."""

from typing import Any

from tests.support.waiting import run_async
from textual.app import App
from textual.pilot import Pilot
from textual.widgets import Static

from thoughtgate.cli.terminal.screens import TextScreen
from thoughtgate.errors import PeerGone


async def until_shown(pilot: Pilot[Any], text: str) -> None:
    for _ in range(200):
        if text in str(pilot.app.screen.query_one("#page", Static).content):
            return
        await pilot.pause(0.05)
    raise AssertionError(f"{text!r} is not shown")


def test_a_log_is_followed_and_a_failure_is_said() -> None:
    lines = ["first"]

    def read(_page: int) -> tuple[str, int]:
        if len(lines) > 2:
            raise PeerGone("the gate has exited")
        return "\n".join(lines), 1

    async def main() -> None:
        app = App[None]()
        async with app.run_test(size=(80, 24)) as pilot:
            await app.push_screen(TextScreen("Log", read, follows=True))
            await until_shown(pilot, "first")
            lines.append("second")
            await until_shown(pilot, "second")
            lines.append("third")
            await until_shown(pilot, "failed: the gate has exited")
            await pilot.press("a", "n")
            assert isinstance(app.screen, TextScreen)
            await pilot.press("escape")
            assert not isinstance(app.screen, TextScreen)

    run_async(main())


def test_markup_in_a_text_is_shown_as_it_is() -> None:
    async def main() -> None:
        app = App[None]()
        async with app.run_test(size=(80, 24)) as pilot:
            await app.push_screen(TextScreen("[b]Log[/b]", lambda _page: ("[red]x[/red]", 1)))
            await until_shown(pilot, "[red]x[/red]")

    run_async(main())
