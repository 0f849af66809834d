"""Grants: listed and taken back."""

from tests.support.consoles import Client, LocalConsole
from tests.web.conftest import Gate


def remembered(client: Client, gate: Gate) -> str:
    path = f"/approvals/{gate.hold()}"
    token = client.get(path).token(path)
    fields = {"token": token, "decision": "approve", "remember": "1h", "scope": "tool"}
    assert client.post(path, fields).status == 303
    return gate.store.grants(0.0)[0].id


def test_a_grant_is_listed_with_what_it_allows(client: Client, gate: Gate) -> None:
    remembered(client, gate)
    text = client.get("/people").text

    assert "any arguments" in text
    assert "delete_file" in text


def test_a_grant_can_be_taken_back_once(client: Client, gate: Gate) -> None:
    ident = remembered(client, gate)
    path = f"/grants/{ident}/revoke"
    fields = {"token": client.get("/people").token(path)}

    answer = client.post(path, fields)
    assert answer.status == 303
    assert "was revoked" in client.get(answer.headers["location"]).text
    assert gate.store.grants(0.0) == []
    assert client.post(path, fields).status == 403


def test_a_forged_form_takes_nothing_back(
    console: LocalConsole, client: Client, gate: Gate
) -> None:
    ident = remembered(client, gate)

    assert client.post(f"/grants/{ident}/revoke", {"token": "x"}).status == 403
    assert (
        client.send("POST", f"/grants/{ident}/revoke", b"", {"Origin": console.base}).status == 400
    )
    assert len(gate.store.grants(0.0)) == 1
    assert console.refusals


def test_a_grant_that_is_gone_is_not_found(client: Client, gate: Gate) -> None:
    ident = remembered(client, gate)
    path = f"/grants/{ident}/revoke"
    token = client.get("/people").token(path)
    gate.store.revoke_grant(ident)

    assert client.post(path, {"token": token}).status == 404


def test_without_grants_the_page_says_so(client: Client) -> None:
    assert "No approval is remembered" in client.get("/people").text
