"""``thoughtgate tui``: servers, calls and approvals in the terminal."""

from thoughtgate.cli.options import command_app, examples
from thoughtgate.errors import UsageError

app = command_app()


@app.command(epilog=examples("thoughtgate tui"))
def tui() -> None:
    """Look after running gates: servers, live calls, approvals to answer.

    Needs the extra: pip install 'thoughtgate[tui]'.
    """
    try:
        from thoughtgate.cli.tui_app import GateApp  # an extra, and heavy
    except ImportError:
        raise UsageError("tui needs an extra: pip install 'thoughtgate[tui]'") from None
    from thoughtgate.status.tui_data import TuiSource

    GateApp(TuiSource()).run()
