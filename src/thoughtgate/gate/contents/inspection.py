"""Inspection of a server's message before the agent gets it; nothing else changes messages.

Both kinds of authority use it: a process for its own sessions, and the governance service for its
shims. It masks what a rule asks for, applies the content checks, records what they found, and
prepares a result that must wait for a person.
"""

from typing import TYPE_CHECKING, Any, Final

from thoughtgate.core.commands import InspectAnswer, InspectLater
from thoughtgate.core.events import AnswerInspected
from thoughtgate.core.open_calls import OpenCall
from thoughtgate.core.record_events import SERVER_TO_AGENT
from thoughtgate.errors import StoreError
from thoughtgate.gate.governor import Governor
from thoughtgate.policy.call import APPROVE, INSPECT_BEFORE, PRODUCTION, TOOL, Call, Verdict
from thoughtgate.policy.facts import facts_of_checks
from thoughtgate.policy.inspection.content_policy import (
    BLOCK,
    ENVELOPE,
    HOLD,
    REDACT,
    RESULT_KIND,
    UNCHANGED,
)
from thoughtgate.policy.policy import DEFAULT_WORKFLOW
from thoughtgate.wire.replies import render

if TYPE_CHECKING:
    from thoughtgate.policy.inspection.treatment import Treated

MASKED: Final = (("redact", "hard", "result"),)
"""What is recorded in the development profile of a result that a rule with ``redact`` masks."""

_FLAGGED: Final = "the content checks found something in the result; the call was made"


def inspect_answer(
    governor: Governor, server: str, session: str, principal: str, command: InspectAnswer
) -> AnswerInspected:
    """Inspect a message of a server, and return what the agent may get of it."""
    if command.of_task and not governor.judge.renew_facts(server, principal, command.at):
        return AnswerInspected(command.key, None, command.at)
    return _inspect(governor, server, session, principal, command)


def _inspect(
    governor: Governor, server: str, session: str, principal: str, command: InspectAnswer
) -> AnswerInspected:
    opened = governor.judge.open_call(command.call_id)
    body = _masked(governor, opened, command)
    if body != command.body and governor.policy.profile != PRODUCTION:
        return _would_mask(governor, opened, (server, session, principal), command)
    contents = governor.policy.contents
    when = contents.result_inspection(server) if contents is not None else 0
    if contents is None or when != INSPECT_BEFORE:
        if when:
            size = len(render(command.body))
            later = InspectLater(command.call_id, command.body, size, command.at)
            governor.later.put_message(later, server, session, principal)
        return AnswerInspected(command.key, body, command.at)
    from thoughtgate.policy.inspection.treatment import treat  # only where a server asks for it

    kind, name = (opened.call.kind, opened.call.name) if opened is not None else (TOOL, "")
    treated = treat(body, contents.of(server), name)
    if not treated.findings:
        return AnswerInspected(command.key, treated.body, command.at)
    action = treated.action
    if action == HOLD and not command.can_wait:
        action = BLOCK
    call = Call(server, kind, name, {}, principal=principal, session=session)
    ident = command.call_id or governor.errors.next()
    said = {"findings": treated.findings, "direction": SERVER_TO_AGENT, "action": action}
    governor.note(governor.judge.found(ident, call, command.at, **said))
    passed = AnswerInspected(command.key, body, command.at)
    if action not in UNCHANGED and governor.policy.profile != PRODUCTION:
        _establish(governor, principal, server, treated, command.at)
        return passed._replace(findings=treated.findings, outcome=f"WOULD_{action.upper()}")
    if action == BLOCK or not _establish(governor, principal, server, treated, command.at):
        return passed._replace(body=None, findings=treated.decisive)
    if action == HOLD:
        held = _hold(governor, call, ident, treated, command)
        passed = passed._replace(findings=treated.decisive, held=held, workflow=DEFAULT_WORKFLOW)
    return passed._replace(body=treated.body)


def _establish(
    governor: Governor, principal: str, server: str, treated: "Treated", at: float
) -> bool:
    """Let the facts hold that the findings establish; False if other gates cannot be told."""
    facts = facts_of_checks(one.check for one in treated.findings)
    if not facts or not governor.policy.looks_at_facts():
        return True
    try:
        governor.establish(principal, facts, at, cause=server)
    except StoreError:
        return False
    return True


def _masked(governor: Governor, opened: OpenCall | None, command: InspectAnswer) -> dict[str, Any]:
    """Return a message with its secrets masked, if the rule for its call has ``redact``."""
    policy = governor.policy
    # Without a call, the rule that allowed it is not known, so every rule with ``redact`` counts.
    is_known = opened is not None and not command.of_task
    if not (opened.verdict.redact if is_known and opened else policy.masks_results()):
        return command.body
    said = {name: value for name, value in command.body.items() if name not in ENVELOPE}
    masked: dict[str, Any] = policy.redactor.mask_value(said)
    return {**{name: command.body[name] for name in ENVELOPE if name in command.body}, **masked}


def _would_mask(
    governor: Governor, opened: OpenCall | None, about: tuple[str, str, str], command: InspectAnswer
) -> AnswerInspected:
    """Pass a message that production would mask, and record that."""
    server, session, principal = about
    kind, name = (opened.call.kind, opened.call.name) if opened is not None else (TOOL, "")
    call = Call(server, kind, name, {}, principal=principal, session=session)
    ident = command.call_id or governor.errors.next()
    said = {"findings": MASKED, "direction": SERVER_TO_AGENT, "action": REDACT}
    governor.note(governor.judge.found(ident, call, command.at, **said))
    passed = AnswerInspected(command.key, command.body, command.at)
    return passed._replace(findings=MASKED, outcome=f"WOULD_{REDACT.upper()}")


def _hold(
    governor: Governor, call: Call, ident: str, treated: "Treated", command: InspectAnswer
) -> str:
    """Keep a result for the approval queue, and return the id under which it waits.

    It is not the call's own id: the call may have had an approval request of its own.
    """
    opened = governor.judge.open_call(command.call_id)
    held = f"{ident}r"
    said = {name: value for name, value in command.body.items() if name not in ENVELOPE}
    shown = {"findings": list(treated.shown), **said}
    request = call._replace(kind=RESULT_KIND, arguments=shown)
    verdict = Verdict(APPROVE, "contents", "", _FLAGGED, workflow=DEFAULT_WORKFLOW)
    governor.judge.hold_result(
        held,
        OpenCall(
            request,
            verdict._replace(findings=treated.decisive),
            opened.at if opened is not None else command.at,
            client=opened.client if opened is not None else "",
            answers=ident,
        ),
    )
    return held
