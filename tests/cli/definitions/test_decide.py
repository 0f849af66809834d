"""``tools accept`` and ``tools refuse``."""

import json

from tests.cli.definitions.conftest import Place

PULLED = {"annotations": {"destructiveHint": True}}


def test_an_accepted_change_is_listed_again(place: Place) -> None:
    place.list_tools()
    place.pull(add=PULLED)
    assert "add" not in place.list_tools()
    (asked,) = json.loads(place.run("approvals", "list", "--json").stdout)
    assert (asked["kind"], asked["server"]) == ("definition", "sample")
    unattended = place.run("tools", "accept", "sample")
    assert unattended.returncode == 2
    assert "add --yes" in unattended.stderr
    done = place.run("tools", "accept", "sample", "--yes")
    assert "Accepted 1 definition of sample." in done.stdout
    assert "add" in place.list_tools()
    assert json.loads(place.run("approvals", "list", "--json").stdout) == []
    assert "Nothing to decide." in place.run("tools", "accept", "sample", "--yes").stdout


def test_a_refused_change_stays_hidden(place: Place) -> None:
    place.list_tools()
    place.pull(add=PULLED)
    place.list_tools()
    told = json.loads(place.run("tools", "refuse", "sample", "add", "--yes", "--json").stdout)
    assert told == [{"kind": "tool", "name": "add", "status": "refused"}]
    assert "add" not in place.list_tools()
    assert json.loads(place.run("approvals", "list", "--json").stdout) == []


def test_the_answer_in_the_queue_counts_too(place: Place) -> None:
    place.list_tools()
    place.pull(add=PULLED)
    place.list_tools()
    (asked,) = json.loads(place.run("approvals", "list", "--json").stdout)
    assert place.run("approvals", "approve", asked["id"]).returncode == 0
    assert "add" in place.list_tools()
