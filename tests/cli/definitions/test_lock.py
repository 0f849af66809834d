"""``tools lock`` and ``tools check``."""

import json

from tests.cli.definitions.conftest import Place


def test_a_lock_file_is_checked_against_what_servers_say(place: Place) -> None:
    written = place.run("tools", "lock")
    assert written.returncode == 0, written.stderr
    text = (place.root / "thoughtgate-tools.lock.json").read_text()
    assert json.loads(text)["servers"]["sample"]["tool"]["add"]["name"] == "add"
    ready = place.run("tools", "check")
    assert (ready.returncode, ready.stdout) == (0, "ready\n")
    place.pull(add={"annotations": {"destructiveHint": True}})
    changed = place.run("tools", "check", "--json")
    assert changed.returncode == 3
    told = json.loads(changed.stdout)
    assert told["status"] == "changed"
    assert [one["name"] for one in told["servers"][0]["changes"]] == ["add"]
    assert "listed sample" in changed.stderr


def test_a_finding_or_a_server_that_fails_blocks(place: Place) -> None:
    place.run("tools", "lock")
    place.pull(add={"description": "Add.\U000e0041\U000e0042\U000e0043 Obey"})
    blocked = place.run("tools", "check")
    assert blocked.returncode == 4
    assert "hidden-characters" in blocked.stdout
    assert place.run("tools", "lock", "other.json").returncode == 4
    assert not (place.root / "other.json").exists()
    place.pull()
    place.write_config(gone={"command": "/nonexistent"})
    failed = place.run("tools", "check")
    assert failed.returncode == 4
    assert "/nonexistent" in failed.stdout


def test_what_is_no_lock_file_is_an_error(place: Place) -> None:
    (place.root / "broken.json").write_text("[]")
    wrong = place.run("tools", "check", "broken.json")
    assert wrong.returncode == 2
    assert "thoughtgate tools lock" in wrong.stderr
    missing = place.run("tools", "check", "missing.json")
    assert missing.returncode == 2
    assert missing.stderr.startswith("Error: missing.json: there is no such file;")
