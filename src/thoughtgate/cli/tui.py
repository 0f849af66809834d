"""``thoughtgate tui``: manage servers, calls and approvals in a terminal interface."""

import sys

from thoughtgate.cli.options import ConfigOption, command_app, examples, find_store
from thoughtgate.errors import UsageError

app = command_app()


@app.command(epilog=examples("thoughtgate tui", "thoughtgate tui -c team.yaml"))
def tui(*, config: ConfigOption = None) -> None:
    """Manage running gates: control servers, watch calls, answer approval requests.

    Needs the extra "tui": pip install 'thoughtgate[tui]'.
    """
    if not sys.stdout.isatty():
        raise UsageError(
            "thoughtgate tui needs a terminal; elsewhere use: thoughtgate status --watch"
        )
    try:
        from thoughtgate.cli.tui_app import GateApp  # an optional dependency, and slow to import
    except ImportError:
        raise UsageError(
            "thoughtgate tui needs an optional dependency: pip install 'thoughtgate[tui]'"
        ) from None
    from thoughtgate.status.tui_data import TuiSource

    GateApp(TuiSource(location=find_store(config))).run()
