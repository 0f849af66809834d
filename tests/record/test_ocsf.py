import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.audit_cli import sample_events
from tests.support.records import RUN, T0, answered, asked, blocked, decided, ended, started
from tools.docs_audit import OCSF_FIELDS

from thoughtgate.core.envelope import Envelope
from thoughtgate.core.record_events import CALL_DECISION, Record
from thoughtgate.record.contract import EVENTS
from thoughtgate.record.ocsf import (
    CLASSES,
    MAX_OPEN,
    MAX_WORD,
    Starts,
    ocsf_event,
    ocsf_line,
)

REQUIRED = {
    0: (),
    2004: ("finding_info.title", "finding_info.uid", "finding_info.analytic.type_id"),
    3002: ("user.name", "service.name"),
    3003: ("user.name", "privileges"),
    6002: ("app.name", "app.vendor_name"),
    6003: ("actor.user.name", "api.operation", "src_endpoint.name"),
}
"""What the schema requires of each class, its constraints (one of several) and objects included."""

ALWAYS = (
    "activity_id",
    "category_uid",
    "class_uid",
    "metadata.product.name",
    "metadata.product.vendor_name",
    "metadata.version",
    "severity_id",
    "time",
    "type_uid",
)
"""What the schema requires of every class."""

NAMED = ("dst_endpoint.svc_name", "api.request.uid", "api.service.name", "policy.uid")
"""What the schema requires of an object, if it is there."""

MAPPED = (
    "type",
    "run_id",
    "session_id",
    "source.host_id",
    "call.call_id",
    "call.server_name",
    "call.tool_name",
    "call.principal",
    "decision.action",
    "decision.rule_id",
    "status",
    "latency_ms",
    "run.status",
    "run.summary.duration_ms",
    "error.kind",
    "agent.identity",
    "agent.reason",
    "approval.outcome",
    "frame.check",
)
"""Members that are mapped wherever they are."""

BODIES: dict[str, dict[str, Any]] = {
    "server_unreachable": {
        "server": {
            "state": "degraded",
            "kind": "upstream_unauthorized",
            "cause": "status_401",
            "status": 401,
            "reason": "the server needs a login",
        }
    },
    "server_recovered": {"server": {"state": "up", "down_s": 1.5}},
    "server_started": {"server": {"pid": 7}},
    "policy_changed": {"policy": {"policy_version": "v2"}},
    "definition_changed": {"definition": {"kind": "tool", "name": "echo", "outcome": "held"}},
    "config_changed": {
        "config": {"change": "server_added", "file": "/f", "governed": True, "reason": "x"}
    },
    "stop_changed": {"stop": {"change": "stopped", "scope": "all", "name": "", "reason": "x"}},
    "record_opened": {"record": {"file": 2, "previous_file": "a", "previous_chain": "b"}},
    "record_repaired": {"record": {"torn_bytes": 2, "torn_sha256": "a"}},
    "record_gap": {"record": {"lost": 2, "reason": "full"}},
    "request_failed": {
        "request": {"method": "tools/list", "kind": "upstream_timeout", "correlation_id": "run.e1"}
    },
    "content_found": {
        "call": {
            "call_id": "run.1",
            "server_name": "files",
            "tool_name": "read",
            "args_hash": "ab",
        },
        "content": {
            "direction": "server_to_agent",
            "findings": [{"check": "secret-key", "tier": "hard", "where": "/content/0/text:1-5"}],
            "found": 1,
            "action": "redact",
            "enforced": True,
        },
    },
    "checkpoint": {"checkpoint": {"covers": "a", "signature": "b"}},
}
"""Of the types that the sample run does not have."""


def every_event() -> list[Record]:
    others = [Record(kind, T0, "", "0", body) for kind, body in BODIES.items()]
    return [*sample_events(), *others]


def written(record: Record) -> dict[str, Any]:
    line = Envelope(RUN).wrap(record) + b',"chain":"ab"}'
    return dict[str, Any](json.loads(line))


def mapped(record: Record) -> dict[str, Any]:
    event = ocsf_event(written(record))
    assert event is not None
    return event


def leaves(said: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Give the values of a tree with their paths."""
    if isinstance(said, dict | list):
        for name, value in said.items() if isinstance(said, dict) else enumerate(said):
            yield from leaves(value, f"{path}.{name}" if path else str(name))
    else:
        yield path, said


def at_path(said: Any, path: str) -> Any:
    for name in path.split("."):
        if isinstance(said, list):
            said = said[int(name)]
        else:
            said = said.get(name) if isinstance(said, dict) else None
    return said


def test_every_event_type_has_its_class() -> None:
    assert set(CLASSES) == {event.name for event in EVENTS}


def test_every_event_type_is_among_the_examples() -> None:
    assert {record.type for record in every_event()} == {event.name for event in EVENTS}


@pytest.mark.parametrize("record", every_event(), ids=lambda record: record.type)
def test_every_event_has_what_ocsf_requires(record: Record) -> None:
    event = mapped(record)
    for path in (*ALWAYS, *REQUIRED[event["class_uid"]]):
        assert at_path(event, path) not in (None, "", []), f"{path} is missing"
    for path in NAMED:
        parent, _, name = path.rpartition(".")
        found = at_path(event, parent)
        assert found is None or found[name]
    assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
    assert event["category_uid"] == event["class_uid"] // 1000
    assert event["time"] >= 1_760_000_000_000
    assert event["severity_id"] in {1, 3, 4}
    assert event["metadata"]["version"] == "1.3.0"
    assert event["metadata"]["event_code"] == record.type


@pytest.mark.parametrize("record", every_event(), ids=lambda record: record.type)
def test_what_is_mapped_is_not_repeated_and_the_rest_is_kept(record: Record) -> None:
    event = mapped(record)
    unmapped = event.pop("unmapped")
    found = [value for _, value in leaves(event)]
    for path, value in leaves(written(record)):
        kept = at_path(unmapped, path) == value
        assert kept or value in found or not value, f"{path} is lost"
    for path in MAPPED:
        assert at_path(unmapped, path) is None, f"{path} is repeated"


def test_what_was_not_enforced_keeps_its_action() -> None:
    assert "action" not in mapped(decided("c", action="BLOCK"))["unmapped"]["decision"]
    observed = mapped(decided("c", action="BLOCK", enforced=False))
    assert observed["unmapped"]["decision"]["action"] == "BLOCK"


def test_a_member_of_another_type_than_it_should_have_is_kept() -> None:
    event = ocsf_event({"type": "tool_call_end", "status": 7, "call": [1], "seq": True}, T0)
    assert event is not None
    assert event["unmapped"] == {"status": 7, "call": [1], "seq": True}


@pytest.mark.parametrize("stamp", ["yesterday", None, 5, "1970-01-01T00:00:00Z"])
def test_a_time_that_cannot_be_read_is_that_of_the_line_before(stamp: Any) -> None:
    event = ocsf_event({"type": "run_start", "ts": stamp}, T0)
    assert event is not None
    assert event["time"] == T0 * 1000
    assert event["metadata"]["labels"] == ["time_of_line_before"]
    assert ocsf_event({"type": "run_start", "ts": stamp}) is None


def test_the_agent_is_the_user_that_logs_on() -> None:
    record = Record("agent_connected", T0, "", "2", {"agent": {"identity": "kim"}})
    assert mapped(record)["user"] == {"name": "kim"}


def test_an_approval_is_a_privilege_of_the_caller() -> None:
    event = mapped(answered("c", tool="wipe"))
    assert event["privileges"] == ["wipe"]
    assert event["user"] == {"name": "unknown"}


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


def in_order(*records: Record) -> list[dict[str, Any]]:
    """Map events as they follow one another in a record."""
    starts = Starts()
    lines = [written(record) for record in records]
    found = [ocsf_event(line, 0.0, starts.said(line)) for line in lines]
    return [event for event in found if event is not None]


def test_the_caller_is_the_actor_of_every_event_of_a_call() -> None:
    events = in_order(started("c"), decided("c", action="HOLD"), asked("c"), ended("c"))
    assert [event["actor"]["user"]["name"] for event in events] == ["local"] * 4
    assert events[2]["user"] == {"name": "local"}


def test_the_caller_is_the_user_of_an_approval_and_never_who_decided_it() -> None:
    decided_by, nobody = answered("c"), answered("c", outcome="timeout", executes=False)
    nobody.body["approval"]["decided_by"] = ""
    _, somebody, silence = in_order(started("c"), decided_by, nobody)
    assert (somebody["user"]["name"], somebody["actor"]["user"]["name"]) == ("local", "kim")
    assert (silence["user"]["name"], silence["actor"]["user"]["name"]) == ("local", "unknown")


def test_method_and_kind_of_a_call_are_those_of_its_start() -> None:
    first = started("c", tool="file:///a", kind="resource", method="resources/read")
    for event in in_order(first, decided("c", tool="file:///a"), ended("c", tool="file:///a")):
        assert event["api"]["operation"] == "resources/read"
        assert event["resources"] == [{"name": "file:///a", "type": "resource"}]


def test_what_the_start_said_is_not_put_into_another_event() -> None:
    _, event = in_order(started("c"), asked("c"))
    assert event["unmapped"]["call"] == {"args_hash": "ab" * 32}


def test_a_call_is_forgotten_when_it_ended_and_is_its_writers_own() -> None:
    starts = Starts()
    starts.said(written(started("c")))
    other = written(decided("c"))
    other["source"]["shim_id"] = "another"
    assert not starts.said(other)
    assert starts.said(written(ended("c")))
    assert not starts.said(written(decided("c")))


def test_what_is_remembered_of_calls_is_bounded() -> None:
    starts = Starts()
    event = written(started("c"))
    for number in range(MAX_OPEN + 1):
        starts.said({**event, "call": {**event["call"], "call_id": f"c{number}"}})
    last = {**event, "type": "tool_call_decision"}
    assert not starts.said({**last, "call": {"call_id": "c0"}})
    assert starts.said({**last, "call": {"call_id": "c1"}})
    long = {**event["call"], "call_id": "long", "principal": "x" * (MAX_WORD + 1)}
    assert not starts.said({**event, "call": long})


def rows() -> set[tuple[str, str]]:
    """Return every path of the table of fields, with the class that alone has it."""
    found = set()
    for row, _ in OCSF_FIELDS:
        paths, _, only = row.partition(" (")
        first, *others = paths.split(", ")
        parent = first.rpartition(".")[0]
        whole = [first, *(f"{parent}{path}" if path[0] == "." else path for path in others)]
        found |= {(path, only.rstrip(")")) for path in whole}
    return found


def paths(event: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Give the paths of an OCSF event, each as the table may have it."""
    for path, _ in leaves({**event, "unmapped": "anything"}):
        row = re.sub(r"\.\d+\.", "[].", re.sub(r"\.\d+$", "", path))
        one = str(event["class_uid"])
        yield row, one if (row, one) in rows() else ""


def told_events() -> list[dict[str, Any]]:
    """Every event as it is exported, and those with members that few have."""
    failed = {"class": "tool", "kind": "k", "message": "no", "code": -1}
    flood = {"agent": {"method": "bearer", "reason": "token wrong", "repeated": 7}}
    others = [
        ended("c", status="ERROR", error=failed),
        Record("agent_auth_rejected", T0, "", "0", flood),
    ]
    timeless = ocsf_event({"type": "run_start"}, T0)
    assert timeless is not None
    return [*(mapped(record) for record in [*every_event(), *others]), timeless]


def test_every_path_of_an_event_is_in_the_table_and_the_other_way_round() -> None:
    assert {path for event in told_events() for path in paths(event)} == rows()


def test_the_severities_are_those_that_the_table_tells() -> None:
    found = {record.type: mapped(record)["severity_id"] for record in every_event()}
    told = dict(OCSF_FIELDS)["severity_id"].split("; ")
    for severity, part in (3, told[1]), (4, told[2]):
        types = {kind for kind in found if f"`{kind}`" in part}
        assert types == {kind for kind in found if found[kind] == severity} - {CALL_DECISION}


def test_an_unknown_type_is_a_base_event_with_everything_kept() -> None:
    event = ocsf_event({"type": "novelty", "x": 1}, T0)
    assert event is not None
    assert event["class_uid"] == 0
    assert event["metadata"]["event_code"] == "novelty"
    assert event["unmapped"] == {"x": 1}


@pytest.mark.parametrize(
    "odd",
    [
        1.5,
        1e16,
        float("nan"),
        [1, {"a": [1e-7]}],
        2**70,
        "é",
        "\x7f",
        '\x00\x1f\b\f\n\r\t"\\/',
        "\ud800",
        {"a": [], "b": {}, "c": None, "d": [True, -1]},
    ],
)
def test_a_line_is_what_json_dumps_would_write(odd: Any) -> None:
    event = {"type": "message", "ts": "2026-01-31T12:00:00.000Z", "odd": odd}
    mapped = ocsf_event(event)
    assert mapped is not None
    assert mapped["unmapped"].keys() == {"odd"}
    assert ocsf_line(mapped) == json.dumps(mapped, separators=(",", ":"))


def test_a_changed_definition_is_a_finding_about_that_definition() -> None:
    found = mapped(Record("definition_changed", T0, "files", "0", BODIES["definition_changed"]))

    assert found["finding_info"]["title"] == "definition held: tool echo"
    assert found["finding_info"]["analytic"]["name"] == "definition"
