"""The terminal interface: four tables, a log, and key bindings. Only ``tui`` imports it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import (
    DataTable,
    Footer,
    Header,
    Input,
    Label,
    RichLog,
    Static,
    TabbedContent,
    TabPane,
)

from thoughtgate.channels.terminal import Answer, parse_answer
from thoughtgate.cli.output import counted
from thoughtgate.cli.status import (
    TITLES,
    describe_stop,
    render_cell,
)
from thoughtgate.errors import ThoughtGateError, visible
from thoughtgate.status.overview import describe_server
from thoughtgate.status.shared_gates import RUNNING, describe_shared
from thoughtgate.status.tui_data import ServerKey, TuiSource

REFRESH_S: Final = 1.0

_COLUMNS: Final = {
    "servers": ("server", "status", "tools", "calls", "gate", "note"),
    "calls": ("ts", "server", "tool", "decision", "status", "latency_ms", "error"),
    "approvals": ("id", "server", "tool", "arguments", "principal", "expires_at"),
    "gates": ("gate", "host", "pid", "status", "version", "held", "address", "note"),
}


_BOX: Final = """
%s { align: center middle; }
#box { width: 90; height: auto; border: round $primary; padding: 1 2; background: $surface; }
"""


class KeyedTable(DataTable[Any]):
    """A table whose selected row is known by its key, so that a refresh never selects another."""

    def __init__(self, *, selects_first: bool, **options: Any) -> None:
        """``selects_first`` selects the first row that ever appears; else a key press does."""
        super().__init__(cursor_type="row", zebra_stripes=True, **options)
        self._selects_first = selects_first
        self._keys: list[str] = []

    @property
    def selected(self) -> str | None:
        """The key of the selected row; None if no row is selected."""
        is_there = self.show_cursor and 0 <= self.cursor_row < len(self._keys)
        return self._keys[self.cursor_row] if is_there else None

    def fill(self, rows: Mapping[str, Sequence[Any]]) -> None:
        """Replace the rows; the selected one stays selected, or none is if it is gone."""
        kept, is_first = self.selected, not self._keys
        self.clear()
        for key, cells in rows.items():
            self.add_row(*cells, key=key)
        self._keys = list(rows)
        self.show_cursor = kept in rows or (is_first and self._selects_first)
        if kept is not None and kept in rows:
            self.move_cursor(row=self._keys.index(kept))

    def on_click(self) -> None:
        """Select the row that was clicked."""
        self.show_cursor = True

    def action_cursor_down(self) -> None:
        """Move to the next row, or select a row if none is selected."""
        if not self._selects():
            super().action_cursor_down()

    def action_cursor_up(self) -> None:
        """Move to the previous row, or select a row if none is selected."""
        if not self._selects():
            super().action_cursor_up()

    def _selects(self) -> bool:
        is_new, self.show_cursor = not self.show_cursor, True
        return is_new


class ApproveScreen(ModalScreen[Answer | None]):
    """Asks whether one call, which it names, is to be approved."""

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
                yield Label("The arguments are long. Enter in the list shows all of them.")
            yield Label("Press y to approve this call once.")
            yield Label("s: also the same call until the session ends.")
            yield Label("t: also any call of this tool until the session ends.")
            yield Label("Esc: go back.")

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
            yield Label("Press Enter to deny, Esc to go back.")
            yield Input(placeholder="reason, for the record", max_length=500)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Deny the call with the reason that was typed."""
        self.dismiss(event.value or "denied in the terminal interface")

    def action_give_up(self) -> None:
        """Close the dialog without denying the call."""
        self.dismiss(None)


class CallScreen(ModalScreen[None]):
    """Shows a whole call, page by page if it is long."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "turn(1)", "Next page"),
        Binding("p", "turn(-1)", "Previous page"),
        Binding("escape,q", "close", "Back"),
    ]
    CSS = """
    CallScreen { background: $surface; }
    #head { height: auto; padding: 0 1; }
    #pages { height: 1fr; padding: 0 1; }
    """

    def __init__(self, source: TuiSource, ident: str) -> None:
        super().__init__()
        self._source = source
        self._ident = ident
        self._page = 0

    def compose(self) -> ComposeResult:
        """Create the page."""
        yield Label("", id="head", markup=False)
        with VerticalScroll(id="pages"):
            yield Static("", id="page", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        """Show the first page."""
        self.query_one("#pages").focus()
        self._show()

    def action_turn(self, by: int) -> None:
        """Show another page."""
        self._page = max(0, self._page + by)
        self._show()

    def action_close(self) -> None:
        """Go back to the tables."""
        self.dismiss(None)

    def _show(self) -> None:
        try:
            text, pages = self._source.call_page(self._ident, self._page)
        except ThoughtGateError as error:
            text, pages = f"failed: {error}", 1
        self._page = min(self._page, pages - 1)
        shown = f"page {self._page + 1} of {pages}"
        self.query_one("#head", Label).update(f"Approval {self._ident}, {shown}")
        self.query_one("#page", Static).update(text)
        self.query_one("#pages", VerticalScroll).scroll_home(animate=False)


class GateApp(App[None]):
    """Shows and manages the gates of this user."""

    TITLE = "ThoughtGate"
    CSS = """
    TabbedContent { height: 1fr; }
    TabbedContent ContentSwitcher { height: 1fr; }
    TabPane { height: 1fr; padding: 0; }
    DataTable { height: 1fr; }
    #log { height: 9; border-top: solid $primary; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "show('servers')", "Servers"),
        Binding("2", "show('calls')", "Calls"),
        Binding("3", "show('approvals')", "Approvals"),
        Binding("4", "show('gates')", "Gates"),
        Binding("s", "server('start')", "Start"),
        Binding("x", "server('stop')", "Stop"),
        Binding("r", "server('restart')", "Restart"),
        Binding("l", "logs", "Logs"),
        Binding("a", "approve", "Approve"),
        Binding("d", "deny", "Deny"),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(self, source: TuiSource) -> None:
        super().__init__()
        self._source = source
        self._servers: dict[str, ServerKey] = {}
        self._approvals: dict[str, dict[str, Any]] = {}

    def compose(self) -> ComposeResult:
        """Create the tables and the log."""
        yield Header(show_clock=False)
        with TabbedContent(initial="servers"):
            for name in _COLUMNS:
                with TabPane(name.capitalize(), id=name):
                    # A call that just appeared is not selected before somebody has seen it.
                    yield KeyedTable(id=f"{name}-table", selects_first=name != "approvals")
        yield RichLog(id="log", wrap=True, max_lines=1000)
        yield Footer()

    def on_mount(self) -> None:
        """Add the columns and start refreshing."""
        for name, columns in _COLUMNS.items():
            self._table(name).add_columns(*(TITLES.get(column, column) for column in columns))
        self.refresh_status()
        self.set_interval(REFRESH_S, self.refresh_status)

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
        servers = [(gate, server) for gate in status["gates"] for server in gate.get("servers", ())]
        self._servers = {
            f"{gate['pid']} {server['id']}": ServerKey(gate["pid"], server["id"])
            for gate, server in servers
        }
        self._approvals = {one["id"]: one for one in status["approvals"]}
        rows = [
            {**describe_server(server), "gate": f"{gate['kind']} {gate['pid']}"}
            for gate, server in servers
        ]
        self._fill("servers", list(self._servers), rows)
        self._fill("calls", list(map(str, range(len(status["calls"])))), status["calls"])
        rows = [{**one, "arguments": _brief(_carried(one))} for one in status["approvals"]]
        self._fill("approvals", list(self._approvals), rows)
        others = self._show_gates(status)
        gates, shown = counted(len(status["gates"]), "gate"), counted(len(servers), "server")
        stopped = ", ".join(describe_stop(order) for order in status.get("stopped", ()))
        pending = f"{counted(len(self._approvals), 'approval')} pending"
        self.sub_title = visible(
            f"STOPPED {stopped}" if stopped else f"{gates}{others}, {shown}, {pending}"
        )

    def _show_gates(self, status: dict[str, Any]) -> str:
        """Fill the table of gates; return what the title says about those of the store."""
        store = status.get("store") or {}
        shared = store.get("gates", [])
        # Without a shared store, the gates of this machine are all there are.
        rows = [describe_shared(one) for one in shared] or [
            _local_gate(one) for one in status["gates"]
        ]
        self._fill("gates", list(map(str, range(len(rows)))), rows)
        if store.get("problem"):
            return f" (store: {visible(store['problem'])})"
        return f" ({len(shared)} share the store)" if "store" in status else ""

    def _fill(self, name: str, keys: list[str], rows: list[dict[str, Any]]) -> None:
        cells = ([render_cell(row.get(column)) for column in _COLUMNS[name]] for row in rows)
        self._table(name).fill(dict(zip(keys, cells, strict=True)))

    def _table(self, name: str) -> KeyedTable:
        # The main screen's, also while a dialog is open.
        return self.screen_stack[0].query_one(f"#{name}-table", KeyedTable)

    # Key bindings.

    def action_show(self, name: str) -> None:
        """Show a table."""
        self.query_one(TabbedContent).active = name
        self._table(name).focus()

    def action_server(self, operation: str) -> None:
        """Start, stop or restart the server under the cursor."""
        key = self._servers.get(self._chosen("servers"))
        if key is not None:
            self.say(f"{operation} {key.server}…")
            self._do(lambda: self._source.act(operation, key))

    def action_logs(self) -> None:
        """Show the last log lines of the server under the cursor."""
        key = self._servers.get(self._chosen("servers"))
        if key is not None:
            self._do(lambda: "\n".join([f"log of {key.server}:", *self._source.logs(key)[-200:]]))

    def action_approve(self) -> None:
        """Approve the selected call, after naming it."""
        approval = self._chosen_approval()
        if approval is None:
            return

        def decided(answer: Answer | None) -> None:
            if answer is not None:
                self._decide(approval, answer)

        self.push_screen(ApproveScreen(approval), decided)

    def action_deny(self) -> None:
        """Deny the selected call, after naming it and asking for a reason."""
        approval = self._chosen_approval()
        if approval is None:
            return

        def decided(reason: str | None) -> None:
            if reason is not None:
                self._decide(approval, Answer(approve=False, reason=reason))

        self.push_screen(ReasonScreen(approval), decided)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Show the whole call on Enter."""
        ident = event.row_key.value
        if event.data_table.id == "approvals-table" and ident is not None:
            self.push_screen(CallScreen(self._source, ident))

    def _decide(self, approval: Mapping[str, Any], answer: Answer) -> None:
        ident, digest = approval["id"], approval["digest"]
        approve, reason, remember = answer
        vote = partial(self._source.decide, ident, approve=approve, reason=reason)
        self._do(lambda: vote(digest=digest, remember=remember))

    def _chosen_approval(self) -> dict[str, Any] | None:
        return self._approvals.get(self._chosen("approvals"))

    def _chosen(self, name: str) -> str:
        """Return the key of the selected row; empty if none is, or the table was not shown."""
        if self.query_one(TabbedContent).active != name:
            self.action_show(name)
            return ""
        key = self._table(name).selected
        if key is None and self._table(name).row_count:
            self.say("select a row first, with the arrow keys")
        return key or ""

    def _do(self, work: Callable[[], str]) -> None:
        """Do something that may take a while in a thread, and log the result."""

        def run() -> None:
            try:
                message = work()
            except ThoughtGateError as error:
                message = f"failed: {error}"
            self.call_from_thread(self.say, message)
            self._fetch_status()

        self.run_worker(run, thread=True, exit_on_error=False)

    def say(self, text: str) -> None:
        """Add one or more lines to the log."""
        log = self.screen_stack[0].query_one("#log", RichLog)
        for line in text.splitlines():
            log.write(render_cell(line))


def _local_gate(gate: Mapping[str, Any]) -> dict[str, Any]:
    """Return a gate of this machine as a row of the table."""
    name = " ".join(str(gate[part]) for part in ("kind", "server") if gate.get(part))
    return {**gate, "gate": name, "status": RUNNING, "address": gate.get("url")}


def _carried(approval: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call, and whatever else the request carries."""
    extra = approval.get("extra")
    return {**approval["arguments"], "(extra)": extra} if extra else approval["arguments"]


def _named(verb: str, approval: Mapping[str, Any]) -> str:
    """Return which call a dialog is about."""
    tool, server, by = (visible(approval[key]) for key in ("tool", "server", "principal"))
    client = approval.get("client")
    says = f" (says it is {visible(client)})" if client else ""
    about = f"{verb} {approval['kind']} {tool}\non server {server}\nasked by {by}{says}"
    return f"{about}\nApproval {approval['id']}"


def _brief(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in arguments.items())[:80]
