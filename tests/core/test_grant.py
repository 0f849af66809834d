"""What is remembered, for whom, and for how long."""

from typing import Any

import pytest
from tests.support.approvals import CALL, NOW, an_approval

from thoughtgate.core.approval import Approval, Refusal, Reviewer, digest_of
from thoughtgate.core.grant import (
    EXACT,
    MAX_GRANT_S,
    ONCE,
    SESSION,
    TOOL,
    UNTIL,
    Grant,
    Remember,
    grant_from,
    has_lost_definition,
    matches,
)
from thoughtgate.policy.call import Call


def a_grant(lifetime: str, scope: str, seconds: float = 60.0) -> Grant:
    made = grant_from(
        an_approval(),
        Remember(lifetime, scope, seconds),
        by=Reviewer("terminal:ann"),
        ident="g1",
        now=NOW,
    )
    assert isinstance(made, Grant)
    return made


def covers(
    grant: Grant, call: Call = CALL, *, now: float = NOW + 1, version: str = "v1", **changes: Any
) -> bool:
    asked = an_approval(
        call_id="run.2",
        digest=digest_of(call, version),
        server=call.server,
        kind=call.kind,
        tool=call.name,
        principal=call.principal,
        session=call.session,
    )
    return matches(grant, asked._replace(**changes), now)


@pytest.mark.parametrize("lifetime", [ONCE, SESSION, UNTIL])
@pytest.mark.parametrize("scope", [EXACT, TOOL])
def test_every_lifetime_goes_with_every_scope(lifetime: str, scope: str) -> None:
    grant = a_grant(lifetime, scope)
    assert covers(grant)
    other_arguments = CALL._replace(arguments={"path": "/tmp/y"})
    assert covers(grant, other_arguments) is (scope == TOOL)
    other_session = CALL._replace(session="s2")
    assert covers(grant, other_session) is (lifetime != SESSION)


@pytest.mark.parametrize(
    "call",
    [
        CALL._replace(principal="other"),
        CALL._replace(server="other"),
        CALL._replace(kind="prompt"),
        CALL._replace(name="delete_files"),
    ],
)
def test_a_grant_is_bound_to_principal_and_tool(call: Call) -> None:
    assert not covers(a_grant(UNTIL, TOOL), call)


def test_a_grant_of_one_workflow_does_not_answer_for_another() -> None:
    assert not covers(a_grant(UNTIL, TOOL), workflow="strict")


def test_a_grant_ends_with_its_time() -> None:
    grant = a_grant(UNTIL, TOOL, 60)
    assert covers(grant, now=NOW + 59.9)
    assert not covers(grant, now=NOW + 60)


def test_no_grant_outlives_the_longest_time() -> None:
    assert not covers(a_grant(SESSION, TOOL), now=NOW + MAX_GRANT_S)


def test_a_grant_for_once_is_used_up_by_one_call() -> None:
    assert not covers(a_grant(ONCE, EXACT)._replace(uses=1))
    assert covers(a_grant(UNTIL, EXACT)._replace(uses=9))


def test_an_exact_grant_does_not_survive_another_policy() -> None:
    assert not covers(a_grant(UNTIL, EXACT), version="v2")
    assert not covers(a_grant(UNTIL, EXACT)._replace(digest=""), digest="")


def test_a_session_of_another_run_is_another_session() -> None:
    grant = a_grant(SESSION, TOOL)
    assert covers(grant, call_id="run.99")
    assert not covers(grant, call_id="another-run.2")
    assert not covers(grant, call_id="")


def test_a_call_without_a_session_is_not_covered_by_a_session_grant() -> None:
    grant = a_grant(SESSION, TOOL)._replace(session="")
    assert not covers(grant, CALL._replace(session=""))


@pytest.mark.parametrize(
    ("approval", "remember", "words"),
    [
        (an_approval(required=2), Remember(SESSION), "2 people"),
        (an_approval(remember=False), Remember(SESSION), "does not let"),
        (an_approval(session=""), Remember(SESSION), "no session"),
        (an_approval(), Remember(UNTIL, EXACT, 0), "more than nothing"),
        (an_approval(), Remember(UNTIL, EXACT, MAX_GRANT_S + 1), "30 days"),
        (an_approval(), Remember("always"), "remember"),
        (an_approval(), Remember(SESSION, "everything"), "remember"),
    ],
)
def test_what_cannot_be_remembered_says_why(
    approval: Approval, remember: Remember, words: str
) -> None:
    made = grant_from(approval, remember, by=Reviewer("terminal:ann"), ident="g1", now=NOW)
    assert isinstance(made, Refusal)
    assert made.kind == "cannot_remember"
    assert words in made.text


@pytest.mark.promise("grants-end-with-the-definition")
@pytest.mark.parametrize(
    ("scope", "given", "now", "decides", "ends"),
    [
        (EXACT, "", "", True, False),
        (EXACT, "", "d1", False, False),
        *((scope, "d1", "d1", True, False) for scope in (EXACT, TOOL)),
        *((scope, "d1", "d2", False, True) for scope in (EXACT, TOOL)),
        *((scope, "d1", "", False, False) for scope in (EXACT, TOOL)),
    ],
)
def test_a_grant_is_for_the_definition_that_it_was_given_for(
    scope: str, given: str, now: str, *, decides: bool, ends: bool
) -> None:
    asked = an_approval(definition=given)
    grant = grant_from(
        asked, Remember(SESSION, scope), by=Reviewer("terminal:ann"), ident="g1", now=NOW
    )
    assert isinstance(grant, Grant)
    later = an_approval(call_id="run.2", definition=now)
    assert matches(grant, later, NOW + 1) is decides
    assert has_lost_definition(grant, later) is ends
    assert not has_lost_definition(grant, later._replace(tool="other"))
    assert not has_lost_definition(grant, later._replace(session="s9"))


@pytest.mark.promise("grants-end-with-the-definition")
def test_a_tool_that_no_list_has_shown_is_not_remembered_as_a_whole() -> None:
    asked = an_approval(definition="")
    by = Reviewer("terminal:ann")
    made = grant_from(asked, Remember(SESSION, TOOL), by=by, ident="g1", now=NOW)
    assert isinstance(made, Refusal)
    assert "has not listed the tool" in made.text
    # Nor does a grant count that an earlier version gave.
    given = grant_from(an_approval(), Remember(SESSION, TOOL), by=by, ident="g1", now=NOW)
    assert isinstance(given, Grant)
    assert not matches(given._replace(definition=""), asked, NOW + 1)
    prompt = an_approval(definition="", kind="prompt")
    assert isinstance(
        grant_from(prompt, Remember(SESSION, TOOL), by=by, ident="g1", now=NOW), Grant
    )


@pytest.mark.promise("params-are-bound")
def test_a_grant_for_a_call_does_not_cover_it_with_extra_params() -> None:
    grant = a_grant(UNTIL, EXACT)
    assert not covers(grant, CALL._replace(extra={"cwd": "/etc"}))


def test_only_the_exact_call_is_remembered_if_the_name_holds_a_secret() -> None:
    masked = an_approval(tool="https://host/?token=[REDACTED] #1a2b3c4d")
    refused = grant_from(
        masked, Remember(ONCE, TOOL), by=Reviewer("terminal:ann"), ident="g", now=NOW
    )
    assert isinstance(refused, Refusal)
    assert "secret" in refused.text
    made = grant_from(
        masked, Remember(ONCE, EXACT), by=Reviewer("terminal:ann"), ident="g", now=NOW
    )
    assert isinstance(made, Grant)


def test_a_grant_knows_the_groups_of_who_gave_it() -> None:
    ann = Reviewer("console:ann", ("sre", "ops"), "https://issuer.example")
    made = grant_from(an_approval(), Remember(ONCE), by=ann, ident="g1", now=NOW)
    assert isinstance(made, Grant)
    assert made.reviewer == ann
