import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.audit_cli import sample_events
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

from thoughtgate.core.record_events import Record, frame_refused, message_seen
from thoughtgate.core.run_summary import run_started
from thoughtgate.policy.call import DEVELOPMENT, PRODUCTION
from thoughtgate.policy.policy import Policy
from thoughtgate.telemetry import metrics as module
from thoughtgate.telemetry.metric_table import HTTP, METRICS, STDIO
from thoughtgate.telemetry.metrics import Metrics


def reloaded(outcome: str) -> Record:
    return Record("policy_changed", T0, "", "0", {"policy": {"outcome": outcome}})


def sample(metrics: Metrics, name: str, **labels: str) -> float:
    return found(metrics, name, labels) or 0.0


def found(metrics: Metrics, name: str, labels: dict[str, str]) -> float | None:
    samples = (one for family in metrics.families() for one in family.samples)
    return next((one.value for one in samples if (one.name, one.labels) == (name, labels)), None)


def fed(*records: Record, transport: str = "stdio") -> Metrics:
    metrics = Metrics(transport)
    for record in records:
        metrics.observe(record)
    return metrics


@pytest.mark.requirement("S000-NFR-002")
def test_the_stdio_metrics_count_what_shims_see() -> None:
    metrics = fed(
        message_seen(T0, "files", "1", "agent_to_server", "request", "initialize", 90),
        *call(1),
        started("c2"),
        decided("c2", action="BLOCK", enforced=False),
        ended("c2"),
        started("c3"),
        decided("c3", action="HOLD"),
        asked("c3", T0),
        answered("c3", T0 + 5),
        ended("c3"),
        frame_refused(
            T0, "files", "1", direction="agent_to_server", check="batch", kind="k", size=9
        ),
        Record("server_started", T0, "files", "1", {"server": {"pid": 7}}),
        Record("server_started", T0, "git", "1", {"server": {"pid": 8}}),
        Record("server_exited", T0, "git", "1", {"server": {"state": "failed_to_start"}}),
    )
    name = "thoughtgate_stdio_messages_total"
    agent, server = "agent_to_server", "server_to_agent"
    assert sample(metrics, name, server_id="files", direction=agent, method="initialize") == 1
    assert sample(metrics, name, server_id="files", direction=agent, method="tools/call") == 3
    assert sample(metrics, name, server_id="files", direction=server, method="tools/call") == 3
    name = "thoughtgate_stdio_governance_decisions_total"
    assert sample(metrics, name, server_id="files", decision="forward", profile="production") == 1
    assert sample(metrics, name, server_id="files", decision="deny", profile="development") == 1
    name = "thoughtgate_stdio_framing_errors_total"
    assert sample(metrics, name, server_id="files", error_type="batch") == 1
    name = "thoughtgate_stdio_server_state"
    assert sample(metrics, name, server_id="files", state="running") == 1
    assert sample(metrics, name, server_id="git", state="failed_to_start") == 1
    assert sample(metrics, name, server_id="git", state="running") == 0
    assert sample(metrics, "thoughtgate_stdio_active_servers") == 1
    name = "thoughtgate_stdio_approval_latency_seconds_sum"
    assert sample(metrics, name, server_id="files") == 5


@pytest.mark.parametrize("profile", [PRODUCTION, DEVELOPMENT])
def test_what_is_let_through_is_counted_for_the_profile_of_the_run(profile: str) -> None:
    metrics = fed(run_started(T0, Policy(profile=profile)), *call(1))
    name = "thoughtgate_stdio_governance_decisions_total"
    assert sample(metrics, name, server_id="files", decision="forward", profile=profile) == 1


@pytest.mark.requirement("S004-NFR-001")
def test_the_mcp_metrics_count_requests_upstreams_and_approvals() -> None:
    metrics = fed(
        *call(1),
        started("c2"),
        decided("c2", action="BLOCK"),
        ended("c2", status="ERROR", error=blocked()),
        started("c3"),
        decided("c3"),
        ended("c3", status="TIMEOUT", error={"class": "timeout", "kind": "tool_call_timeout"}),
        started("c4"),
        decided("c4", action="HOLD"),
        asked("c4", T0),
        answered("c4", T0 + 5, outcome="withdrawn", executes=False),
        ended("c4", status="CANCELLED", error=blocked("approval_withdrawn")),
        message_seen(T0, "files", "1", "server_to_agent", "response", "ping", 9),
        transport="stdio",
    )
    assert sample(metrics, "mcp_requests_total", method="tools/call", status="success") == 1
    assert sample(metrics, "mcp_requests_total", method="tools/call", status="error") == 3
    assert sample(metrics, "mcp_requests_total", method="ping", status="success") == 1
    assert sample(metrics, "mcp_request_duration_seconds_count", method="tools/call") == 4
    assert sample(metrics, "mcp_upstream_requests_total", status="success") == 1
    assert sample(metrics, "mcp_upstream_requests_total", status="timeout") == 1
    assert sample(metrics, "mcp_upstream_duration_seconds_count") == 2
    name = "thoughtgate_blocking_approval_total"
    assert sample(metrics, name, result="client_disconnected") == 1
    assert sample(metrics, "thoughtgate_blocking_approval_duration_seconds_sum") == 5
    assert sample(metrics, "thoughtgate_zombie_execution_prevented_total") == 1
    metrics.set("mcp_connections_active", 3)
    metrics.take("mcp_batch_size_histogram", 4)
    assert sample(metrics, "mcp_connections_active") == 3
    assert sample(metrics, "mcp_batch_size_histogram_count") == 1


def test_a_tool_that_says_that_it_failed_has_failed() -> None:
    metrics = fed(started("c"), decided("c"), ended("c", is_error=True))
    assert sample(metrics, "mcp_requests_total", method="tools/call", status="error") == 1
    assert sample(metrics, "mcp_upstream_requests_total", status="error") == 1
    name = "thoughtgate_errors_total"
    assert sample(metrics, name, error_type="tool_error", method="tools/call") == 1


def test_the_time_a_person_took_is_not_the_servers() -> None:
    metrics = fed(
        started("c", T0),
        decided("c", T0, action="HOLD"),
        asked("c", T0),
        answered("c", T0 + 60),
        ended("c", T0 + 62, latency_ms=62_000),
    )
    assert sample(metrics, "mcp_upstream_duration_seconds_sum") == 2
    assert sample(metrics, "mcp_request_duration_seconds_sum", method="tools/call") == 62
    assert sample(metrics, "thoughtgate_approvals_pending") == 0


def test_a_question_nobody_answered_counts_for_the_channel_it_was_put_on() -> None:
    question, silence = asked("c", T0), answered("c", T0 + 60, outcome="timeout", executes=False)
    question.body["approval"]["channel"] = "slack"
    silence.body["approval"] |= {"decided_by": "", "channel": ""}
    metrics = fed(started("c", T0), decided("c", T0, action="HOLD"), question, silence)
    labels = {"channel": "slack", "outcome": "timeout"}
    assert sample(metrics, "thoughtgate_approval_requests_total", **labels) == 1
    assert sample(metrics, "thoughtgate_approval_wait_duration_s_count", **labels) == 1


def test_a_refusal_without_a_question_counts_for_no_channel() -> None:
    refused = answered("c", outcome="timeout", executes=False)
    refused.body["approval"] |= {"decided_by": "", "channel": ""}
    metrics = fed(started("c"), decided("c", action="HOLD"), refused)
    name = "thoughtgate_approval_requests_total"
    assert sample(metrics, name, channel="none", outcome="timeout") == 1


def test_on_http_the_stdio_family_does_not_exist() -> None:
    metrics = fed(*sample_events(), transport=HTTP)
    text = metrics.render().decode()
    assert "thoughtgate_stdio_" not in text
    assert "thoughtgate_zombie_execution_prevented_total" not in text
    assert "mcp_requests_total" in text


@pytest.mark.parametrize("transport", [STDIO, HTTP])
def test_every_metric_that_is_not_late_is_named_before_anything_is_counted(transport: str) -> None:
    text = Metrics(transport).render().decode()
    found = {family.name: family for family in text_string_to_metric_families(text)}
    there = [one for one in METRICS if not one.late and (transport == STDIO or not one.stdio)]
    assert set(found) == {one.name.removesuffix("_total") for one in there}
    for metric in there:
        family = found[metric.name.removesuffix("_total")]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        assert f"# TYPE {metric.name} {metric.kind}\n" in text


def test_a_metric_whose_label_has_few_values_begins_at_zero_for_each() -> None:
    metrics = Metrics()
    few = [metric for metric in METRICS if metric.values]
    assert len(few) == 4
    for metric in few:
        (label,) = metric.labels
        for value in metric.values:
            assert found(metrics, metric.name, {label: value}) == 0


def test_the_values_that_a_metric_begins_with_are_those_that_are_counted() -> None:
    outcomes = ("approved", "rejected", "timeout", "withdrawn")
    metrics = fed(
        *(answered(outcome, outcome=outcome) for outcome in outcomes),
        *(decided(one, action=one) for one in ("ALLOW", "HOLD", "BLOCK", "THROTTLE")),
        *(ended(one, status=one) for one in ("OK", "ERROR", "TIMEOUT", "CANCELLED")),
        *(reloaded(one) for one in ("applied", "invalid")),
    )
    text = metrics.render().decode()
    found = {
        metric.name: {line.split('"')[1] for line in text.splitlines() if metric.name + "{" in line}
        for metric in METRICS
        if metric.values
    }
    for metric in METRICS:
        if metric.values:
            assert found[metric.name] == set(metric.values)
            samples = (
                sample(metrics, metric.name, **{metric.labels[0]: one}) for one in metric.values
            )
            assert all(samples), metric.name


def test_everything_rendered_can_be_scraped() -> None:
    metrics = fed(*sample_events())
    families = list(text_string_to_metric_families(metrics.render().decode()))
    assert len(families) > 20
    assert sample(metrics, "thoughtgate_uptime_seconds") >= 0


def test_names_that_peers_choose_are_bounded() -> None:
    metrics = Metrics()
    for number in range(400):
        for record in call(number, server=f"s{number}", tool=f"t{number}", method=f"m{number}"):
            metrics.observe(record)
    text = metrics.render().decode()
    assert 't199"' in text
    assert 't200"' not in text
    assert 's49"' in text
    assert 's50"' not in text
    assert "m1" not in {part.split('"')[1] for part in text.split("method=")[1:]}
    assert (
        sample(
            metrics,
            "thoughtgate_requests_total",
            method="__other__",
            tool_name="__other__",
            status="success",
        )
        == 200
    )


def test_calls_that_never_end_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_TRACKED", 10)
    metrics = fed(*(started(f"c{number}") for number in range(50)))
    assert sample(metrics, "thoughtgate_calls_in_flight") == 10
    metrics.observe(ended("c1"))
    assert sample(metrics, "mcp_requests_total", method="__other__", status="success") == 1


def test_gates_cedar_and_rules_are_told_apart() -> None:
    metrics = fed(
        decided("1", gate="rules", action="BLOCK"),
        decided("2", gate="cedar", action="BLOCK", rule="policy3"),
        decided("3", gate="cedar", action="ALLOW", rule="policy1"),
        decided("4", gate="limits", action="THROTTLE"),
    )
    assert sample(metrics, "thoughtgate_decisions_total", gate="limits", outcome="throttle") == 1
    assert sample(metrics, "thoughtgate_rule_matches_total", action="deny") == 1
    name = "thoughtgate_cedar_evaluations_total"
    assert sample(metrics, name, decision="deny", policy_id="policy3") == 1
    assert sample(metrics, name, decision="allow", policy_id="policy1") == 1


def test_agents_and_config_files_are_counted() -> None:
    metrics = fed(
        Record("agent_connected", T0, "", "1", {"agent": {"method": "bearer"}}),
        Record("agent_auth_rejected", T0, "", "0", {"agent": {"method": "bearer"}}),
        reloaded("invalid"),
        reloaded("held"),
    )
    name = "thoughtgate_agent_connections_total"
    assert sample(metrics, name, method="bearer", outcome="accepted") == 1
    assert sample(metrics, name, method="bearer", outcome="rejected") == 1
    assert sample(metrics, "thoughtgate_config_load_total", status="error") == 1


def test_the_config_file_of_the_start_is_counted_and_the_starter_is_none() -> None:
    name = "thoughtgate_config_load_total"
    changed = reloaded("accepted")
    assert sample(fed(run_started(T0, Policy()), changed), name, status="success") == 2
    assert sample(fed(run_started(T0, Policy(starter=True))), name, status="success") == 0


def test_an_answer_to_an_unknown_call_is_counted_without_a_time() -> None:
    metrics = fed(asked("nobody"), answered("nobody"))
    assert sample(metrics, "thoughtgate_blocking_approval_total", result="approved") == 1
    assert sample(metrics, "thoughtgate_blocking_approval_duration_seconds_count") == 0
