"""``thoughtgate tools``: what servers say about their tools, what changed, and what was accepted."""

from thoughtgate.cli.definitions.decide import (
    ACCEPT_EXAMPLES,
    REFUSE_EXAMPLES,
    accept_command,
    refuse_command,
)
from thoughtgate.cli.definitions.lock import (
    CHECK_EXAMPLES,
    LOCK_EXAMPLES,
    check_command,
    lock_command,
)
from thoughtgate.cli.definitions.show import (
    DIFF_EXAMPLES,
    LIST_EXAMPLES,
    diff_command,
    list_command,
)
from thoughtgate.cli.options import command_app, examples

app = command_app(
    "Show what servers say about their tools and what changed; accept, refuse, lock and check it.",
    examples("thoughtgate tools diff github", "thoughtgate tools accept github"),
)

app.command("list", epilog=LIST_EXAMPLES)(list_command)
app.command("diff", epilog=DIFF_EXAMPLES)(diff_command)
app.command("accept", epilog=ACCEPT_EXAMPLES)(accept_command)
app.command("refuse", epilog=REFUSE_EXAMPLES)(refuse_command)
app.command("lock", epilog=LOCK_EXAMPLES)(lock_command)
app.command("check", epilog=CHECK_EXAMPLES)(check_command)
