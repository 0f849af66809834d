"""Approvals and grants as objects."""

import json

from tests.support.approvals import NOW, a_yes, an_approval

from thoughtgate.channels.approval_view import approval_object, grant_object
from thoughtgate.core.approval import Reviewer
from thoughtgate.core.grant import SESSION, Grant, Remember, grant_from


def test_a_pending_approval_says_all_that_a_script_needs() -> None:
    shown = approval_object(an_approval())
    assert shown["id"] == "k3f9ab"
    assert shown["status"] == "pending"
    assert shown["server"] == "files"
    assert shown["tool"] == "delete_file"
    assert shown["arguments"] == {"path": "/tmp/x"}
    assert shown["expires_at"] == "2027-01-15T08:05:00.000Z"
    assert shown["client"] is None
    assert approval_object(an_approval(client="editor 2"))["client"] == "editor 2"
    assert shown["decided_by"] is None
    assert shown["decided_at"] is None
    json.dumps(shown)


def test_a_decided_approval_names_who_decided_and_when() -> None:
    shown = approval_object(
        an_approval(status="approved", votes=(a_yes(reason="ok"),), decided_at=NOW + 1)
    )
    assert shown["decided_by"] == "terminal:ann"
    assert shown["decided_at"] == "2027-01-15T08:00:01.000Z"
    assert shown["votes"] == [
        {"by": "terminal:ann", "approve": True, "at": "2027-01-15T08:00:01.000Z", "reason": "ok"}
    ]


def test_a_grant_says_what_it_allows_and_how_often_it_was_used() -> None:
    grant = grant_from(
        an_approval(), Remember(SESSION), by=Reviewer("terminal:ann"), ident="g1", now=NOW
    )
    assert isinstance(grant, Grant)
    unused = grant_object(grant)
    assert unused["session"] == "run/s1"
    assert unused["last_used_at"] is None
    used = grant_object(grant._replace(uses=2, last_used_at=NOW + 5))
    assert used["uses"] == 2
    assert used["last_used_at"] == "2027-01-15T08:00:05.000Z"


def test_what_else_a_request_carries_and_which_grants_ended_is_shown() -> None:
    plain = approval_object(an_approval())
    assert (plain["extra"], plain["ended_grants"]) == (None, [])
    shown = approval_object(an_approval(extra='{"cwd":"/etc"}', ended_grants=("g1",)))
    assert (shown["extra"], shown["ended_grants"]) == ({"cwd": "/etc"}, ["g1"])
