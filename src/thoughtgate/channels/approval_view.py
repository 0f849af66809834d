"""Approvals and grants as JSON objects, for ``--json`` and the console."""

import json
from typing import Any

from thoughtgate.core.approval import Approval, extra_json
from thoughtgate.core.envelope import render_time
from thoughtgate.core.grant import Grant


def approval_object(approval: Approval) -> dict[str, Any]:
    """Return everything that a person may see of an approval."""
    decider = approval.decider
    return {
        "id": approval.id,
        "status": approval.status,
        "server": approval.server,
        "kind": approval.kind,
        "tool": approval.tool,
        "arguments": json.loads(approval.arguments),
        "arguments_folded": approval.folded,
        "extra": json.loads(extra_json(approval) or "null"),
        "principal": approval.principal,
        "client": approval.client or None,
        "session": approval.session,
        "workflow": approval.workflow,
        "channel": approval.channel,
        "rule": approval.rule,
        "reason": approval.reason,
        "created_at": render_time(approval.created_at),
        "expires_at": render_time(approval.expires_at),
        "required": approval.required,
        "approvers": list(approval.approvers),
        "votes": [
            {
                "by": vote.by,
                "approve": vote.approve,
                "at": render_time(vote.at),
                "reason": vote.reason,
                **vote.verified(),
            }
            for vote in approval.votes
        ],
        "decided_by": decider.by if decider is not None else None,
        "decided_at": render_time(approval.decided_at) if approval.decided_at else None,
        "closed_reason": approval.closed_reason,
        "grant": approval.grant or None,
        "ended_grants": list(approval.ended_grants),
        "call_id": approval.call_id,
        "digest": approval.digest,
    }


def grant_object(grant: Grant) -> dict[str, Any]:
    """Return everything that a person may see of a grant."""
    return {
        "id": grant.id,
        "server": grant.server,
        "kind": grant.kind,
        "tool": grant.tool,
        "scope": grant.scope,
        "lifetime": grant.lifetime,
        "session": grant.session or None,
        "principal": grant.principal,
        "workflow": grant.workflow,
        "by": grant.by,
        "approval": grant.approval,
        "created_at": render_time(grant.created_at),
        "expires_at": render_time(grant.expires_at),
        "uses": grant.uses,
        "last_used_at": render_time(grant.last_used_at) if grant.last_used_at else None,
    }
