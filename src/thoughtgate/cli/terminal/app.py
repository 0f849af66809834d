"""The terminal interface: an overview, four tables, a detail pane, and key bindings."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Final

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.css.query import NoMatches
from textual.widgets import DataTable, Footer, Header, Static, TabbedContent, TabPane

from thoughtgate.channels.terminal import Answer
from thoughtgate.cli.audit.show import history
from thoughtgate.cli.terminal.keyed_table import KeyedTable
from thoughtgate.cli.terminal.rendering import (
    COLUMNS,
    call_rows,
    gate_rows,
    inbox_rows,
    overview,
    server_rows,
    summary,
)
from thoughtgate.cli.terminal.screens import ApproveScreen, ReasonScreen, TextScreen
from thoughtgate.errors import ThoughtGateError, visible
from thoughtgate.gate.clock import now
from thoughtgate.status.tui_data import ServerKey, TuiSource

REFRESH_S: Final = 1.0

TABS: Final = ("overview", *COLUMNS)

_WHERE: Final = {"server": "servers", "logs": "servers", "approve": "inbox", "deny": "inbox"}
"""The tab on which a key acts; on other tabs, the key does nothing."""

_NOTHING: Final = {"inbox": "Nothing waits for you.", "servers": "No gate runs a server."}
"""The text shown for a table without rows."""


class GateApp(App[None]):
    """Shows and manages the gates of this user."""

    TITLE = "ThoughtGate"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    TabbedContent { height: 1fr; }
    TabbedContent ContentSwitcher { height: 1fr; }
    TabPane { height: 1fr; padding: 0; }
    DataTable { height: 1fr; }
    #inbox-table { height: auto; min-height: 3; max-height: 40%; }
    #details { height: 1fr; border-top: solid $primary; padding: 0 1; }
    #overview-scroll { padding: 0 1; }
    #message { height: auto; max-height: 3; padding: 0 1; background: $panel; text-style: bold; display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"show('{name}')", show=False) for n, name in enumerate(TABS, 1)),
        Binding("a", "approve", "Approve"),
        Binding("d", "deny", "Deny"),
        Binding("s", "server('start')", "Start"),
        Binding("x", "server('stop')", "Stop"),
        Binding("r", "server('restart')", "Restart"),
        Binding("l", "logs", "Log"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, source: TuiSource) -> None:
        super().__init__()
        self._source = source
        self._servers: dict[str, ServerKey] = {}
        self._notes: dict[ServerKey, str] = {}
        """Why servers do not run; the table has no room for the whole text."""
        self._approvals: dict[str, dict[str, Any]] = {}
        self._calls: dict[str, dict[str, Any]] = {}

    def compose(self) -> ComposeResult:
        """Create the tabs."""
        yield Header(show_clock=False, icon=" ")
        with TabbedContent(initial="overview"):
            with TabPane("1 Overview", id="overview"), VerticalScroll(id="overview-scroll"):
                yield Static("", id="overview-text", markup=False)
            for number, (name, titles) in enumerate(COLUMNS.items(), 2):
                with TabPane(f"{number} {name.capitalize()}", id=name):
                    # A call that has just appeared is not selected: nobody may have seen it yet.
                    is_inbox = name == "inbox"
                    yield KeyedTable(
                        titles,
                        selects_first=not is_inbox,
                        opens=name != "gates",
                        id=f"{name}-table",
                    )
                    if is_inbox:
                        with VerticalScroll(id="details", can_focus=False):
                            yield Static("", id="detail", markup=False)
        yield Static("", id="message", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Start refreshing."""
        self.refresh_status()
        self.set_interval(REFRESH_S, self.refresh_status)

    def on_unmount(self) -> None:
        """Close what the source has open."""
        self._source.close()

    # Showing the status.

    def refresh_status(self) -> None:
        """Fetch the status in a thread, so that the interface stays responsive."""
        self.run_worker(
            self._fetch_status, thread=True, exclusive=True, group="status", exit_on_error=False
        )

    def _fetch_status(self) -> None:
        status = self._source.look()
        self.call_from_thread(self.show_status, status)

    def show_status(self, status: dict[str, Any]) -> None:
        """Fill the tables."""
        at = now()
        self._servers = {
            f"{gate.gate} {server.name}": ServerKey(gate.gate, server.name)
            for server in status["servers"]
            for gate in server.gates
        }
        self._notes = {
            ServerKey(gate.gate, server.name): gate.note
            for server in status["servers"]
            for gate in server.gates
        }
        self._approvals = {one["id"]: one for one in status["approvals"]}
        self._calls = {one["call_id"]: one for one in status["calls"]}
        self._table("servers").fill(server_rows(status["servers"]))
        self._table("calls").fill(call_rows(status["calls"], at))
        self._table("inbox").fill(inbox_rows(status["approvals"], at))
        self._table("gates").fill(gate_rows(status, at))
        self._static("overview-text").update(overview(status, at))
        self.sub_title = summary(status)
        self._show_detail()

    def _show_detail(self) -> None:
        """Show the selected request below the list."""
        ident = self._table("inbox").selected
        if ident is None:
            waits = bool(self._approvals)
            text = "Select a request with the arrow keys." if waits else _NOTHING["inbox"]
            self._static("detail").update(text)
            return

        def read() -> None:
            try:
                text, pages = self._source.call_page(ident, 0)
            except ThoughtGateError as error:
                text, pages = f"failed: {error}", 1
            more = "The arguments are long: Enter shows all of them.\n" if pages > 1 else ""
            self.call_from_thread(self._shown_detail, ident, more + text)

        self.run_worker(read, thread=True, exclusive=True, group="detail", exit_on_error=False)

    def _shown_detail(self, ident: str, text: str) -> None:
        if self._table("inbox").selected == ident:
            self._static("detail").update(text)

    def _table(self, name: str) -> KeyedTable:
        # From the main screen, even while a dialog is open.
        return self.screen_stack[0].query_one(f"#{name}-table", KeyedTable)

    def _static(self, name: str) -> Static:
        return self.screen_stack[0].query_one(f"#{name}", Static)

    @property
    def _active(self) -> str:
        return self.screen_stack[0].query_one(TabbedContent).active

    # Key bindings.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only the keys that do something on the tab that is shown."""
        del parameters
        try:
            return action not in _WHERE or _WHERE[action] == self._active
        except (NoMatches, IndexError):  # before the tabs exist
            return False

    def on_tabbed_content_tab_activated(self) -> None:
        """Move the focus to the table, and offer the keys of this tab."""
        if self._active in COLUMNS:
            self._table(self._active).focus()
        else:
            self.screen_stack[0].query_one("#overview-scroll").focus()
        self.refresh_bindings()

    def action_show(self, name: str) -> None:
        """Show a tab."""
        self.query_one(TabbedContent).active = name

    def action_server(self, operation: str) -> None:
        """Start, stop or restart the server under the cursor."""
        key = self._chosen_server()
        if key is not None:
            self.say(f"{operation} {key.server}…")
            self._do(lambda: self._source.act(operation, key))

    def action_logs(self) -> None:
        """Show the log of the server under the cursor, as it grows."""
        key = self._chosen_server()
        if key is None:
            return

        def read(_page: int) -> tuple[str, int]:
            lines = [self._notes.get(key, ""), *self._source.logs(key)]
            text = "\n".join(visible(line) for line in lines if line)
            return text or "The log is empty.", 1

        self.push_screen(TextScreen(f"Log of {visible(key.server)}", read, follows=True))

    def action_approve(self) -> None:
        """Approve the selected call, after naming it."""
        self._ask("approve", self._approvals.get(self._chosen("inbox")))

    def action_deny(self) -> None:
        """Deny the selected call, after naming it and asking for a reason."""
        self._ask("deny", self._approvals.get(self._chosen("inbox")))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show the request that was selected."""
        if event.data_table.id == "inbox-table":
            self._show_detail()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Show a whole call, or a server's log, on Enter."""
        ident, table = event.row_key.value or "", event.data_table.id
        if table == "inbox-table" and ident in self._approvals:
            approval = self._approvals[ident]
            page = partial(self._source.call_page, ident)
            screen = TextScreen("Held call", page, can_decide=True)
            self.push_screen(screen, lambda wish: self._ask(wish or "", approval))
        elif table == "calls-table" and ident in self._calls:
            text = "\n".join(history(self._calls[ident]))
            self.push_screen(TextScreen("Call", lambda _page: (text, 1)))
        elif table == "servers-table":
            self.action_logs()

    def _ask(self, verb: str, approval: Mapping[str, Any] | None) -> None:
        """Ask for the confirmation of a decision."""

        def decided(answer: Answer | None) -> None:
            if answer is not None and approval is not None:
                self._decide(approval, answer)

        def denied(reason: str | None) -> None:
            decided(None if reason is None else Answer(approve=False, reason=reason))

        if approval is not None and verb == "approve":
            self.push_screen(ApproveScreen(approval), decided)
        elif approval is not None and verb == "deny":
            self.push_screen(ReasonScreen(approval), denied)

    def _decide(self, approval: Mapping[str, Any], answer: Answer) -> None:
        ident, digest = approval["id"], approval["digest"]
        approve, reason, remember = answer
        vote = partial(self._source.decide, ident, approve=approve, reason=reason)
        self._do(lambda: vote(digest=digest, remember=remember))

    def _chosen_server(self) -> ServerKey | None:
        chosen = self._chosen("servers")
        if chosen and chosen not in self._servers:
            self.say("no gate on this machine has this server")
        return self._servers.get(chosen)

    def _chosen(self, name: str) -> str:
        """Return the key of the selected row; empty if none is."""
        key = self._table(name).selected
        if key is None:
            self.bell()  # if the same text is shown already, nothing else would change
            is_empty = not self._table(name).row_count
            self.say(_NOTHING[name] if is_empty else "Select a row first, with the arrow keys.")
        return key or ""

    def _do(self, work: Callable[[], str]) -> None:
        """Do something that may take a while in a thread, and say the result."""

        def run() -> None:
            try:
                message = work()
            except ThoughtGateError as error:
                message = f"failed: {error}"
            self.call_from_thread(self.say, message)
            self._fetch_status()

        self.run_worker(run, thread=True, exit_on_error=False)

    def say(self, text: str) -> None:
        """Show a message below the tables."""
        message = self._static("message")
        message.update(visible(text))
        message.display = True
