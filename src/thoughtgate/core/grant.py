"""Grants: remembered decisions that approve later calls, with their scope and lifetime.

A grant never widens what the rules allow: it only replaces the approval that they require, and
the rules are evaluated again before the call runs. Pure; the store keeps and counts grants.
"""

import json
from typing import Final, NamedTuple

from thoughtgate.core.approval import Approval, Refusal, Reviewer
from thoughtgate.policy.call import TOOL as TOOL_KIND
from thoughtgate.policy.names import is_masked

ONCE: Final = "once"
SESSION: Final = "session"
UNTIL: Final = "until"
LIFETIMES: Final = (ONCE, SESSION, UNTIL)

EXACT: Final = "call"
TOOL: Final = "tool"
SCOPES: Final = (EXACT, TOOL)

MAX_GRANT_S: Final = 30 * 86_400.0
"""A grant lasts at most 30 days, so that forgotten grants end."""


class Remember(NamedTuple):
    """What a reviewer wants remembered with a decision."""

    lifetime: str
    """``once`` (the next such call), ``session`` or ``until``."""
    scope: str = EXACT
    """``call``: the same call with the same arguments; ``tool``: any call of the tool."""
    seconds: float = 0.0
    """For ``until``: the duration from the decision on."""


class Grant(NamedTuple):
    """One remembered decision."""

    id: str
    principal: str
    workflow: str
    server: str
    kind: str
    tool: str
    scope: str
    digest: str
    """For scope ``call``: the approval's digest. Empty for scope ``tool``."""
    lifetime: str
    session: str
    """For lifetime ``session``: the key of the session that it ends with."""
    created_at: float
    expires_at: float
    """For ``until`` its end; for the other lifetimes the latest possible end."""
    by: str
    approval: str
    """The id of the approval that created it."""
    uses: int = 0
    last_used_at: float = 0.0
    definition: str = ""
    """Digest of the tool's definition that it was given for; empty if that was not known."""
    by_groups: str = "[]"
    """JSON text: the groups that the reviewer had when they gave it."""
    by_issuer: str = ""

    @property
    def reviewer(self) -> Reviewer:
        """Who gave it."""
        return Reviewer(self.by, tuple(json.loads(self.by_groups)), self.by_issuer)


def grant_from(
    approval: Approval, remember: Remember, *, by: Reviewer, ident: str, now: float
) -> Grant | Refusal:
    """Turn a decision into a grant, or return why it cannot be remembered."""
    if refusal := _why_not(approval, remember):
        return Refusal("cannot_remember", refusal)
    seconds = remember.seconds if remember.lifetime == UNTIL else MAX_GRANT_S
    return Grant(
        id=ident,
        principal=approval.principal,
        workflow=approval.workflow,
        server=approval.server,
        kind=approval.kind,
        tool=approval.tool,
        scope=remember.scope,
        digest=approval.digest if remember.scope == EXACT else "",
        lifetime=remember.lifetime,
        session=approval.session_key if remember.lifetime == SESSION else "",
        created_at=now,
        expires_at=now + seconds,
        by=by.by,
        approval=approval.id,
        definition=approval.definition,
        by_groups=json.dumps(by.groups),
        by_issuer=by.issuer,
    )


def _why_not(approval: Approval, remember: Remember) -> str:
    """Return why a decision cannot be remembered; empty if it can."""
    if remember.lifetime not in LIFETIMES or remember.scope not in SCOPES:
        return "remember once, for the session or for a time; call or tool"
    if not approval.remember:
        return f"{approval.workflow} does not let decisions be remembered"
    # One person's remembered decision would later stand for several.
    if approval.required > 1:
        each = f"{approval.workflow} asks {approval.required} people each time"
        return f"{each}; it cannot be remembered"
    if remember.scope == TOOL and _has_unknown_definition(approval):
        return "the server has not listed the tool, so only this exact call can be remembered"
    if remember.scope == TOOL and is_masked(approval.tool):
        return "the name holds a secret, so only this exact call can be remembered"
    return _why_not_so_long(approval, remember)


def _why_not_so_long(approval: Approval, remember: Remember) -> str:
    if remember.lifetime == SESSION and not approval.session_key:
        return "the call belongs to no session; remember it for a time"
    if remember.lifetime == UNTIL and not 0 < remember.seconds <= MAX_GRANT_S:
        return "remember for more than nothing and at most 30 days"
    return ""


def matches(grant: Grant, asked: Approval, now: float) -> bool:
    """Tell whether a grant decides an approval request."""
    if now >= grant.expires_at or (grant.lifetime == ONCE and grant.uses):
        return False
    if not _is_about(grant, asked):
        return False
    # Also if only one of them is known: nothing then shows that the tool is the same.
    if grant.definition != asked.definition:
        return False
    if grant.scope == TOOL:
        # A definition that is not known cannot be compared: then a person is asked.
        return not _has_unknown_definition(asked)
    return bool(grant.digest) and grant.digest == asked.digest


def has_lost_definition(grant: Grant, asked: Approval) -> bool:
    """Tell whether a grant for this call ends, because the server now lists the tool differently."""
    is_other = bool(grant.definition and asked.definition) and grant.definition != asked.definition
    return is_other and _is_about(grant, asked)


def _has_unknown_definition(asked: Approval) -> bool:
    return asked.kind == TOOL_KIND and not asked.definition


def _is_about(grant: Grant, asked: Approval) -> bool:
    """Tell whether a grant is for the principal, workflow, tool and session of a request."""
    about = (asked.principal, asked.workflow, asked.server, asked.kind, asked.tool)
    if about != (grant.principal, grant.workflow, grant.server, grant.kind, grant.tool):
        return False
    # Two calls without a session have equal keys, but do not share a session.
    return grant.lifetime != SESSION or bool(grant.session and asked.session_key == grant.session)
