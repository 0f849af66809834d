"""A decision on a question that belongs to no call takes effect with the vote."""

from tests.stores.test_pins import KEY, pin, question
from tests.support.approvals import NOW

from thoughtgate.core.approval import DENIED, USED, Approval, Vote
from thoughtgate.stores.approvals import ApprovalStore


def test_an_accepted_question_is_used_at_once(store: ApprovalStore) -> None:
    store.pins().add(KEY, [pin("read", "one")], [], NOW)
    store.pins().offer(KEY, "set", [pin("read", "one")])
    store.ask_standing(question("set"), NOW)
    store.vote("aaaaaa", [Vote("terminal:ann", True, NOW)], NOW)
    found = store.get("aaaaaa")
    assert isinstance(found, Approval)
    assert found.status == USED


def test_a_denied_question_about_the_same_change_is_not_asked_again(store: ApprovalStore) -> None:
    store.ask_standing(question("set"), NOW)
    store.vote("aaaaaa", [Vote("terminal:ann", False, NOW)], NOW)
    again = store.ask_standing(question("set")._replace(id="bbbbbb"), NOW)
    assert isinstance(again, Approval)
    assert (again.id, again.status) == ("aaaaaa", DENIED)
