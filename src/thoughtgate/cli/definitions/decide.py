"""``thoughtgate tools accept`` and ``tools refuse``: decide without an approval request."""

import sys
import time
from contextlib import closing
from typing import Annotated, Final

from typer import Option, confirm

from thoughtgate.channels.terminal import identity
from thoughtgate.cli.definitions.show import NamesArgument, ServerArgument, find_pins
from thoughtgate.cli.options import ConfigOption, JsonOption, examples, find_store, read_config
from thoughtgate.cli.output import counted, write_report
from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import (
    DEFINITION_KIND,
    PENDING,
    Reviewer,
    may_vote,
)
from thoughtgate.core.definitions.difference import WordDifference
from thoughtgate.errors import UsageError, visible
from thoughtgate.gate.approvals.standing_questions import StandingQuestion, as_approval
from thoughtgate.policy.policy import DEFAULT_WORKFLOW
from thoughtgate.policy.redaction import Redactor
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.open_database import open_database
from thoughtgate.stores.pins import ACCEPTED, REFUSED, Pin, PinStore, server_of

ACCEPT_EXAMPLES: Final = examples(
    "thoughtgate tools accept github", "thoughtgate tools accept github search_code --yes"
)
REFUSE_EXAMPLES: Final = examples("thoughtgate tools refuse github delete_repo --yes")

YesOption = Annotated[bool, Option("--yes", help="Decide without asking.")]


def accept_command(
    server: ServerArgument,
    names: NamesArgument = None,
    *,
    config: ConfigOption = None,
    yes: YesOption = False,
    json_: JsonOption = False,
) -> None:
    """Show what changed, and accept it: every gate that shares the store uses it within a second."""
    _decide(server, names or [], config, ACCEPTED, yes=yes, as_json=json_)


def refuse_command(
    server: ServerArgument,
    names: NamesArgument = None,
    *,
    config: ConfigOption = None,
    yes: YesOption = False,
    json_: JsonOption = False,
) -> None:
    """Show what changed, and refuse it: it stays hidden where definitions are pinned."""
    _decide(server, names or [], config, REFUSED, yes=yes, as_json=json_)


def _decide(
    server: str, names: list[str], config: str | None, status: str, *, yes: bool, as_json: bool
) -> None:
    by = identity()
    workflow = read_config(config).settings.approval.get(DEFAULT_WORKFLOW)
    _require_approver(server, workflow or WorkflowSettings(DEFAULT_WORKFLOW), by)
    with closing(open_database(find_store(config))) as database:
        store = PinStore(database)
        pins = find_pins(store, server, names)
        doubted = [pin for pin in pins if pin.status not in (ACCEPTED, status)]
        before = {(pin.server, *pin.key): pin for pin in pins if pin.status == ACCEPTED}
        words, masks = WordDifference(), Redactor()
        for pin in doubted if not as_json else ():
            old = before.get((pin.server, *pin.key))
            sys.stdout.write(f"{pin.kind} {visible(pin.name)}\n")
            for line in words.lines(old.definition if old else None, pin.definition):
                sys.stdout.write(f"  {visible(masks.mask_text(line))}\n")
        if doubted:
            _require_consent(status, yes=yes)
        decided = store.decide(doubted, status, by, time.time())
        # Their approval requests ask about something that is decided now.
        _close_questions(ApprovalStore(database), decided, status, by)
    report = [{"kind": pin.kind, "name": pin.name, "status": status} for pin in decided]
    word = status.capitalize()
    text = f"{word} {counted(len(decided), 'definition')} of {visible(server)}."
    write_report(report, [text if decided else "Nothing to decide."], as_json=as_json)


def _require_approver(server: str, workflow: WorkflowSettings, by: str) -> None:
    """Check that the policy lets this person decide.

    Raises:
        UsageError: this person cannot decide alone.
    """
    question = StandingQuestion(DEFINITION_KIND, server, server, "", "", {}, "", "")
    refused = may_vote(as_approval(question, workflow, 0.0), Reviewer(by))
    if refused is not None:
        raise UsageError(refused.text)
    if workflow.required > 1:
        raise UsageError(f"{workflow.required} people must accept it; answer the approval request")


def _require_consent(status: str, *, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("this is not a terminal; to decide without a question, add --yes")
    verb = "Accept" if status == ACCEPTED else "Refuse"
    confirm(f"{verb} these definitions?", abort=True, err=True)


def _close_questions(store: ApprovalStore, decided: list[Pin], status: str, by: str) -> None:
    keys = {pin.server for pin in decided}
    for asked in store.listed(PENDING):
        if asked.kind == DEFINITION_KIND and asked.tool in keys:
            verb = "accept" if status == ACCEPTED else "refuse"
            reason = f"decided by {by} with tools {verb} {server_of(asked.tool)}"
            store.withdraw(asked.id, reason, time.time())
