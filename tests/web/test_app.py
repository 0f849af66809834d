"""Routes of the console."""

import pytest
from tests.support.consoles import Client, LocalConsole

from thoughtgate.web.app import STATIC


@pytest.mark.parametrize("name", sorted(STATIC))
def test_everything_a_page_loads_comes_from_here(console: LocalConsole, name: str) -> None:
    answer = console.stranger().get(f"/static/{name}")

    assert answer.status == 200
    assert answer.headers["content-type"].startswith(STATIC[name])


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e%2fapp.py", "/static/x", "/static/"]
)
def test_nothing_else_can_be_fetched(client: Client, path: str) -> None:
    assert client.get(path).status == 404


def test_the_style_and_the_script_load_nothing_from_outside(client: Client) -> None:
    for name in ("console.css", "console.js"):
        text = client.get(f"/static/{name}").text
        assert "//" not in text.replace("\n  //", "").replace("// ", ""), name
        assert "@import" not in text
        assert "url(" not in text
        assert "eval" not in text


def test_an_address_that_leads_nowhere_is_a_page_of_ours(client: Client) -> None:
    answer = client.get("/nowhere")

    assert answer.status == 404
    assert "Page not found" in answer.text


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", "/"), ("PUT", "/approvals/a1"), ("GET", "/logout"), ("POST", "/traffic")],
)
def test_other_methods_are_refused(
    console: LocalConsole, client: Client, method: str, path: str
) -> None:
    assert client.send(method, path, b"", {"Origin": console.base}).status in {404, 405}
