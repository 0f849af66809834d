"""Deciding: what a form may do, and what a forged, altered, replayed or late one may not."""

import pytest
from tests.support.consoles import Client, LocalConsole
from tests.web.conftest import Gate

from thoughtgate.channels.console_channel import identity
from thoughtgate.core.approval import Approval, Refusal, Vote
from thoughtgate.core.grant import Remember
from thoughtgate.web.approvals.approval import read_remember


def decide(client: Client, ident: str, decision: str, **fields: str) -> int:
    path = f"/approvals/{ident}"
    token = client.get(path).token(path)
    return client.post(path, {"token": token, "decision": decision, **fields}).status


def found(gate: Gate, ident: str) -> Approval:
    approval = gate.store.get(ident)
    assert isinstance(approval, Approval)
    return approval


@pytest.mark.parametrize(("decision", "approved"), [("approve", True), ("deny", False)])
def test_a_decision_has_a_person_a_time_and_a_reason(
    client: Client, gate: Gate, decision: str, approved: bool
) -> None:
    ident = gate.hold()

    assert decide(client, ident, decision, reason=" as agreed ") == 303
    assert gate.decided() == {"run.1": approved}
    (vote,) = found(gate, ident).votes
    assert vote.by == identity()
    assert vote.reason == "as agreed"
    assert vote.at > 0


def test_what_the_client_says_it_is_is_marked_as_its_own_claim(client: Client, gate: Gate) -> None:
    ident = gate.hold(client="<b>edi\u200btor")
    page = client.get(f"/approvals/{ident}").text
    assert "(says it is <q>&lt;b&gt;edi[U+200B]tor</q>)" in page
    assert "says it is" not in client.get(f"/approvals/{gate.hold()}").text


def test_a_replayed_form_is_refused_and_recorded(
    console: LocalConsole, client: Client, gate: Gate
) -> None:
    ident = gate.hold(workflow="two")
    path = f"/approvals/{ident}"
    fields = {"token": client.get(path).token(path), "decision": "approve"}

    assert client.post(path, fields).status == 303
    assert client.post(path, fields).status == 403
    assert len(found(gate, ident).votes) == 1
    assert ("form altered, replayed or out of date", path) in console.refusals


def test_a_form_cannot_be_turned_on_another_call(
    console: LocalConsole, client: Client, gate: Gate
) -> None:
    first, second = gate.hold(), gate.hold("format_disk")
    token = client.get(f"/approvals/{first}").token(f"/approvals/{first}")
    answer = client.post(f"/approvals/{second}", {"token": token, "decision": "approve"})

    assert answer.status == 403
    assert gate.decided() == {}
    assert console.refusals


@pytest.mark.parametrize("token", ["", "x", "1.2.3", "9999999999." + "0" * 32 + "." + "0" * 64])
def test_a_made_up_token_is_refused(client: Client, gate: Gate, token: str) -> None:
    ident = gate.hold()

    assert client.post(f"/approvals/{ident}", {"token": token, "decision": "approve"}).status == 403
    assert gate.decided() == {}


def test_the_form_of_another_browser_is_refused(
    console: LocalConsole, client: Client, gate: Gate
) -> None:
    path = f"/approvals/{gate.hold()}"
    token = console.client().get(path).token(path)

    assert client.post(path, {"token": token, "decision": "approve"}).status == 403


def test_a_decision_that_comes_too_late_says_why(client: Client, gate: Gate) -> None:
    ident = gate.hold()
    path = f"/approvals/{ident}"
    token = client.get(path).token(path)
    gate.store.vote(ident, [Vote("terminal:ann", approve=False, at=1.0)], 1.0)
    answer = client.post(path, {"token": token, "decision": "approve"})

    assert answer.status == 409
    assert "already denied by terminal:ann" in answer.text
    assert gate.decided() == {"run.1": False}


@pytest.mark.parametrize("decision", ["", "maybe", "APPROVE"])
def test_a_form_that_decides_nothing_decides_nothing(
    client: Client, gate: Gate, decision: str
) -> None:
    assert decide(client, gate.hold(), decision) == 400
    assert gate.decided() == {}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{}", "application/json"),
        (b"decision=approve&decision=deny", "application/x-www-form-urlencoded"),
        (b"a=" + b"x" * 70_000, "application/x-www-form-urlencoded"),
        (b"\xff\xfe", "application/x-www-form-urlencoded"),
        (b"&".join(b"f%d=1" % number for number in range(50)), "application/x-www-form-urlencoded"),
    ],
)
def test_what_is_no_form_of_ours_is_not_read(
    console: LocalConsole, client: Client, gate: Gate, body: bytes, kind: str
) -> None:
    ident = gate.hold()
    headers = {"Content-Type": kind, "Origin": console.base}
    answer = client.send("POST", f"/approvals/{ident}", body, headers)

    assert answer.status == 400
    assert gate.decided() == {}
    assert console.refusals


def test_remembering_makes_a_grant_that_answers_the_next_call(client: Client, gate: Gate) -> None:
    ident = gate.hold("delete_file", {"path": "/a"})

    assert decide(client, ident, "approve", remember="1h", scope="tool") == 303
    (grant,) = gate.store.grants(0.0)
    assert (grant.lifetime, grant.scope, grant.by) == ("until", "tool", identity())
    assert gate.decided() == {"run.1": True}


@pytest.mark.parametrize("lifetime", ["once", "session"])
def test_a_session_or_once_can_be_remembered(client: Client, gate: Gate, lifetime: str) -> None:
    assert decide(client, gate.hold(), "approve", remember=lifetime, scope="call") == 303
    (grant,) = gate.store.grants(0.0)
    assert (grant.lifetime, grant.scope) == (lifetime, "call")


def test_a_denial_is_never_remembered(client: Client, gate: Gate) -> None:
    assert decide(client, gate.hold(), "deny", remember="1h", scope="tool") == 303
    assert gate.store.grants(0.0) == []


def test_what_the_workflow_forbids_to_remember_is_not_decided(client: Client, gate: Gate) -> None:
    ident = gate.hold(workflow="never")

    assert decide(client, ident, "approve", remember="session") == 409
    assert found(gate, ident).status == "pending"


def test_who_is_not_an_approver_decides_nothing(client: Client, gate: Gate) -> None:
    ident = gate.hold(workflow="bob")
    assert "You cannot decide this" in client.get(f"/approvals/{ident}").text
    # Even with a token that is genuine.
    path = f"/approvals/{ident}"
    assert client.post(path, {"token": "x", "decision": "approve"}).status == 403
    assert gate.decided() == {}


def test_an_unknown_approval_is_not_found(client: Client) -> None:
    assert client.get("/approvals/zzzzzz").status == 404
    assert client.post("/approvals/zzzzzz", {"token": "x", "decision": "approve"}).status == 403


def test_the_beginning_of_an_id_is_not_an_id(client: Client, gate: Gate) -> None:
    gate.hold()

    assert client.get("/approvals/a").status == 404


def test_the_page_of_a_settled_approval_tells_the_outcome(client: Client, gate: Gate) -> None:
    ident = gate.hold()
    decide(client, ident, "deny", reason="too risky")
    text = client.get(f"/approvals/{ident}").text

    assert "too risky" in text
    assert 'name="decision"' not in text


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ({}, None),
        ({"remember": ""}, None),
        ({"remember": "once"}, Remember("once", "call")),
        ({"remember": "session", "scope": "tool"}, Remember("session", "tool")),
        ({"remember": "90m"}, Remember("until", "call", 5400.0)),
    ],
)
def test_the_words_of_the_form_are_read(form: dict[str, str], expected: Remember | None) -> None:
    assert read_remember(form) == expected


@pytest.mark.parametrize("form", [{"remember": "often"}, {"remember": "once", "scope": "world"}])
def test_other_words_are_refused(form: dict[str, str]) -> None:
    assert isinstance(read_remember(form), Refusal)


@pytest.mark.promise("params-are-bound")
def test_the_page_and_the_inbox_show_what_else_the_request_carries(
    client: Client, gate: Gate
) -> None:
    ident = gate.hold(extra={"cwd": "/etc/secret-place"})
    plain = gate.hold()
    assert "Other parameters" not in client.get(f"/approvals/{plain}").text
    for path in (f"/approvals/{ident}", "/"):
        assert "/etc/secret-place" in client.get(path).text


@pytest.mark.promise("approver-sees-every-character")
def test_long_arguments_can_be_read_to_the_last_character(client: Client, gate: Gate) -> None:
    ident = gate.hold(arguments={"text": "x" * 150_000 + "\u3164<end>"})
    path = f"/approvals/{ident}/arguments"
    assert path in client.get(f"/approvals/{ident}").text
    assert path in client.get("/").text

    first, last = client.get(path), client.get(f"{path}?part=3")
    assert "Part 1 of 3" in first.text
    assert first.text.count("x") > 65_000
    assert "[U+3164]&lt;end&gt;" in last.text
    for odd in ("0", "-1", "99", "x", "", "1e3", "9" * 50):
        assert client.get(f"{path}?part={odd}").status == 200
    assert client.get("/approvals/zzzzzz/arguments").status == 404
    assert decide(client, ident, "approve") == 303


def test_short_arguments_are_one_part(client: Client, gate: Gate) -> None:
    ident = gate.hold(arguments={"path": "/tmp/only"})
    text = client.get(f"/approvals/{ident}/arguments").text
    assert "Part 1 of 1" in text
    assert "/tmp/only" in text
