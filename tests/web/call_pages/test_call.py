"""The page of one call: its story, and what another policy would say."""

from pathlib import Path

import pytest
from tests.support.audit_cli import sample_events
from tests.support.consoles import Client, LocalConsole, write_events

PATH = "/calls/run-1.2"
ACTION = f"{PATH}#try"
DENY = "schema: 1\ndefault: deny\n"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    return write_events(tmp_path, *sample_events())


def tried(client: Client, text: str) -> str:
    token = client.get(PATH).token(ACTION)
    return client.post(PATH, {"token": token, "candidate": text}).text


def test_one_call_has_its_story_with_milliseconds_and_a_zone(client: Client, record: Path) -> None:
    text = client.get(PATH).text

    for part in (">Events</h2>", "delete_file", "verdict", "approval decided", ".000 +", "+0 ms"):
        assert part in text
    assert "+5,000 ms" in text
    assert "Record line" in text
    assert "&#34;type&#34;:&#34;tool_call_decision&#34;" in text


def test_an_unknown_call_is_not_found(client: Client, record: Path) -> None:
    assert client.get("/calls/nothing").status == 404


def test_the_policy_in_force_is_explained_gate_by_gate(client: Client, record: Path) -> None:
    text = client.get(PATH).text

    assert "What the policy in force says" in text
    assert "no rule matches" in text


def test_a_candidate_is_tried_and_changes_nothing(client: Client, record: Path) -> None:
    text = tried(client, DENY)
    assert '<span class="chip bad">denied</span>' in text.partition('id="try"')[2]

    assert '<span class="chip good">allowed</span>' in client.get(PATH).text


def test_a_candidate_that_is_wrong_is_told_so(client: Client, record: Path) -> None:
    assert "The candidate cannot be used" in tried(client, "schema: 1\nrulez: []\n")
    assert "The candidate cannot be used" in tried(client, "{{{{")


def test_a_form_is_needed(console: LocalConsole, client: Client, record: Path) -> None:
    assert client.post(PATH, {"candidate": DENY}).status == 403
    token = client.get("/calls/run-1.3").token("/calls/run-1.3#try")
    assert client.post(PATH, {"token": token, "candidate": DENY}).status == 403
    token = client.get(PATH).token(ACTION)
    assert client.post(PATH, {"token": token, "candidate": ""}).status == 400
    assert console.refusals
