"""The inbox over plain HTTP: it works without any script."""

from tests.support.consoles import Client
from tests.web.conftest import Gate

from thoughtgate.core.approval import Vote


def test_a_question_shows_what_is_asked_by_whom_and_why(client: Client, gate: Gate) -> None:
    ident = gate.hold("delete_file", {"path": "/srv/data"})
    text = client.get("/").text

    for part in (
        "delete_file",
        "files",
        "/srv/data",
        "session s1",
        "it deletes",
        "rules[0]",
        ident,
    ):
        assert part in text
    assert " left" in text
    assert "(1) Inbox" in text


def test_an_empty_inbox_says_so(client: Client) -> None:
    assert "No approval requests are pending" in client.get("/").text


def test_what_an_agent_writes_stays_text(client: Client, gate: Gate) -> None:
    attack = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    gate.hold(attack, {attack: attack, "list": [attack]})
    text = client.get("/").text

    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_a_question_that_another_must_answer_has_no_buttons(client: Client, gate: Gate) -> None:
    gate.hold(workflow="bob")
    text = client.get("/").text

    assert "not among the approvers" in text
    assert 'value="approve"' not in text


def test_who_has_approved_already_waits_for_the_others(client: Client, gate: Gate) -> None:
    ident = gate.hold(workflow="two")
    path = f"/approvals/{ident}"
    answer = client.post(path, {"token": client.get("/").token(path), "decision": "approve"})
    assert answer.status == 303

    text = client.get(answer.headers["location"]).text
    assert "1 of 2 people have approved" in text
    assert 'value="approve"' not in text, "nothing is open right after a decision"
    assert "you have already approved; 1 more must approve" in client.get(path).text


def test_what_cannot_be_remembered_is_not_offered(client: Client, gate: Gate) -> None:
    gate.hold(workflow="never")

    assert "Remember approval" not in client.get("/").text


def test_answered_questions_stand_below_with_who_and_why(client: Client, gate: Gate) -> None:
    ident = gate.hold()
    gate.store.vote(ident, [Vote("terminal:ann", approve=False, at=0.0, reason="not today")], 0.0)
    text = client.get("/").text

    assert "terminal:ann" in text
    assert "not today" in text
    assert "denied" in text


def test_the_list_alone_is_served_for_live_updates(client: Client, gate: Gate) -> None:
    ident = gate.hold()
    text = client.get("/inbox").text

    assert f'data-key="{ident}"' in text
    assert 'data-waiting="1"' in text
    assert "<html" not in text


def test_the_oldest_request_is_open_and_every_request_is_listed(client: Client, gate: Gate) -> None:
    first, second = gate.hold("one"), gate.hold("two")
    text = client.get("/").text

    assert f'id="ask-{first}"' in text
    assert f'id="ask-{second}"' not in text
    for ident in (first, second):
        assert f'href="/approvals/{ident}"' in text
    assert f'id="ask-{second}"' in client.get(f"/approvals/{second}").text


def test_earlier_answers_to_the_same_call_are_shown(client: Client, gate: Gate) -> None:
    before = gate.hold("delete_file", {"path": "/srv/data"})
    vote = Vote("terminal:ann", approve=False, at=0.0, reason="people still read it")
    gate.store.vote(before, [vote], 0.0)
    again = gate.hold("delete_file", {"path": "/srv/data"})
    other = gate.hold("delete_file", {"path": "/srv/other"})

    text = client.get(f"/approvals/{again}").text
    assert "The same call" in text
    assert "people still read it" in text
    text = client.get(f"/approvals/{other}").text
    assert "people still read it" not in text
    assert "1 denied" in text


def test_requests_of_one_rule_can_be_decided_together(client: Client, gate: Gate) -> None:
    gate.hold("one")
    assert "/approvals/together" not in client.get("/").text
    gate.hold("two")

    assert 'href="/approvals/together?rule=rules%5B0%5D"' in client.get("/").text
