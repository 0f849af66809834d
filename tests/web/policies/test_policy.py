"""The policy page over plain HTTP."""

import time
from pathlib import Path

import pytest
from tests.support.audit_cli import sample_events
from tests.support.consoles import Client, write_events

from thoughtgate.core.record_events import POLICY_CHANGED, Record

DENY = "schema: 1\ndefault: deny\nrules:\n  - {tool: read_file, action: forward}\n"
ACTION = "/policy#try"


@pytest.fixture
def record(tmp_path: Path) -> Path:
    told = {"outcome": "applied", "loaded": True, "old_version": "v0", "new_version": "<v1>"}
    change = Record(POLICY_CHANGED, sample_events()[0].at, "", "0", {"policy": told})
    return write_events(tmp_path, *sample_events(), change)


def tried(client: Client, text: str) -> str:
    fields = {"token": client.get("/policy").token(ACTION), "candidate": text}
    return client.post("/policy", fields).text


def test_the_page_shows_rules_and_past_changes(client: Client, record: Path) -> None:
    text = client.get("/policy").text

    assert "calls that no rule matches" in text
    assert "never matched" in text
    assert "v0 → &lt;v1&gt;" in text


def test_a_call_that_is_typed_in_is_explained(client: Client) -> None:
    text = client.get("/policy/explain?server=files&kind=tool&name=wipe&arguments=%7B%7D").text

    assert '<span class="chip good">allowed</span>' in text
    assert "no rule matches" in text


@pytest.mark.parametrize(
    ("query", "fault"),
    [
        ("name=", "Enter the name of a tool"),
        ("name=x&kind=other", "Enter the name of a tool"),
        ("name=x&arguments=%5B1%5D", "must be a JSON object"),
        ("name=x&arguments=%7B", "are not JSON"),
        ("name=x&arguments=%7B%22a%22:1,%22a%22:2%7D", "a key appears twice"),
        ("name=x&arguments=" + "%5B" * 9000, "are not JSON"),
        ("name=x&arguments=" + "x" * 30_000, "must have at most 20,000 characters"),
    ],
)
def test_a_call_that_cannot_be_read_is_told_so(client: Client, query: str, fault: str) -> None:
    page = client.get(f"/policy/explain?server=s&{query}")

    assert page.status == 200
    assert fault in page.text


def test_a_candidate_is_compared_and_replayed(client: Client, record: Path) -> None:
    text = tried(client, DENY)

    assert "recorded calls would be decided differently" in text
    assert "delete_file" in text
    assert "tightens" in text
    assert "default: deny" in text, "what was pasted is kept"


def test_variables_are_never_filled_in(
    client: Client, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_PLACE", "hunter2")
    text = tried(client, 'schema: 1\ndefault: "${SECRET_PLACE}"\n')

    assert "hunter2" not in text
    assert "The candidate cannot be used" in text


def test_a_candidate_cannot_name_files(client: Client, tmp_path: Path) -> None:
    (tmp_path / "secret.cedar").write_text("permit(principal, action, resource);")
    text = tried(client, "schema: 1\ndefault: policy\ncedar: {policies: [secret.cedar]}\n")

    assert "The candidate cannot be used" in text
    assert "permit" not in text


def test_a_config_is_proposed_from_the_record(client: Client, tmp_path: Path) -> None:
    assert client.get("/policy/learn?since=7d").status == 404
    assert client.get("/policy/learn?since=always").status == 400
    write_events(tmp_path, *(event._replace(at=time.time()) for event in sample_events()))
    page = client.get("/policy/learn?since=7d")

    assert page.headers["content-type"].startswith("text/plain")
    assert "default: deny" in page.text
