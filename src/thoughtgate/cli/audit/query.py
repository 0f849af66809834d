"""``thoughtgate audit query``: list calls as a table, JSON or CSV."""

import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

from typer import Option

from thoughtgate.cli.audit.source import find_place, open_ledger, span, write_csv
from thoughtgate.cli.options import (
    ConfigOption,
    JsonOption,
    RecordOption,
    SinceOption,
    UntilOption,
    examples,
    require_choice,
)
from thoughtgate.cli.output import write_json
from thoughtgate.cli.tables import shown_time, table_lines
from thoughtgate.errors import UsageError
from thoughtgate.record.export import CSV_CALLS, call_object
from thoughtgate.record.ledger_queries import DECISIONS, STATUSES, CallFilter, find_calls

QUERY_EXAMPLES: Final = examples(
    "thoughtgate audit query --decision block --since 1d",
    "thoughtgate audit query --server github --tool 'delete_*' --json",
    "thoughtgate audit query --finding 'secret-*' --since 1d",
    "thoughtgate audit query --text 'etc passwd' --csv > calls.csv",
)

RunOption = Annotated[str, Option(metavar="ID", help="Only this run.")]
ServerOption = Annotated[str, Option(metavar="ID", help="Only this server; * and ? are wildcards.")]
ToolOption = Annotated[str, Option(metavar="NAME", help="Only this tool; * and ? are wildcards.")]
DecisionOption = Annotated[str, Option(metavar="WORD", help="allow, hold, block or throttle.")]
StatusOption = Annotated[
    str, Option(metavar="WORD", help="ok, error, timeout, cancelled, or open: without an end.")
]
TextOption = Annotated[
    str, Option(metavar="WORDS", help="Words in the name, the arguments or the reason.")
]
FindingOption = Annotated[
    str,
    Option(
        metavar="CHECK",
        help="Only calls in which this content check found something; * and ? are wildcards.",
    ),
]
LimitOption = Annotated[int, Option(metavar="N", min=0, help="Maximum number of calls; 0 for all.")]


def query_command(
    *,
    run: RunOption = "",
    server: ServerOption = "",
    tool: ToolOption = "",
    decision: DecisionOption = "",
    status: StatusOption = "",
    since: SinceOption = "",
    until: UntilOption = "",
    text: TextOption = "",
    finding: FindingOption = "",
    limit: LimitOption = 50,
    record: RecordOption = None,
    config: ConfigOption = None,
    json_: JsonOption = False,
    csv_: Annotated[bool, Option("--csv", help="Print CSV on stdout.")] = False,
) -> None:
    """List calls, newest first."""
    if json_ and csv_:
        raise UsageError("use either --json or --csv, not both")
    start, end = span(since, until)
    wanted = CallFilter(
        run=run,
        server=server,
        tool=tool,
        decision=upper_choice("--decision", decision, DECISIONS),
        status=upper_choice("--status", status, STATUSES),
        since=start,
        until=end,
        text=text,
        finding=finding,
        limit=limit,
    )
    with open_ledger(find_place(record, config)) as ledger:
        calls = find_calls(ledger.connection, wanted)
    if json_:
        write_json([call_object(call) for call in calls])
    elif csv_:
        write_csv(CSV_CALLS, calls)
    else:
        write_table(calls)


def upper_choice(option: str, value: str, choices: tuple[str, ...]) -> str:
    """Return the value of an option in upper case, as the record spells it; it may be empty.

    Raises:
        UsageError: it is not one of the choices, in any case.
    """
    if value:
        require_choice(option, value.lower(), [choice.lower() for choice in choices])
    return value.upper()


def write_table(calls: Iterable[Mapping[str, Any]]) -> None:
    """Print calls as a table."""
    rows = [
        {
            "time": shown_time(call["started_at"]),
            "server": call["server"],
            "tool": call["tool"],
            "decision": decision_word(call),
            "status": call["status"] or "open",
            "ms": call["latency_ms"],
            "call": call["call_id"],
        }
        for call in calls
    ]
    if not rows:
        sys.stderr.write("No call matches; see --help for the filters, and --since for the time.\n")
    columns = ("time", "server", "tool", "decision", "status", "ms", "call")
    sys.stdout.writelines(f"{line}\n" for line in table_lines(columns, rows))


def decision_word(call: Mapping[str, Any]) -> str:
    """Return the verdict, a person's decision, and whether the verdict was only observed."""
    word = call["decision"] or "-"
    if call["approval"]:
        word = f"{word}/{call['approval']}"
    # Not for null: a call without a verdict was not observed either.
    return f"{word} (observed)" if call["enforced"] == 0 else word
