import sys
from typing import Any

import pytest
from tests.support.audit_cli import sample_events
from tests.support.otlp_receiver import attributes, otlp_receiver
from tests.support.records import (
    T0,
    answered,
    asked,
    blocked,
    call,
    decided,
    ended,
    started,
)

from thoughtgate.errors import UsageError
from thoughtgate.telemetry import spans as module
from thoughtgate.telemetry.spans import Tracer

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.requirement("S004-NFR-001")
def test_a_call_is_a_request_span_with_an_upstream_span_below_it() -> None:
    with otlp_receiver() as receiver:
        tracer = Tracer(receiver.endpoint, headers={"x-key": "k"}, resource={"team": "tools"})
        first, *rest = call(1)
        first.body["call"].update(traceparent=PARENT, task=True)
        for record in (first, *rest):
            tracer.observe(record)
        tracer.close()
        request, upstream = receiver.span("mcp.request"), receiver.span("mcp.upstream")
        assert request.trace_id.hex() == PARENT.split("-")[1]
        assert request.parent_span_id.hex() == PARENT.split("-")[2]
        assert upstream.parent_span_id == request.span_id
        said = attributes(request)
        assert said["method"] == "tools/call"
        assert said["correlation_id"] == "run-1.1"
        assert said["task_augmented"] is True
        assert said["mcp.method.name"] == "tools/call"
        assert said["gen_ai.tool.name"] == "read_file"
        assert said["gen_ai.operation.name"] == "execute_tool"
        assert request.end_time_unix_nano - request.start_time_unix_nano == 20_000_000
        assert [event.name for event in request.events] == ["thoughtgate.decision"]
        assert receiver.resources[0]["team"] == "tools"
        assert receiver.resources[0]["service.name"] == "thoughtgate"
        assert all(headers["x-key"] == "k" for headers in receiver.headers)


def test_a_server_is_told_of_the_span_it_works_under_and_nobody_else_is() -> None:
    with otlp_receiver() as receiver:
        tracer = Tracer(receiver.endpoint)
        tracer.observe(started("c", T0))
        assert tracer.outgoing("c") == ""
        tracer.observe(decided("c", T0))
        _, trace, span, _ = tracer.outgoing("c").split("-")
        tracer.observe(ended("c", T0 + 1))
        assert tracer.outgoing("c") == tracer.outgoing("unknown") == ""
        tracer.close()
        upstream = receiver.span("mcp.upstream")
        assert (upstream.trace_id.hex(), upstream.span_id.hex()) == (trace, span)


@pytest.mark.parametrize(
    ("kind", "attribute"),
    [
        ("tool", "gen_ai.tool.name"),
        ("resource", "mcp.resource.uri"),
        ("prompt", "gen_ai.prompt.name"),
    ],
)
def test_both_spans_name_what_the_call_names_by_its_kind(kind: str, attribute: str) -> None:
    with otlp_receiver() as receiver:
        tracer = Tracer(receiver.endpoint)
        tracer.observe(started("c", T0, kind=kind, tool="it"))
        tracer.observe(decided("c", T0, tool="it"))
        tracer.observe(ended("c", T0 + 1, tool="it"))
        tracer.close()
        for name in ("mcp.request", "mcp.upstream"):
            said = attributes(receiver.span(name))
            assert {key for key, value in said.items() if value == "it"} == {attribute}


def test_a_persons_thinking_is_a_span_of_its_own() -> None:
    with otlp_receiver() as receiver:
        tracer = Tracer(receiver.endpoint)
        for record in (
            started("c", T0),
            decided("c", T0, action="HOLD"),
            asked("c", T0),
            answered("c", T0 + 5),
            ended("c", T0 + 6),
        ):
            tracer.observe(record)
        tracer.close()
        approval = receiver.span("thoughtgate.approval")
        assert approval.end_time_unix_nano - approval.start_time_unix_nano == 5_000_000_000
        assert attributes(approval)["thoughtgate.approval.outcome"] == "approved"
        upstream = receiver.span("mcp.upstream")
        assert upstream.start_time_unix_nano == int(T0 + 5) * 1_000_000_000


def test_a_refusal_has_no_upstream_and_its_kind_as_error() -> None:
    with otlp_receiver() as receiver:
        tracer = Tracer(receiver.endpoint)
        tracer.observe(started("c", kind="resource", method="resources/read"))
        tracer.observe(decided("c", action="BLOCK"))
        tracer.observe(ended("c", status="ERROR", error={**blocked(), "code": -32014}))
        tracer.close()
        assert [span.name for span in receiver.spans] == ["mcp.request"]
        request = receiver.spans[0]
        assert attributes(request)["error.type"] == "governance_denied"
        assert attributes(request)["rpc.response.status_code"] == "-32014"
        assert attributes(request)["mcp.resource.uri"] == "read_file"
        assert "mcp.result.is_error" not in attributes(request)
        assert request.status.code == 2
        assert not request.parent_span_id


def test_a_call_that_was_allowed_and_not_sent_has_no_upstream() -> None:
    with otlp_receiver() as receiver:
        tracer = Tracer(receiver.endpoint)
        tracer.observe(started("c"))
        tracer.observe(decided("c"))
        tracer.observe(ended("c", status="ERROR", error=blocked("not_exposed")))
        tracer.close()
        assert [span.name for span in receiver.spans] == ["mcp.request"]
        assert attributes(receiver.spans[0])["error.type"] == "not_exposed"


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, False),
        ({"is_error": True}, True),
        ({"status": "TIMEOUT", "error": {"class": "timeout", "kind": "k"}}, None),
        ({"status": "ERROR", "error": {"class": "upstream_error", "kind": "k"}}, None),
    ],
)
def test_only_of_a_result_is_it_told_whether_it_is_an_error(
    facts: dict[str, Any], said: bool | None
) -> None:
    with otlp_receiver() as receiver:
        tracer = Tracer(receiver.endpoint)
        for record in (started("c"), decided("c"), ended("c", **facts)):
            tracer.observe(record)
        tracer.close()
        assert attributes(receiver.span("mcp.request")).get("mcp.result.is_error") is said
        assert receiver.span("mcp.upstream")


def test_events_are_logs_tied_to_their_spans_and_without_arguments() -> None:
    with otlp_receiver() as receiver:
        tracer = Tracer(receiver.endpoint)
        for record in sample_events():
            tracer.observe(record)
        tracer.close()
        names = {log.event_name for log in receiver.logs}
        assert {"thoughtgate.run_start", "thoughtgate.tool_call_decision"} <= names
        assert "thoughtgate.message" not in names
        decisions = [
            log for log in receiver.logs if log.event_name == "thoughtgate.tool_call_decision"
        ]
        requests = {span.span_id for span in receiver.spans if span.name == "mcp.request"}
        assert {log.span_id for log in decisions} == requests
        assert "/tmp/a" not in str(receiver.spans) + str(receiver.logs)


def test_what_is_not_sampled_is_not_sent() -> None:
    with otlp_receiver() as receiver:
        tracer = Tracer(receiver.endpoint, sample_rate=0.0)
        for record in call(1):
            tracer.observe(record)
        tracer.close()
        assert receiver.spans == []


def test_calls_that_never_end_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 2)
    with otlp_receiver() as receiver:
        tracer = Tracer(receiver.endpoint)
        for number in range(5):
            tracer.observe(started(f"c{number}"))
        tracer.observe(decided("c0"))
        tracer.observe(asked("c0"))
        tracer.observe(answered("c0"))
        tracer.observe(ended("c0"))
        tracer.close()
        assert len(receiver.spans) == 5


def test_without_the_extra_the_way_to_get_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "thoughtgate.telemetry.otlp", None)
    with pytest.raises(UsageError, match=r"thoughtgate\[otel\]"):
        Tracer("http://127.0.0.1:1")
