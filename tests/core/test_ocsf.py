import json
from typing import Any

import pytest
from tests.support.audit_cli import sample_events
from tests.support.records import RUN, answered, blocked, decided, ended, started

from thoughtgate.core.contract import EVENTS
from thoughtgate.core.envelope import Envelope
from thoughtgate.core.ocsf import CLASSES, ocsf_event
from thoughtgate.core.record import Record


def mapped(record: Record) -> dict[str, Any]:
    return ocsf_event(json.loads(Envelope(RUN).wrap(record) + ',"chain":"ab"}'))


def test_every_event_type_has_its_class() -> None:
    assert set(CLASSES) == {event.name for event in EVENTS}


@pytest.mark.parametrize("record", sample_events(), ids=lambda record: record.type)
def test_every_event_has_what_ocsf_requires(record: Record) -> None:
    event = mapped(record)
    assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
    assert event["category_uid"] == event["class_uid"] // 1000
    assert event["time"] >= 1_760_000_000_000
    assert event["severity_id"] in {1, 3, 4}
    assert event["metadata"]["version"] == "1.3.0"
    assert event["metadata"]["product"]["vendor_name"] == "ThoughtGate"
    if event["class_uid"] == 6003:
        assert event["api"]["operation"]
        assert event["src_endpoint"]
        assert event["actor"]["user"]["name"]
    if event["class_uid"] == 2004:
        assert event["finding_info"]["uid"]
    if event["class_uid"] == 6002:
        assert event["app"]["name"]


def test_a_refusal_is_denied_and_blocked() -> None:
    event = mapped(decided("c", action="BLOCK"))
    assert (event["action_id"], event["disposition_id"], event["severity_id"]) == (2, 2, 3)
    assert event["policy"] == {"name": "rules[0]", "version": "v1", "uid": "config"}
    observed = mapped(decided("c", action="BLOCK", enforced=False))
    assert (observed["action_id"], observed["severity_id"]) == (1, 1)
    odd = mapped(decided("c", action="SING"))
    assert odd["action_id"] == 0


def test_an_end_has_status_duration_and_response() -> None:
    event = mapped(ended("c", status="ERROR", latency_ms=12, error=blocked()))
    assert event["status_id"] == 2
    assert event["duration"] == 12
    assert event["api"]["response"] == {"error": "governance_denied", "message": "no"}
    assert event["resources"] == [{"name": "read_file", "type": "tool"}]


def test_who_decided_an_approval_is_the_actor() -> None:
    event = mapped(answered("c"))
    assert event["actor"]["user"]["name"] == "kim"
    assert event["status_id"] == 1


def test_the_caller_is_the_actor_of_a_call() -> None:
    assert mapped(started("c"))["actor"]["user"]["name"] == "local"


def test_an_unknown_type_is_a_base_event_with_everything_kept() -> None:
    event = ocsf_event({"type": "novelty", "x": 1})
    assert event["class_uid"] == 0
    assert event["unmapped"] == {"x": 1}
