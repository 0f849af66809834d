"""Grants and the definition of the tool that they were given for."""

from collections.abc import Iterator

import pytest
from tests.support.approvals import NOW, a_store, a_yes, an_approval

from thoughtgate.core.approval import APPROVED, PENDING, Approval
from thoughtgate.core.grant import EXACT, SESSION, TOOL, Grant, Remember
from thoughtgate.stores.approvals import ApprovalStore, Limits
from thoughtgate.stores.grants import CHANGED
from thoughtgate.stores.open_database import StoreLocation


@pytest.fixture
def store(location: StoreLocation) -> Iterator[ApprovalStore]:
    opened = a_store(location, alive=lambda _: True)
    yield opened
    opened.close()


def _remember(store: ApprovalStore, scope: str, definition: str) -> Grant:
    store.ask(an_approval(id="first1", definition=definition), NOW)
    remember = Remember(SESSION, scope)
    store.vote("first1", [a_yes()], NOW + 1, remember=remember, grant_id="g1")
    (grant,) = store.grants(NOW + 1)
    assert grant.definition == definition
    return grant


@pytest.mark.promise("grants-end-with-the-definition")
@pytest.mark.parametrize("scope", [EXACT, TOOL])
def test_a_grant_ends_when_the_server_lists_the_tool_differently(
    store: ApprovalStore, scope: str
) -> None:
    _remember(store, scope, "d1")
    same = store.ask(an_approval(id="next11", call_id="run.2", definition="d1"), NOW + 2)
    assert isinstance(same, Approval)
    assert (same.status, same.grant, same.ended_grants) == (APPROVED, "g1", ())
    changed = store.ask(an_approval(id="next22", call_id="run.3", definition="d2"), NOW + 3)
    assert isinstance(changed, Approval)
    assert (changed.status, changed.ended_grants) == (PENDING, ("g1",))
    assert changed.reason.endswith(CHANGED)
    assert store.grants(NOW + 3) == []
    assert store.get("next22") == changed
    back = store.ask(an_approval(id="next33", call_id="run.4", definition="d1"), NOW + 4)
    assert isinstance(back, Approval)
    assert back.status == PENDING


@pytest.mark.promise("grants-end-with-the-definition")
def test_a_grant_rests_while_the_definition_is_not_known(store: ApprovalStore) -> None:
    _remember(store, TOOL, "d1")
    unknown = store.ask(an_approval(id="next11", call_id="run.2", definition=""), NOW + 2)
    assert isinstance(unknown, Approval)
    assert (unknown.status, unknown.ended_grants) == (PENDING, ())
    assert len(store.grants(NOW + 2)) == 1


def test_a_rule_that_asks_because_of_facts_wants_an_approval_of_its_own(
    store: ApprovalStore,
) -> None:
    grant = _remember(store, TOOL, "d1")
    facts = Limits(same_rule=True)
    other = an_approval(id="next11", call_id="run.2", definition="d1", rule="no-leaks")
    held = store.ask(other, NOW + 2, facts)
    assert isinstance(held, Approval)
    assert (held.status, held.grant) == (PENDING, "")
    assert grant in store.grants(NOW + 2)
    own = an_approval(id="next22", call_id="run.3", definition="d1")
    passed = store.ask(own, NOW + 3, facts)
    assert isinstance(passed, Approval)
    assert (passed.status, passed.grant) == (APPROVED, "g1")


def test_the_reason_says_only_that_a_grant_ended_if_the_rule_gives_none(
    store: ApprovalStore,
) -> None:
    _remember(store, TOOL, "d1")
    asked = an_approval(id="next11", call_id="run.2", definition="d2", reason="")
    changed = store.ask(asked, NOW + 2)
    assert isinstance(changed, Approval)
    assert changed.reason == CHANGED


def test_extra_params_are_stored_with_the_request(store: ApprovalStore) -> None:
    store.ask(an_approval(extra='{"cwd":"/etc"}'), NOW)
    assert store.listed()[0].extra == '{"cwd":"/etc"}'
