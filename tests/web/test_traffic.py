"""The traffic page."""

from pathlib import Path

from tests.support.audit_cli import sample_events
from tests.support.consoles import Client, write_events

from thoughtgate.core.record_events import message_seen


def test_the_newest_events_stand_first(client: Client, tmp_path: Path) -> None:
    write_events(tmp_path, *sample_events())
    text = client.get("/traffic").text

    assert text.index("run ended") < text.index("run started")
    assert str(tmp_path / "audit.jsonl") in text


def test_unjudged_messages_are_shown_on_demand(client: Client, tmp_path: Path) -> None:
    write_events(
        tmp_path, message_seen(1.0, "s", "1", "agent_to_server", "request", "ping/odd", 40)
    )

    assert "ping/odd" not in client.get("/traffic").text
    assert "ping/odd" in client.get("/traffic?every=1").text


def test_before_the_first_event_the_page_says_so(client: Client) -> None:
    assert "No events yet" in client.get("/traffic").text


def test_names_from_servers_stay_text(client: Client, tmp_path: Path) -> None:
    write_events(
        tmp_path, message_seen(1.0, "<b>s</b>", "1", "agent_to_server", "request", "<i>x</i>", 1)
    )
    text = client.get("/traffic?every=1").text

    assert "<i>x" not in text
    assert "<b>s</b>" not in text
