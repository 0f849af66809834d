"""``tools list`` and ``tools diff``."""

import json

from tests.cli.definitions.conftest import Place

PULLED = {"annotations": {"destructiveHint": True}, "description": "Wipes\u200b everything"}


def test_pins_and_changes_are_shown(place: Place) -> None:
    assert "Nothing is pinned yet" in place.run("tools", "list").stdout
    assert "add" in place.list_tools()
    listed = json.loads(place.run("tools", "list", "sample", "--json").stdout)
    assert {one["status"] for one in listed} == {"accepted"}
    assert {one["kind"] for one in listed} == {"tool", "server"}
    place.pull(add=PULLED)
    assert "add" not in place.list_tools()
    shown = place.run("tools", "diff").stdout
    assert "tool add  held" in shown
    assert "[U+200B]" in shown
    (told,) = json.loads(place.run("tools", "diff", "sample", "add", "--json").stdout)
    assert told["weight"] == "severe"
    assert "hint-flipped" in {one["change"] for one in told["changes"]}


def test_unknown_servers_and_names_are_errors(place: Place) -> None:
    place.list_tools()
    assert "nothing is pinned for 'other'" in place.run("tools", "diff", "other").stderr
    wrong = place.run("tools", "diff", "sample", "nothing")
    assert wrong.returncode == 2
    assert "nothing called 'nothing'" in wrong.stderr
    assert "Every definition is accepted" in place.run("tools", "diff").stdout
