"""The changes page: what servers changed, accepted and refused in the browser."""

from tests.stores.test_pins import KEY, pin
from tests.support.consoles import Client
from tests.web.conftest import Gate

from thoughtgate.stores.pins import ACCEPTED

PATH = "/servers/changes"


def test_without_changes_the_page_says_so(client: Client) -> None:
    assert "Every definition is accepted" in client.get(PATH).text
    assert PATH in client.get("/servers").text


def test_a_change_is_shown_and_accepted_once(client: Client, gate: Gate) -> None:
    gate.store.pins().add(KEY, [pin("read", "one", ACCEPTED), pin("read", "t\u200bwo")], [], 1.0)
    page = client.get(PATH)
    assert "[U+200B]" in page.text
    shown = page.text.split('name="shown" value="')[1].split('"')[0]
    fields = {"server": KEY, "shown": shown, "token": page.token(PATH), "decision": "accept"}
    answer = client.post(PATH, fields)
    assert answer.status == 303
    assert "were accepted" in client.get(answer.headers["location"]).text
    assert [one.status for one in gate.store.pins().of_server(KEY)] == [ACCEPTED]
    assert client.post(PATH, fields).status == 403


def test_a_forged_form_accepts_nothing(client: Client, gate: Gate) -> None:
    gate.store.pins().add(KEY, [pin("read", "two")], [], 1.0)
    assert client.post(PATH, {"server": KEY, "token": "x"}).status == 403
    assert [one.status for one in gate.store.pins().of_server(KEY)] == ["held"]
