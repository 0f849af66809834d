"""The screens that open over the tables: confirmations, a held call, a recorded call, a log."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Footer, Input, Label, Static

from thoughtgate.channels.terminal import Answer, parse_answer
from thoughtgate.cli.terminal.rendering import brief_arguments
from thoughtgate.errors import ThoughtGateError, visible

REFRESH_S: Final = 1.0

_BOX: Final = """
%s { align: center middle; }
#box { width: 90; max-width: 100%%; height: auto; max-height: 100%%; border: round $primary;
       padding: 1 2; background: $surface; }
#box Label { width: 100%%; }
"""


class ApproveScreen(ModalScreen[Answer | None]):
    """Asks whether to approve one call, which it names."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "confirm('yes')", "Approve"),
        Binding("s", "confirm('session')", "This call, for the session"),
        Binding("t", "confirm('tool')", "This tool, for the session"),
        Binding("escape", "give_up", "Back"),
    ]
    CSS = _BOX % "ApproveScreen"

    def __init__(self, approval: Mapping[str, Any]) -> None:
        super().__init__()
        self._approval = approval

    def compose(self) -> ComposeResult:
        """Create the dialog."""
        with Vertical(id="box"):
            yield Label(_named("Approve", self._approval), markup=False)
            if self._approval["arguments_folded"]:
                yield Label("The arguments are long. Esc, then Enter shows all of them.")
            yield Label("")
            yield Label("y    approve this call once", markup=False)
            yield Label("s    also the same call until the session ends", markup=False)
            yield Label("t    also any call of this tool until the session ends", markup=False)
            yield Label("Esc  go back", markup=False)

    def action_confirm(self, word: str) -> None:
        """Approve the call, and later ones as the answer says."""
        self.dismiss(parse_answer(word))

    def action_give_up(self) -> None:
        """Close the dialog without approving the call."""
        self.dismiss(None)


class ReasonScreen(ModalScreen[str | None]):
    """Asks for the reason of a denial of one call, which it names."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Back")]
    CSS = _BOX % "ReasonScreen"

    def __init__(self, approval: Mapping[str, Any]) -> None:
        super().__init__()
        self._approval = approval

    def compose(self) -> ComposeResult:
        """Create the dialog."""
        with Vertical(id="box"):
            yield Label(_named("Deny", self._approval), markup=False)
            yield Label("")
            yield Label("Press Enter to deny, Esc to go back.")
            yield Input(placeholder="reason, for the record", max_length=500)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Deny the call with the reason that was typed."""
        self.dismiss(event.value or "denied in the terminal interface")

    def action_give_up(self) -> None:
        """Close the dialog without denying the call."""
        self.dismiss(None)


class TextScreen(ModalScreen[str]):
    """Shows a text that may be longer than the screen, page by page if it has pages.

    It closes with the name of what the reader wants to do next: nothing, ``approve`` or ``deny``.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "turn(1)", "Next page"),
        Binding("p", "turn(-1)", "Previous page"),
        Binding("a", "close('approve')", "Approve"),
        Binding("d", "close('deny')", "Deny"),
        Binding("escape,q", "close", "Back"),
    ]
    CSS = """
    TextScreen { background: $surface; }
    #head { height: auto; padding: 0 1; text-style: bold; }
    #pages { height: 1fr; padding: 0 1; }
    """

    def __init__(
        self,
        title: str,
        read: Callable[[int], tuple[str, int]],
        *,
        can_decide: bool = False,
        follows: bool = False,
    ) -> None:
        """Show the pages that ``read`` returns, with their number; ``follows`` reads again."""
        super().__init__()
        self._heading = title
        self._read = read
        self._can_decide = can_decide
        self._follows = follows
        self._page = 0
        self._pages = 1

    def compose(self) -> ComposeResult:
        """Create the page."""
        yield Label(self._heading, id="head", markup=False)
        with VerticalScroll(id="pages"):
            yield Static("", id="page", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Show the first page, and what comes later if it follows."""
        self.query_one("#pages").focus()
        self._show()
        if self._follows:
            self.set_interval(REFRESH_S, self._show)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only the keys that do something here."""
        if action == "turn":
            return self._pages > 1
        return self._can_decide or action != "close" or not parameters

    def action_turn(self, by: int) -> None:
        """Show another page."""
        self._page = max(0, min(self._page + by, self._pages - 1))
        self._show()

    def action_close(self, wish: str = "") -> None:
        """Go back to the tables."""
        self.dismiss(wish)

    def _show(self) -> None:
        page = self._page

        def read() -> None:
            try:
                text, pages = self._read(page)
            except ThoughtGateError as error:
                text, pages = f"failed: {error}", 1
            if self.is_running:
                self.app.call_from_thread(self._shown, page, text, pages)

        self.run_worker(read, thread=True, exclusive=True, exit_on_error=False)

    def _shown(self, page: int, text: str, pages: int) -> None:
        # The screen was closed, or another page was chosen, while this one was read.
        if not self.is_mounted or page != self._page:
            return
        self._pages = pages
        where = f", page {page + 1} of {pages}" if pages > 1 else ""
        self.query_one("#head", Label).update(f"{self._heading}{where}")
        scroll = self.query_one("#pages", VerticalScroll)
        # A person who has scrolled back must not lose their place when the log grows.
        was_at_end = scroll.is_vertical_scroll_end
        self.query_one("#page", Static).update(text)
        if not self._follows:
            scroll.scroll_home(animate=False)
        elif was_at_end:
            scroll.scroll_end(animate=False)
        self.refresh_bindings()


def _named(verb: str, approval: Mapping[str, Any]) -> str:
    """Return which call a dialog is about."""
    tool, server, by = (visible(approval[key]) for key in ("tool", "server", "principal"))
    client = approval.get("client")
    says = f" (says it is {visible(client)})" if client else ""
    about = f"{verb} {approval['kind']} {tool}\non server {server}\nasked by {by}{says}"
    return f"{about}\nApproval {approval['id']}: {brief_arguments(approval)}"
