"""``thoughtgate audit``: follow, query, verify and export the record."""

from thoughtgate.cli.audit.export import EXPORT_EXAMPLES, export_command
from thoughtgate.cli.audit.query import QUERY_EXAMPLES, query_command
from thoughtgate.cli.audit.show import SHOW_EXAMPLES, show_command
from thoughtgate.cli.audit.stats import STATS_EXAMPLES, stats_command
from thoughtgate.cli.audit.tail import TAIL_EXAMPLES, tail_command
from thoughtgate.cli.audit.verify import VERIFY_EXAMPLES, verify_command
from thoughtgate.cli.options import command_app, examples

app = command_app(
    "Follow, query, verify and export the record.",
    examples(
        "thoughtgate audit tail -f",
        "thoughtgate audit query --decision block --since 1d",
        "thoughtgate audit verify",
    ),
)


app.command("tail", epilog=TAIL_EXAMPLES)(tail_command)
app.command("query", epilog=QUERY_EXAMPLES)(query_command)
app.command("show", epilog=SHOW_EXAMPLES)(show_command)
app.command("stats", epilog=STATS_EXAMPLES)(stats_command)
app.command("verify", epilog=VERIFY_EXAMPLES)(verify_command)
app.command("export", epilog=EXPORT_EXAMPLES)(export_command)
