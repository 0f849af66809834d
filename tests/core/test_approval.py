"""The life of an approval: every move, every vote, every way to say no."""

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.approvals import CALL, NOW, a_no, a_yes, an_approval

from thoughtgate.core.approval import (
    APPROVED,
    DENIED,
    EXPIRED,
    MAX_REASON,
    PENDING,
    TRANSITIONS,
    USE_WITHIN_S,
    USED,
    VOID,
    WITHDRAWN,
    Approval,
    Refusal,
    Reviewer,
    Vote,
    digest_of,
    extra_json,
    is_shown_whole,
    is_stale,
    may_vote,
    move,
    shown_lines,
    time_out,
    vote,
    vote_all,
)
from thoughtgate.policy.call import Call
from thoughtgate.wire.canonical import NotCanonical, canonical_json


def approved(**changes: Any) -> Approval:
    return an_approval(status=APPROVED, votes=(a_yes(),), decided_at=NOW + 1, **changes)


def refusal(result: Approval | Refusal) -> Refusal:
    assert isinstance(result, Refusal)
    return result


def test_only_the_moves_in_the_table_are_made() -> None:
    for status, allowed in TRANSITIONS.items():
        for wanted in TRANSITIONS:
            moved = move(an_approval(status=status), wanted, NOW + 2)
            if wanted in allowed:
                assert isinstance(moved, Approval)
                assert moved.status == wanted
            else:
                assert refusal(moved).kind == "too_late"


def test_what_is_closed_stays_closed() -> None:
    ends = {status for status, allowed in TRANSITIONS.items() if not allowed}
    assert ends == {DENIED, EXPIRED, WITHDRAWN, USED, VOID}


def test_using_keeps_the_time_of_the_decision() -> None:
    used = move(approved(), USED, NOW + 9)
    assert isinstance(used, Approval)
    assert used.decided_at == NOW + 1


def test_one_yes_approves() -> None:
    decided = vote(an_approval(), a_yes(reason="fine"), NOW + 1)
    assert isinstance(decided, Approval)
    assert decided.status == APPROVED
    assert decided.decider == a_yes(reason="fine")


def test_one_no_denies_even_when_several_must_agree() -> None:
    once = vote(an_approval(required=3), a_yes(), NOW + 1)
    assert isinstance(once, Approval)
    decided = vote(once, a_no(reason="no"), NOW + 2)
    assert isinstance(decided, Approval)
    assert decided.status == DENIED
    assert decided.decider == a_no(reason="no")


def test_several_people_must_be_different_people() -> None:
    once = vote(an_approval(required=2), a_yes("terminal:ann"), NOW + 1)
    assert isinstance(once, Approval)
    assert once.status == PENDING
    assert refusal(vote(once, a_yes("terminal:ann"), NOW + 2)).kind == "voted"
    twice = vote(once, a_yes("terminal:bob"), NOW + 2)
    assert isinstance(twice, Approval)
    assert twice.status == APPROVED


@pytest.mark.promise("agent-cannot-approve")
def test_the_prompt_of_an_agent_that_names_no_person_is_none_of_several_people() -> None:
    asked = an_approval(required=2, elicitation=True, principal="bot")
    assert refusal(vote(asked, a_yes("elicitation:bot"), NOW + 1)).kind == "self"
    assert isinstance(vote(asked, a_yes("elicitation:ann"), NOW + 1), Approval)
    denied = vote(asked, a_no("elicitation:bot"), NOW + 1)
    assert isinstance(denied, Approval)
    assert denied.status == DENIED
    alone = vote(asked._replace(required=1), a_yes("elicitation:bot"), NOW + 1)
    assert isinstance(alone, Approval)


@pytest.mark.parametrize("first", ["terminal:ann", "console:ann", "elicitation:ann"])
@pytest.mark.parametrize("second", ["terminal:ann", "console:ann", "elicitation:ann"])
def test_one_login_is_one_person_in_every_local_channel(first: str, second: str) -> None:
    once = vote(an_approval(required=2, elicitation=True), a_yes(first), NOW + 1)
    assert isinstance(once, Approval)
    assert refusal(vote(once, a_yes(second), NOW + 2)).kind == "voted"
    assert isinstance(vote(once, a_yes("slack:ann"), NOW + 2), Approval)


def test_somebody_who_approved_may_still_refuse() -> None:
    once = vote(an_approval(required=2), a_yes("terminal:ann"), NOW + 1)
    assert isinstance(once, Approval)
    decided = vote(once, a_no("terminal:ann"), NOW + 2)
    assert isinstance(decided, Approval)
    assert decided.status == DENIED


def test_the_first_decision_wins() -> None:
    decided = vote(an_approval(), a_yes(), NOW + 1)
    assert isinstance(decided, Approval)
    late = refusal(vote(decided, a_no(), NOW + 2))
    assert late.kind == "too_late"
    assert "already approved by terminal:ann" in late.text


def test_of_two_seen_at_once_the_refusal_wins() -> None:
    decided, refused = vote_all(an_approval(), [a_yes(at=NOW + 1), a_no(at=NOW + 5)], NOW + 6)
    assert decided.status == DENIED
    assert [each.kind for each in refused] == ["too_late"]


def test_a_refusal_that_does_not_count_does_not_stop_an_approval_seen_with_it() -> None:
    asked = an_approval(approvers=("terminal:ann",))
    decided, refused = vote_all(asked, [a_no("terminal:mallory"), a_yes("terminal:ann")], NOW + 1)
    assert decided.status == APPROVED
    assert [each.kind for each in refused] == ["not_allowed"]


@pytest.mark.parametrize(
    ("approvers", "channel", "by", "allowed"),
    [
        ((), "console", "terminal:ann", True),
        (("U0123",), "slack", "slack:U0123", True),
        (("U0123",), "slack", "slack:U9999", False),
        (("U0123",), "slack", "terminal:U0123", False),
        (("terminal:ann",), "slack", "terminal:ann", True),
        (("ann",), "console", "terminal:ann", True),
        (("ann",), "terminal", "console:ann", True),
        (("ann",), "console", "slack:ann", False),
        (("Ann",), "console", "terminal:ann", False),
    ],
)
def test_approvers_are_limited_by_name(
    approvers: tuple[str, ...], channel: str, by: str, *, allowed: bool
) -> None:
    result = may_vote(an_approval(approvers=approvers, channel=channel), Reviewer(by))
    assert (result is None) is allowed
    if result is not None:
        assert result.kind == "not_allowed"


@pytest.mark.parametrize(
    ("approvers", "reviewer", "allowed"),
    [
        (("group:sre",), Reviewer("console:ann", ("dev", "sre"), "i"), True),
        (("group:sre",), Reviewer("console:ann", ("dev",), "i"), False),
        (("group:sre",), Reviewer("console:ann", ("SRE",), "i"), False),
        (("group:sre",), Reviewer("console:ann", ("sre",)), False),
        (("group:sre",), Reviewer("terminal:sre"), False),
        (("group:sre",), Reviewer("console:group:sre", (), "i"), False),
        (("group:sre",), Reviewer("terminal:group:sre"), False),
        (("group:sre",), Reviewer("group:sre", ("sre",), "i"), False),
        (("user:ann",), Reviewer("console:ann", (), "i"), True),
        (("user:ann",), Reviewer("console:ann"), False),
        (("user:ann",), Reviewer("terminal:ann"), False),
        (("user:ann",), Reviewer("console:user:ann", (), "i"), False),
        (("user:ann",), Reviewer("user:ann", (), "i"), False),
        (("ann",), Reviewer("console:ann", (), "i"), True),
        (("console:ann",), Reviewer("console:ann", (), "i"), True),
        (("slack:U1",), Reviewer("console:slack:U1", (), "i"), False),
        (("ops:ann",), Reviewer("console:ops:ann"), True),
    ],
)
def test_groups_and_users_are_those_of_a_verified_token(
    approvers: tuple[str, ...], reviewer: Reviewer, *, allowed: bool
) -> None:
    result = may_vote(an_approval(approvers=approvers), reviewer)
    assert (result is None) is allowed
    if result is not None:
        assert result.kind == "not_allowed"


def test_a_vote_carries_what_its_token_said() -> None:
    signed = Vote("console:ann", approve=True, at=NOW + 1, groups=("sre",), issuer="i")
    decided = vote(an_approval(approvers=("group:sre",)), signed, NOW + 1)
    assert isinstance(decided, Approval)
    assert decided.decider == signed
    assert signed.verified() == {"groups": ["sre"], "issuer": "i"}
    assert a_yes().verified() == {}


@pytest.mark.parametrize("by", ["agent:local", "agent:somebody", "oauth:ann"])
def test_the_asking_agent_cannot_answer_itself(by: str) -> None:
    asked = an_approval(principal="oauth:ann")
    for given_vote in (a_yes(by), a_no(by)):
        assert refusal(vote(asked, given_vote, NOW + 1)).kind == "self"


def test_the_agents_own_prompt_decides_only_where_the_workflow_allows_it() -> None:
    by = "elicitation:local"
    assert refusal(vote(an_approval(), a_yes(by), NOW + 1)).kind == "self"
    decided = vote(an_approval(elicitation=True), a_yes(by), NOW + 1)
    assert isinstance(decided, Approval)
    assert decided.status == APPROVED


@pytest.mark.parametrize("by", ["", "ann", "terminal:", ":ann", "system:on_timeout", "grant:g1"])
def test_a_vote_without_a_person_does_not_count(by: str) -> None:
    assert refusal(vote(an_approval(), a_yes(by), NOW + 1)).kind == "not_allowed"


def test_a_vote_after_the_end_of_time_is_too_late() -> None:
    late = refusal(vote(an_approval(), a_yes(), NOW + 300))
    assert late.kind == "too_late"
    assert "expired" in late.text


def test_a_long_reason_is_cut() -> None:
    decided = vote(an_approval(), a_yes(reason="x" * (MAX_REASON + 1)), NOW + 1)
    assert isinstance(decided, Approval)
    assert len(decided.votes[0].reason) == MAX_REASON


@pytest.mark.parametrize("status", sorted(TRANSITIONS))
def test_each_state_says_why_it_is_too_late(status: str) -> None:
    if status == PENDING:
        assert "still pending" in refusal(move(an_approval(), USED, NOW)).text
        return
    closed = an_approval(status=status, votes=(a_yes(),), closed_reason="because")
    text = refusal(vote(closed, a_yes(), NOW + 1)).text
    assert closed.id in text
    assert ("because" in text) is (status in {EXPIRED, WITHDRAWN, VOID})


def test_silence_denies_by_default() -> None:
    ended = time_out(an_approval(), NOW + 300)
    assert isinstance(ended, Approval)
    assert ended.status == EXPIRED
    assert ended.decider is None


def test_too_few_votes_in_time_are_counted_in_the_reason() -> None:
    once = an_approval(votes=(a_yes(),), required=2)
    ended = time_out(once, NOW + 300)
    assert isinstance(ended, Approval)
    assert ended.closed_reason == "1 of 2 approved in time"
    assert ended.decider is None
    agreed = time_out(once._replace(on_timeout="approve"), NOW + 300)
    assert isinstance(agreed, Approval)
    assert agreed.votes[-1].reason == "1 of 2 approved in time"
    assert "1 of 2" in refusal(vote(once, a_yes("terminal:bob"), NOW + 301)).text


def test_silence_approves_only_where_the_workflow_says_so() -> None:
    ended = time_out(an_approval(on_timeout="approve"), NOW + 300)
    assert isinstance(ended, Approval)
    assert ended.status == APPROVED
    assert ended.decider is not None
    assert ended.decider.by == "system:on_timeout"


def test_nothing_times_out_early_or_twice() -> None:
    assert refusal(time_out(an_approval(), NOW + 299)).kind == "too_early"
    assert refusal(time_out(approved(), NOW + 900)).kind == "too_early"


def test_an_approval_goes_stale_when_it_is_not_used() -> None:
    assert not is_stale(approved(), NOW + 1 + USE_WITHIN_S)
    assert is_stale(approved(), NOW + 2 + USE_WITHIN_S)
    assert not is_stale(an_approval(), NOW + 10_000)


def test_only_tasks_outlive_the_process_that_asked() -> None:
    assert an_approval(owner="task:tg_1").is_durable
    assert not an_approval().is_durable


def test_a_pending_approval_has_no_decider() -> None:
    assert an_approval(votes=(a_yes(),), required=2).decider is None
    assert an_approval(status=WITHDRAWN).decider is None


def test_the_channel_of_a_vote_is_the_first_part_of_the_identity() -> None:
    assert Vote("slack:U:1", approve=True, at=NOW).channel == "slack"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
_CALLS = st.builds(
    CALL._replace,
    server=st.text(max_size=4),
    kind=st.sampled_from(["tool", "resource", "prompt"]),
    name=st.text(max_size=4),
    arguments=st.dictionaries(st.text(max_size=3), _JSON, max_size=3),
    method=st.sampled_from(["tools/call", "resources/read"]),
    principal=st.text(max_size=4),
    extra=st.none() | st.dictionaries(st.text(max_size=3), _JSON, max_size=2),
)


def _bound(call: Call) -> tuple[str, ...]:
    arguments, extra = canonical_json(call.arguments), canonical_json(call.extra or None)
    return (call.server, call.kind, call.method, call.name, arguments, call.principal, extra)


@settings(max_examples=200, deadline=None)
@given(_CALLS, _CALLS, st.text(max_size=3), st.text(max_size=3))
def test_two_digests_agree_exactly_when_the_calls_do(
    one: Call, other: Call, version: str, other_version: str
) -> None:
    same = (_bound(one), version) == (_bound(other), other_version)
    assert (digest_of(one, version) == digest_of(other, other_version)) is same


@pytest.mark.parametrize(
    "changed",
    [
        CALL._replace(server="file"),
        CALL._replace(kind="prompt"),
        CALL._replace(name="delete_fil"),
        CALL._replace(method="x"),
        CALL._replace(arguments={"path": "/tmp/y"}),
        CALL._replace(principal="other"),
        CALL._replace(server="filesd", name="elete_file"),
        CALL._replace(extra={"path": "/tmp/x"}),
    ],
)
def test_a_digest_binds_every_part_of_the_call(changed: Call) -> None:
    assert digest_of(changed, "v1") != digest_of(CALL, "v1")


def test_a_digest_does_not_depend_on_the_order_of_arguments_or_on_the_session() -> None:
    one = CALL._replace(arguments={"a": 1, "b": 2.0})
    other = CALL._replace(arguments={"b": 2, "a": 1}, session="s2")
    assert digest_of(one, "v1") == digest_of(other, "v1")
    assert digest_of(one, "v2") != digest_of(one, "v1")


def test_arguments_without_a_canonical_form_bind_to_nothing() -> None:
    with pytest.raises(NotCanonical):
        digest_of(CALL._replace(arguments={"a": "\ud800"}), "v1")


def test_the_digest_of_a_plain_call_stays_the_same_from_version_to_version() -> None:
    # Approvals of tasks and grants in the store were given for these digests.
    expected = "740676fdc103fcbe2ffcae0e0007a1e68dade7bae2270871aa3d816b804f9601"
    assert digest_of(CALL, "v1") == expected
    assert digest_of(CALL._replace(extra={}, definition="d"), "v1") == expected


def test_extra_params_without_a_canonical_form_bind_to_nothing() -> None:
    with pytest.raises(NotCanonical):
        digest_of(CALL._replace(extra={"a": "\ud800"}), "v1")


LONG = json.dumps({"text": "x" * 3000})


@pytest.mark.promise("approver-sees-every-character")
@pytest.mark.parametrize(
    ("changes", "channel", "is_whole"),
    [
        ({}, "slack", True),
        ({}, "elicitation", True),
        ({"arguments": LONG}, "slack", False),
        ({"arguments": LONG}, "elicitation", False),
        ({"arguments": LONG}, "webhook", True),
        ({"arguments": LONG}, "console", True),
        ({"arguments": json.dumps({"text": "&" * 600})}, "slack", False),
        ({"tool": "t" * 3000}, "slack", False),
        ({"folded": True}, "slack", False),
        ({"folded": True}, "webhook", False),
        ({"folded": True}, "installed", False),
        ({"folded": True}, "console", True),
        ({"folded": True}, "terminal", True),
    ],
)
def test_who_approves_has_seen_the_whole_call(
    changes: dict[str, Any], channel: str, is_whole: bool
) -> None:
    asked = an_approval(elicitation=True, **changes)
    assert is_shown_whole(asked, channel) is is_whole
    approved = vote(asked, Vote(f"{channel}:ann", approve=True, at=NOW), NOW)
    if is_whole:
        assert isinstance(approved, Approval)
    else:
        assert isinstance(approved, Refusal)
        assert approved.kind == "incomplete"
        assert "thoughtgate approvals show k3f9ab" in approved.text
    denied = vote(asked, Vote(f"{channel}:ann", approve=False, at=NOW), NOW)
    assert isinstance(denied, Approval)
    assert denied.status == DENIED


class _WithExtra(NamedTuple):
    extra: Any


@pytest.mark.parametrize("nothing", ["", "{}", {}, [], None])
def test_nothing_besides_the_arguments_is_not_shown(nothing: Any) -> None:
    assert extra_json(_WithExtra(nothing)) == ""  # type: ignore[arg-type]  # stands for an approval


def test_what_a_call_carries_besides_its_arguments_is_shown() -> None:
    assert extra_json(_WithExtra({"_meta": {"a": 1}})) == '{"_meta": {"a": 1}}'  # type: ignore[arg-type]  # stands for an approval
    assert extra_json(_WithExtra('{"x":1}')) == '{"x":1}'  # type: ignore[arg-type]  # stands for an approval


def test_what_the_client_says_it_is_is_shown_with_every_character() -> None:
    assert not any("says it is" in line for line in shown_lines(an_approval()))
    assert "says it is: editor[U+000A]asked by: root" in shown_lines(
        an_approval(client="editor\nasked by: root")
    )
