"""``thoughtgate audit show``: the full history of one call, or the error with a correlation id."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from typer import Argument

from thoughtgate.cli.audit.query import decision_word
from thoughtgate.cli.audit.source import find_place, open_ledger, place_events
from thoughtgate.cli.options import ConfigOption, JsonOption, RecordOption, examples
from thoughtgate.cli.output import write_report
from thoughtgate.cli.tables import shown_time
from thoughtgate.errors import UsageError, visible
from thoughtgate.record.call_rows import parse_time
from thoughtgate.record.error_events import error_of, find_errors
from thoughtgate.record.export import call_object
from thoughtgate.record.ledger_queries import find_call

SHOW_EXAMPLES: Final = examples(
    "thoughtgate audit show 0199c0de-….7",
    "thoughtgate audit show .7 --json",
    "thoughtgate audit show 0199c0de-….e3",
)


def show_command(
    call: Annotated[
        str,
        Argument(
            metavar="ID",
            help="Id of the call, or the end of it; or the id of its approval request, or the correlation id of an error.",
        ),
    ],
    *,
    record: RecordOption = None,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Show the full history of one call: request, verdict, approval, result and timings.

    An error that belongs to no call, such as the refusal of an unreadable message or of a client
    without a token, is found by the correlation id in its data.
    """
    if not call.strip():
        raise UsageError("ID is empty; give the id of a call or of an error, or the end of it")
    place = find_place(record, config)
    with open_ledger(place) as ledger:
        found = find_call(ledger.connection, call)
    if not found and (errors := find_errors(place_events(place, call), call)):
        lines = "\n\n".join("\n".join(error_history(one, call)) for one in errors)
        write_report(errors, [lines], as_json=json_)
        return
    if not found:
        raise UsageError(
            f"the record has no call, approval request or error {call!r};"
            " 'thoughtgate audit query' lists calls, 'thoughtgate approvals list --all' requests"
        )
    lines = "\n\n".join("\n".join(history(one)) for one in found)
    write_report([call_object(one) for one in found], [lines], as_json=json_)


def history(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield the history of a call as lines of text, in order."""
    yield f"call       {call['call_id']}"
    yield f"requested  {shown_time(call['started_at'])}  {call['kind'] or 'tool'} {visible(call['tool'] or '-')} of {call['server'] or '-'}"
    yield f"           by {visible(call['principal'] or 'unknown')}, session {call['session'] or '0'}, run {call['run_id'] or '-'}, {call['method'] or '-'} over {call['transport'] or '-'}, {call['bytes_in'] or 0} bytes"
    if call["preview"]:
        cut = " (cut)" if call["truncated"] else ""
        yield f"arguments  {visible(call['preview'])}{cut}"
    yield f"           sha256 {call['args_hash'] or '-'}"
    if call["extra"]:
        yield f"extra      {visible(call['extra'])}"
        yield f"           sha256 {call['extra_hash'] or '-'}"
    if call["decision"]:
        rule = f", {visible(call['rule'])}" if call["rule"] else ""
        yield f"decided    {shown_time(call['decided_at'])}  {decision_word(call)} by gate {call['gate'] or '-'}{rule}"
        yield f"           {call['reason_code'] or '-'}: {visible(call['reason'] or '-')}; policy {call['policy'] or '-'}"
    yield from _approval(call)
    yield from _contents(call)
    yield from _end(call)


def error_history(event: Mapping[str, Any], ident: str) -> Iterator[str]:
    """Yield what the record says about an error that belongs to no call."""
    said = error_of(event) or {}
    at = parse_time(str(event.get("ts")))
    yield f"error      {visible(str(said.get('correlation_id')))}"
    if said.get("repeated") and not str(said.get("correlation_id")).endswith(ident):
        yield f"           stands for {said['repeated']} events like it, one of which has your id"
    yield f"recorded   {shown_time(at) if at is not None else '-'}  {event.get('type')} of {visible(str(event.get('server_name') or '-'))}"
    yield f"           session {visible(str(event.get('session_id') or '0'))}, run {visible(str(event.get('run_id') or '-'))}"
    for name, value in said.items():
        if isinstance(value, str | int) and value != "" and name != "correlation_id":
            yield f"{name:<16}  {visible(str(value))}"


def _approval(call: Mapping[str, Any]) -> Iterator[str]:
    if call["asked_at"]:
        request = f", approval request {call['approval_id']}" if call["approval_id"] else ""
        yield f"asked      {shown_time(call['asked_at'])}  workflow {call['workflow'] or '-'}{request}"
    for vote in call["votes"]:
        yield f"vote       {_vote(vote)}"
    if call["approval"]:
        who = visible(call["approved_by"] or "nobody")
        through = f" through {call['approval_channel']}" if call["approval_channel"] else ""
        waited = ""
        if call["asked_at"] and call["approval_at"]:
            waited = f" after {call['approval_at'] - call['asked_at']:.1f} s"
        yield f"answered   {shown_time(call['approval_at'])}  {call['approval']} by {who}{through}{waited}"
        outcome = "the call was made" if call["executes"] else "the call was not made"
        why = f": {visible(call['approval_reason'])}" if call["approval_reason"] else ""
        yield f"           {outcome}{why}"


def _contents(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the content checks found, and what happened to the result."""
    for place, findings in (
        ("arguments", call["argument_findings"]),
        ("the result", call["result_findings"]),
    ):
        for found in findings:
            where = visible(found["where"]) or "/"
            yield f"found      {visible(found['check'])} ({visible(found['tier'])}) in {place} at {where}"
    if call["result_action"]:
        yield f"           what happened to the result: {visible(call['result_action'])}"
    if call["result_approval"]:
        who = visible(call["result_decided_by"] or "nobody")
        yield f"           asked to release it: {visible(call['result_approval'])} by {who}"


def _vote(vote: Mapping[str, Any]) -> str:
    at = parse_time(vote["at"])
    when = shown_time(at) if at is not None else "-"
    why = f": {visible(vote['reason'])}" if vote["reason"] else ""
    word = "approved" if vote["approve"] else "denied"
    groups = ", ".join(map(str, vote.get("groups", ())))
    of = f" ({visible(groups)})" if groups else ""
    return f"{when}  {word} by {visible(vote['by'] or 'unknown')}{of}{why}"


def _end(call: Mapping[str, Any]) -> Iterator[str]:
    if call["status"] is None:
        yield "ended      not in the record: the call is still open, or its gate was killed"
        return
    tool_error = " (the tool says isError)" if call["is_error"] else ""
    yield f"ended      {shown_time(call['ended_at'])}  {call['status']}{tool_error} after {call['latency_ms']} ms, {call['bytes_out']} bytes"
    if call["error_class"]:
        code = f" {call['error_code']}" if call["error_code"] is not None else ""
        kind = call["error_kind"] or call["error_class"]
        yield f"           {kind}{code}: {visible(call['error_message'] or '-')}"
    if call["result_preview"]:  # only in records of an earlier version
        yield f"result     {visible(call['result_preview'])}"
