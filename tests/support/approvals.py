"""Approvals, calls and desks to test with."""

from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from thoughtgate.channels.channel import Channel
from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import Approval, Vote, digest_of
from thoughtgate.core.open_calls import OpenCall
from thoughtgate.gate.approvals.queue import ApprovalQueue
from thoughtgate.policy.call import APPROVE, Call, Verdict
from thoughtgate.policy.redaction import Redactor
from thoughtgate.stores.approvals import ApprovalStore, Limits
from thoughtgate.stores.open_database import SQLITE, StoreLocation, open_database
from thoughtgate.stores.process_owner import own_name

NOW = 1_800_000_000.0
"""A time far from any other in the tests."""

DEAD = "gate|dead"
"""The owner of requests whose gate has died."""

CALL = Call("files", "tool", "delete_file", {"path": "/tmp/x"}, session="s1", definition="d1")


def an_approval(**changes: Any) -> Approval:
    """Return a pending approval of ``CALL``, five minutes from its end."""
    made = Approval(
        id="k3f9ab",
        call_id="run.1",
        digest=digest_of(CALL, "v1"),
        server="files",
        kind="tool",
        tool="delete_file",
        arguments='{"path":"/tmp/x"}',
        folded=False,
        principal="local",
        session="s1",
        workflow="default",
        channel="console",
        rule="rules[0]",
        reason="it deletes",
        policy_version="v1",
        created_at=NOW,
        expires_at=NOW + 300,
        required=1,
        approvers=(),
        on_timeout="deny",
        elicitation=False,
        remember=True,
        owner="gate|elsewhere|b|n|1|1",
        definition="d1",
    )
    return made._replace(**changes)


def put_approval(
    store: ApprovalStore, call: Call = CALL, *, now: float = NOW, **changes: Any
) -> Approval:
    """Store a request for the approval of a call."""
    about = {"tool": call.name, "session": call.session, "digest": digest_of(call, "v1")}
    asked = an_approval(**{**about, **changes})
    stored = store.ask(asked, now)
    assert isinstance(stored, Approval)
    return stored


def a_yes(by: str = "terminal:ann", at: float = NOW + 1, reason: str = "") -> Vote:
    """Return an approving vote."""
    return Vote(by, approve=True, at=at, reason=reason)


def a_no(by: str = "terminal:bob", at: float = NOW + 1, reason: str = "") -> Vote:
    """Return a refusing vote."""
    return Vote(by, approve=False, at=at, reason=reason)


def held(call: Call = CALL, rule: str = "rules[0]", reason: str = "it deletes") -> OpenCall:
    """Return a call as the judge holds it."""
    verdict = Verdict(APPROVE, "rules", reason=reason, rule=rule, workflow="default")
    return OpenCall(call, verdict, NOW)


def spelled(location: StoreLocation) -> str:
    """Return a location in one argument, for another process."""
    return f"{location.directory} {location.url}"


def a_store(
    location: StoreLocation | Path | str, *, alive: Callable[[str], bool] | None = None
) -> ApprovalStore:
    """Open a store; without ``alive`` owners are looked up for real."""
    if isinstance(location, str):
        directory, _, url = location.partition(" ")
        location = StoreLocation(Path(directory), url or SQLITE)
    database = open_database(location)
    return ApprovalStore(database) if alive is None else ApprovalStore(database, alive=alive)


def a_desk(
    store: ApprovalStore,
    workflows: Mapping[str, WorkflowSettings] | None = None,
    *,
    owner: str = "",
    channels: tuple[Channel, ...] = (),
    limits: Limits | None = None,
    redactor: Redactor | None = None,
    policy_version: str = "v1",
    ids: str = "a",
) -> ApprovalQueue:
    """Return a desk whose approvals are called a1, a2, ... unless taken, or with other letters."""
    numbers = count(1)
    return ApprovalQueue(
        store,
        workflows or {},
        owner or own_name(),
        redactor or Redactor(),
        lambda: f"{ids}{next(numbers)}",
        policy_version=policy_version,
        channels=channels,
        limits=limits,
    )
