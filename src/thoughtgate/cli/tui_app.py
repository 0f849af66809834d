"""The terminal interface: three tables, a log, and key bindings. Only ``tui`` imports it."""

from collections.abc import Callable
from typing import Any, ClassVar, Final

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Header, Input, Label, RichLog, TabbedContent, TabPane

from thoughtgate.cli.output import counted
from thoughtgate.cli.status import TITLES, describe_server, render_cell
from thoughtgate.errors import ThoughtGateError
from thoughtgate.status.tui_data import ServerKey, TuiSource

REFRESH_S: Final = 1.0

_COLUMNS: Final = {
    "servers": ("server", "status", "tools", "calls", "gate", "note"),
    "calls": ("ts", "server", "tool", "decision", "status", "latency_ms", "error"),
    "approvals": ("id", "server", "tool", "arguments", "principal", "expires_at"),
}


class ReasonScreen(ModalScreen[str | None]):
    """Asks for the reason of a denial."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "give_up", "Back")]
    CSS = """
    ReasonScreen { align: center middle; }
    #box { width: 60; height: auto; border: round $primary; padding: 1 2; background: $surface; }
    """

    def __init__(self, approval: str) -> None:
        super().__init__()
        self._approval = approval

    def compose(self) -> ComposeResult:
        """Create the dialog."""
        with Vertical(id="box"):
            yield Label(f"Reason for denying {self._approval} (Enter to deny, Esc to go back)")
            yield Input(placeholder="reason, for the record", max_length=500)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Deny the call with the reason that was typed."""
        self.dismiss(event.value or "denied in the terminal interface")

    def action_give_up(self) -> None:
        """Close the dialog without denying the call."""
        self.dismiss(None)


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
        self._servers: list[ServerKey] = []
        self._approvals: list[str] = []

    def compose(self) -> ComposeResult:
        """Create the tables and the log."""
        yield Header(show_clock=False)
        with TabbedContent(initial="servers"):
            for name in _COLUMNS:
                with TabPane(name.capitalize(), id=name):
                    yield DataTable(id=f"{name}-table", cursor_type="row", zebra_stripes=True)
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
        self._servers = [ServerKey(gate["pid"], server["id"]) for gate, server in servers]
        self._approvals = [one["id"] for one in status["approvals"]]
        rows = [
            {**describe_server(server), "gate": f"{gate['kind']} {gate['pid']}"}
            for gate, server in servers
        ]
        self._fill("servers", rows)
        self._fill("calls", status["calls"])
        rows = [{**one, "arguments": _brief(_carried(one))} for one in status["approvals"]]
        self._fill("approvals", rows)
        gates, shown = counted(len(status["gates"]), "gate"), counted(len(servers), "server")
        self.sub_title = f"{gates}, {shown}, {counted(len(self._approvals), 'approval')} pending"

    def _fill(self, name: str, rows: list[dict[str, Any]]) -> None:
        """Replace the rows of a table and keep the cursor where it was."""
        table = self._table(name)
        at = table.cursor_row
        table.clear()
        for row in rows:
            table.add_row(*(render_cell(row.get(column)) for column in _COLUMNS[name]))
        if rows:
            table.move_cursor(row=min(at, len(rows) - 1))

    def _table(self, name: str) -> DataTable[Any]:
        return self.query_one(f"#{name}-table", DataTable)

    # Key bindings.

    def action_show(self, name: str) -> None:
        """Show a table."""
        self.query_one(TabbedContent).active = name
        self._table(name).focus()

    def action_server(self, operation: str) -> None:
        """Start, stop or restart the server under the cursor."""
        key = self._chosen("servers", self._servers)
        if key is not None:
            self.say(f"{operation} {key.server}…")
            self._do(lambda: self._source.act(operation, key))

    def action_logs(self) -> None:
        """Show the last log lines of the server under the cursor."""
        key = self._chosen("servers", self._servers)
        if key is not None:
            self._do(lambda: "\n".join([f"log of {key.server}:", *self._source.logs(key)[-200:]]))

    def action_approve(self) -> None:
        """Approve the call under the cursor."""
        approval = self._chosen("approvals", self._approvals)
        if approval is not None:
            self._do(lambda: self._source.decide(approval, approve=True))

    def action_deny(self) -> None:
        """Deny the call under the cursor, after asking for a reason."""
        approval = self._chosen("approvals", self._approvals)
        if approval is None:
            return

        def decided(reason: str | None) -> None:
            if reason is not None:
                self._do(lambda: self._source.decide(approval, approve=False, reason=reason))

        self.push_screen(ReasonScreen(approval), decided)

    def _chosen(self, name: str, keys: list[Any]) -> Any:
        if self.query_one(TabbedContent).active != name:
            self.action_show(name)
            return None
        row = self._table(name).cursor_row
        return keys[row] if 0 <= row < len(keys) else None

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
        log = self.query_one("#log", RichLog)
        for line in text.splitlines():
            log.write(render_cell(line))


def _carried(approval: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call, and whatever else the request carries."""
    extra = approval.get("extra")
    return {**approval["arguments"], "(extra)": extra} if extra else approval["arguments"]


def _brief(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value!r}" for key, value in arguments.items())[:80]
