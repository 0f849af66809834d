import pytest
from tests.support.records import (
    T0,
    answered,
    asked,
    blocked,
    call,
    decided,
    ended,
)

from thoughtgate.core.record_events import RUN_END, RUN_START, Record, frame_refused, message_seen
from thoughtgate.core.run_summary import (
    FAILED,
    OUTCOMES,
    RunSummary,
    policy_reference,
    run_ended,
    run_profile,
    run_started,
)
from thoughtgate.policy.call import DEVELOPMENT, PRODUCTION
from thoughtgate.policy.policy import Policy


def summary_of(records: list[Record]) -> dict[str, int]:
    tally = RunSummary()
    for record in records:
        tally.count(record)
    return tally.summary(T0, T0 + 2.5)


@pytest.mark.requirement("EVT-009")
def test_the_sums_are_those_of_the_events() -> None:
    records = [
        *call(1),
        *call(2),
        *call(3),
        ended("4", status="ERROR", error=blocked()),
        ended("5", status="ERROR", error=blocked("not_exposed")),
        ended("6", status="ERROR", error=blocked("rate_limited")),
        ended("7", status="ERROR", error={"class": "upstream_error", "message": "no", "code": -1}),
        ended("8", status="TIMEOUT", error={"class": "timeout", "message": "late"}),
        ended("9", status="CANCELLED"),
        ended("10", status="CANCELLED", error=blocked("approval_withdrawn")),
        ended("11", is_error=True),
    ]
    summary = summary_of(records)
    assert summary["calls_total"] == 11
    assert summary["calls_blocked"] == 3
    assert summary["calls_throttled"] == 1
    assert summary["calls_allowed"] == 7
    assert summary["errors_total"] == 6
    assert summary["tool_errors"] == 1
    assert summary["duration_ms"] == 2500
    assert summary["calls_total"] == (
        summary["calls_allowed"] + summary["calls_blocked"] + summary["calls_throttled"]
    )


def test_approvals_are_counted_by_outcome() -> None:
    records = [asked("1"), *(answered("1", outcome=outcome) for outcome in OUTCOMES)]
    records.append(answered("1", outcome="something else"))
    summary = summary_of(records)
    assert summary["approvals_requested"] == 1
    assert [summary[f"approvals_{outcome}"] for outcome in OUTCOMES] == [1, 1, 1, 1]


def test_frames_messages_and_what_would_have_been_refused_are_counted() -> None:
    records = [
        frame_refused(T0, "s", "1", direction="agent_to_server", check="c", kind="k", size=1),
        message_seen(T0, "s", "1", "agent_to_server", "request", "ping", 10),
        decided("1", action="BLOCK", enforced=False),
        decided("2", action="BLOCK"),
        decided("3", action="ALLOW", enforced=False),
        Record("server_started", T0, "s", "1", {}),
    ]
    summary = summary_of(records)
    assert summary["frames_refused"] == 1
    assert summary["messages"] == 1
    assert summary["calls_would_block"] == 1
    assert summary["calls_total"] == 0


def test_a_run_begins_with_its_mode_and_its_policy() -> None:
    record = run_started(T0, Policy(version="abc"), server="files", command="npx")
    assert record.type == RUN_START
    assert record.server == "files"
    assert record.body["run"] == {
        "started_at": "2025-10-09T08:53:20.000Z",
        "mode": "enforce",
        "policy": {"policy_id": "config", "policy_version": "abc", "policy_hash": "abc"},
        "meta": {"command": "npx"},
    }
    observing = run_started(T0, Policy(profile=DEVELOPMENT))
    assert observing.body["run"]["mode"] == "observe"
    assert "meta" not in observing.body["run"]


def test_a_run_ends_with_its_status_and_its_sums() -> None:
    tally = RunSummary()
    record = run_ended(T0 + 1, T0, FAILED, tally, reason="the server died")
    assert record.type == RUN_END
    assert record.body["run"]["status"] == "FAILED"
    assert record.body["run"]["reason"] == "the server died"
    assert record.body["run"]["summary"]["duration_ms"] == 1000
    assert "reason" not in run_ended(T0, T0, FAILED, tally).body["run"]


def test_a_clock_that_went_back_gives_no_negative_duration() -> None:
    assert RunSummary().summary(T0, T0 - 5)["duration_ms"] == 0


def test_the_starter_policy_is_named_as_such() -> None:
    assert policy_reference(Policy(starter=True))["policy_id"] == "starter"


def test_the_first_record_says_the_profile() -> None:
    for profile in (PRODUCTION, DEVELOPMENT):
        assert run_profile(run_started(T0, Policy(profile=profile))) == profile
