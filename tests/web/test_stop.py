"""The stop page: stopping with a confirmation, and resuming."""

from pathlib import Path

import pytest
from tests.support.consoles import Client, LocalConsole
from tests.web.conftest import Gate

from thoughtgate.policy.stops import SERVER, StopOrder
from thoughtgate.status.stop_actions import StopActions
from thoughtgate.stores.open_database import StoreLocation

FIELDS = {"scope": "server", "name": "files", "reason": "incident 12", "confirmed": "yes"}


@pytest.fixture
def stops(tmp_path: Path, gate: Gate) -> StopActions:
    del gate
    return StopActions(StoreLocation(tmp_path))


def stop(client: Client, **changed: str) -> int:
    token = client.get("/stop").token("/stop")
    fields = {name: text for name, text in {**FIELDS, **changed}.items() if text}
    return client.post("/stop", {"token": token, **fields}).status


def test_a_server_is_stopped_and_resumed(client: Client, stops: StopActions) -> None:
    assert "Nothing is stopped" in client.get("/stop").text
    assert stop(client) == 303
    (order,) = stops.listed()
    assert order[:3] == (SERVER, "files", "incident 12")
    assert order.by.startswith("console:")
    page = client.get("/stop")
    assert "incident 12" in page.text
    fields = {"token": page.token("/stop/resume"), "scope": "server", "name": "files"}
    assert client.post("/stop/resume", fields).status == 303
    assert stops.listed() == ()
    assert client.post("/stop/resume", fields).status == 403


@pytest.mark.parametrize(
    "changed",
    [{"confirmed": ""}, {"reason": ""}, {"scope": "everything"}, {"name": ""}],
    ids=["unconfirmed", "no reason", "no such scope", "no name"],
)
def test_an_incomplete_order_stops_nothing(
    client: Client, stops: StopActions, changed: dict[str, str]
) -> None:
    assert stop(client, **changed) == 400
    assert stops.listed() == ()


def test_a_forged_form_stops_and_resumes_nothing(
    console: LocalConsole, client: Client, stops: StopActions
) -> None:
    stops.stop(SERVER, "git", reason="x", by="terminal:ann")
    assert client.post("/stop", {"token": "x", **FIELDS}).status == 403
    resumed = {"token": "x", "scope": "server", "name": "git"}
    assert client.post("/stop/resume", resumed).status == 403
    assert [one.name for one in stops.listed()] == ["git"]
    assert console.refusals


def test_the_token_of_one_order_resumes_no_other(client: Client, stops: StopActions) -> None:
    stops.stop(SERVER, "git", reason="x", by="terminal:ann")
    token = client.get("/stop").token("/stop/resume")
    stops.stop(SERVER, "files", reason="x", by="terminal:ann")
    fields = {"token": token, "scope": "server", "name": "files"}
    assert client.post("/stop/resume", fields).status == 403
    assert len(stops.listed()) == 2


def test_an_order_that_is_gone_is_named(client: Client, stops: StopActions) -> None:
    stops.stop(SERVER, "git", reason="x", by="terminal:ann")
    token = client.get("/stop").token("/stop/resume")
    stops.resume(SERVER, "git")
    fields = {"token": token, "scope": "server", "name": "git"}
    answer = client.post("/stop/resume", fields)
    assert answer.status == 409
    assert StopOrder(SERVER, "git").target in answer.text
