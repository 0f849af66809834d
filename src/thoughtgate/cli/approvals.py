"""``thoughtgate approvals``: list approval requests and answer them."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Annotated, Any, Final, TypeVar

from typer import Argument, Option

from thoughtgate.channels.approval_view import approval_object, grant_object
from thoughtgate.channels.terminal import (
    approval_rows,
    grant_rows,
    identity,
    render_question,
    render_whole,
)
from thoughtgate.cli.options import (
    ConfigOption,
    JsonOption,
    WatchOption,
    command_app,
    examples,
    find_store,
    require_choice,
)
from thoughtgate.cli.output import watch_report, write_json, write_report
from thoughtgate.cli.tables import table_lines
from thoughtgate.config.durations import parse_duration
from thoughtgate.core.approval import PENDING, Approval, Refusal, Vote
from thoughtgate.core.grant import EXACT, ONCE, SCOPES, SESSION, UNTIL, Grant, Remember
from thoughtgate.errors import Conflict, UsageError, visible
from thoughtgate.gate.approvals.queue import new_approval_id, open_store
from thoughtgate.gate.approvals.started_by_agent import find_agent_reason
from thoughtgate.gate.approvals.terminal_prompt import LOOK_EVERY_S, Asker
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.stores.approvals import ApprovalStore

_Found = TypeVar("_Found", Approval, Grant)

COLUMNS: Final = ("id", "status", "server", "tool", "left", "arguments")
GRANT_COLUMNS: Final = ("id", "server", "tool", "allows", "until", "by", "uses")

app = command_app(
    "List approval requests and answer them.",
    examples(
        "thoughtgate approvals list",
        "thoughtgate approvals approve k3f9ab",
        "thoughtgate approvals watch",
        "thoughtgate approvals list -c team.yaml",
    ),
)
grants_app = command_app(
    "List, add and revoke remembered approvals.", examples("thoughtgate approvals grants list")
)
app.add_typer(grants_app, name="grants")

IdArgument = Annotated[
    str, Argument(metavar="ID", help="Id of the approval request, or a unique prefix of it.")
]
RememberOption = Annotated[
    str,
    Option(
        metavar="once|session|DURATION",
        help="How long the approval is valid: once, until the session ends, or for a time such as 2h.",
    ),
]
ScopeOption = Annotated[
    str,
    Option(
        metavar="call|tool",
        help="What the approval covers: calls with the same arguments, or any call of the tool.",
    ),
]
ReasonOption = Annotated[
    str, Option(metavar="TEXT", help="Reason for the decision, for the record.")
]


@app.command(
    "list",
    epilog=examples(
        "thoughtgate approvals list",
        "thoughtgate approvals list --watch",
        "thoughtgate approvals list --all --json",
    ),
)
def list_approvals(
    *,
    all_: Annotated[bool, Option("--all", help="Include closed requests.")] = False,
    watch: WatchOption = False,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """List pending approval requests, oldest first."""
    with _store(config) as store:

        def read() -> tuple[Any, Iterator[str]]:
            _settle(store)
            found = store.listed() if all_ else store.listed(PENDING)
            lines = table_lines(COLUMNS, approval_rows(found, time.time()))
            return [approval_object(each) for each in found], lines

        nothing = f"There are no {'' if all_ else 'pending '}approval requests."
        watch_report(read, as_json=json_, watch=watch, nothing=nothing)


@app.command(epilog=examples("thoughtgate approvals show k3f9ab"))
def show(ident: IdArgument, *, config: ConfigOption = None, json_: JsonOption = False) -> None:
    """Show all details of one approval request, with every character of its arguments."""
    with _store(config) as store:
        found = _found(store.get(ident))
        if json_:
            whole = "".join(store.whole_arguments(found))
            shortened = found.folded and whole == found.arguments
            write_json(approval_object(found._replace(arguments=whole, folded=shortened)))
            return
        sys.stdout.write(render_question(found, time.time(), whole=True))
        if found.folded:
            sys.stdout.writelines(render_whole(store.whole_arguments(found)))


@app.command(
    epilog=examples(
        "thoughtgate approvals approve k3f9ab",
        "thoughtgate approvals approve k3f9ab --remember 2h --scope tool",
    )
)
def approve(
    ident: IdArgument,
    *,
    reason: ReasonOption = "",
    remember: RememberOption = ONCE,
    scope: ScopeOption = EXACT,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Approve a call. It runs once, with exactly these arguments."""
    wanted = _remember(remember, scope)
    # An approval for this call alone needs no grant.
    kept = wanted if wanted.lifetime != ONCE else None
    _decide(ident, approve_=True, reason=reason, remember=kept, config=config, json_=json_)


@app.command(epilog=examples('thoughtgate approvals deny k3f9ab --reason "not on a Friday"'))
def deny(
    ident: IdArgument,
    *,
    reason: ReasonOption = "",
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Deny a call. The agent learns that a person denied it, but not the reason."""
    _decide(ident, approve_=False, reason=reason, remember=None, config=config, json_=json_)


@app.command(epilog=examples("thoughtgate approvals watch", "thoughtgate approvals watch --json"))
def watch(*, config: ConfigOption = None, json_: JsonOption = False) -> None:
    """Wait for approval requests and answer them.

    Outside a terminal, or with --json, this prints one line for each change instead.
    """
    with _store(config) as store:
        if not json_ and sys.stdin.isatty() and sys.stdout.isatty():
            sys.stderr.write("Waiting for approval requests. Press Ctrl-C to stop.\n")
            state = state_directory(os.environ)
            why_not = partial(find_agent_reason, os.environ, state)
            keys, screen = sys.stdin.fileno(), sys.stdout.fileno()
            Asker(store, keys, screen, why_not=why_not).run(lambda: False)
            return
        for changed in _changes(store):
            if json_:
                line = json.dumps(approval_object(changed))
            else:
                line = visible(f"{changed.id} {changed.status} {changed.tool} on {changed.server}")
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


@grants_app.command("list", epilog=examples("thoughtgate approvals grants list --json"))
def list_grants(*, config: ConfigOption = None, json_: JsonOption = False) -> None:
    """List remembered approvals."""
    with _store(config) as store:
        found = store.grants(time.time())
        lines = table_lines(GRANT_COLUMNS, grant_rows(found, time.time()))
        write_report([grant_object(each) for each in found], lines, as_json=json_)
        if not found and not json_:
            sys.stderr.write("There are no remembered approvals.\n")


@grants_app.command(
    "add", epilog=examples("thoughtgate approvals grants add k3f9ab --remember 2h --scope tool")
)
def add_grant(
    ident: IdArgument,
    *,
    remember: RememberOption = ONCE,
    scope: ScopeOption = EXACT,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Allow calls like an earlier one, for example if the answer to it came too late.

    With --remember once, the next such call runs without asking.
    """
    with _store(config) as store:
        found = _found(store.get(ident))
        grant = _found(
            store.add_grant(
                found.id,
                _remember(remember, scope),
                by=identity(),
                grant_id=new_approval_id(),
                now=time.time(),
            )
        )
        line = f"Granted as {grant.id}: {visible(found.tool)} on {visible(found.server)}."
        write_report(grant_object(grant), [line], as_json=json_)


@grants_app.command("revoke", epilog=examples("thoughtgate approvals grants revoke 7hk2pm"))
def revoke_grant(
    ident: Annotated[str, Argument(metavar="GRANT", help="Id of the grant.")],
    *,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Revoke a remembered approval, so that the next such call needs approval again."""
    with _store(config) as store:
        grant = _found(store.revoke_grant(ident.strip().lower()))
        write_report(grant_object(grant), [f"Revoked {grant.id}."], as_json=json_)


def _decide(
    ident: str,
    *,
    approve_: bool,
    reason: str,
    remember: Remember | None,
    config: str | None,
    json_: bool,
) -> None:
    with _store(config) as store:
        found = _found(store.get(ident))
        now = time.time()
        vote = Vote(identity(), approve_, now, reason)
        counted = _found(
            store.vote(found.id, [vote], now, remember=remember, grant_id=new_approval_id())
        )
        what = f"{visible(counted.tool)} on {visible(counted.server)}"
        line = f"{counted.status.capitalize()} {counted.id}: {what}."
        if counted.status == PENDING:
            votes = f"{len(counted.votes)} of {counted.required}"
            line = f"Vote counted for {counted.id}: {votes} for {what}."
        write_report(approval_object(counted), [line], as_json=json_)


@contextmanager
def _store(config: str | None) -> Iterator[ApprovalStore]:
    """Open the store, and close requests that nobody waits for, so that they are not shown."""
    with closing(open_store(find_store(config))) as store:
        _settle(store)
        yield store


def _settle(store: ApprovalStore) -> None:
    now = time.time()
    if store.has_due(now):
        store.settle_due(now)


def _changes(store: ApprovalStore) -> Iterator[Approval]:
    rev = 0
    first = True
    while True:
        _settle(store)
        for changed in store.since(rev) if store.changed() else ():
            rev = changed.rev
            # The first look returns the whole history, of which only open requests are of interest.
            if not first or changed.status == PENDING:
                yield changed
        first = False
        time.sleep(LOOK_EVERY_S)


def _remember(lifetime: str, scope: str) -> Remember:
    require_choice("--scope", scope, SCOPES)
    if lifetime in {ONCE, SESSION}:
        return Remember(lifetime, scope)
    try:
        return Remember(UNTIL, scope, parse_duration(lifetime))
    except ValueError as error:
        raise UsageError(
            f"--remember must be once, session or a duration such as 2h (got {lifetime!r}): it {error}"
        ) from None


def _found(result: _Found | Refusal) -> _Found:
    """Return the result, or end the command with the reason for the refusal."""
    if isinstance(result, Refusal):
        raise (Conflict if result.kind == "too_late" else UsageError)(result.text)
    return result
