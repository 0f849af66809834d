"""``thoughtgate tui``: manage servers, calls and approvals in a terminal interface."""

import sys

from thoughtgate.cli.options import ConfigOption, command_app, examples, find_store
from thoughtgate.errors import UsageError

app = command_app()


@app.command(epilog=examples("thoughtgate tui", "thoughtgate tui -c team.yaml"))
def tui(*, config: ConfigOption = None) -> None:
    """Watch running gates, answer approval requests, and control servers.

    If the config names a PostgreSQL store, this includes all gates that share it.

    Needs the extra "tui": pip install 'thoughtgate[tui]'.
    """
    if not sys.stdout.isatty():
        raise UsageError(
            "thoughtgate tui needs a terminal; elsewhere use: thoughtgate status --watch"
        )
    try:
        from thoughtgate.cli.terminal.app import (
            GateApp,
        )  # an optional dependency, and slow to import
    except ImportError:
        raise UsageError(
            "thoughtgate tui needs an optional dependency: pip install 'thoughtgate[tui]'"
        ) from None
    from thoughtgate.status.tui_data import TuiSource

    GateApp(TuiSource(location=find_store(config))).run()
