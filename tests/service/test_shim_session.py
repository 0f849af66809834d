"""What the service believes of what a shim tells about itself."""

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.governed import ended
from tests.support.json_values import json_values
from tests.support.waiting import ending

from thoughtgate.core.record_events import Record
from thoughtgate.errors import PeerError
from thoughtgate.service.shim_session import (
    LOST_AFTER_S,
    ShimSession,
    is_child,
    known_process,
    read_record,
    string_of,
)

AT = 1_760_000_000.0


@given(json_values())
@settings(max_examples=150, deadline=None)
def test_anything_but_a_record_is_refused_with_a_reason(value: object) -> None:
    with pytest.raises(PeerError):
        read_record(value, "files", "s", AT)


@given(st.sampled_from(["tool_call_end", "message"]), json_values(), json_values())
@settings(max_examples=150, deadline=None)
def test_a_record_with_a_strange_body_is_refused_or_taken_but_never_a_fault(
    kind: str, status: object, call: object
) -> None:
    try:
        record = read_record([kind, AT, {"status": status, "call": call}], "files", "s", AT)
    except PeerError:
        return
    assert isinstance(record, Record)


def test_a_shim_reports_nothing_that_the_service_records_itself() -> None:
    for kind in (
        "run_start",
        "run_end",
        "tool_call_decision",
        "approval_decided",
        "policy_changed",
    ):
        with pytest.raises(PeerError, match="does not report"):
            read_record([kind, AT, {}], "files", "s", AT)


@pytest.mark.parametrize("at", [float("nan"), float("inf"), AT + 1e6, 0, "now", None])
def test_a_time_that_cannot_be_is_refused(at: object) -> None:
    with pytest.raises(PeerError, match="time"):
        read_record(["message", at, {}], "files", "s", AT)


def test_a_record_is_filed_under_its_own_session_whatever_it_says() -> None:
    record = read_record(ended("run.1", at=AT), "files", "mine", AT)

    assert (record.server, record.session) == ("files", "mine")


@pytest.mark.parametrize("pid", [0, 1, -1, None, "7", 10**9, True])
def test_a_process_that_is_not_to_be_seen_is_not_believed(pid: object) -> None:
    assert known_process(pid) == 0


def test_a_server_is_believed_only_as_a_child_that_leads_a_group() -> None:
    with ending(subprocess.Popen(["sleep", "600"], start_new_session=True)) as child:
        assert is_child(child.pid, os.getpid())
        assert not is_child(child.pid, 1)
        session = ShimSession("s", "files", 0.0, pid=os.getpid())
        for facts in (None, {}, {"pid": "x"}, {"pid": 1}, {"pid": os.getpid()}):
            session.follow_server(facts)
            assert session.group == 0
        session.follow_server({"pid": child.pid})
        assert session.group == child.pid
        session.end_server()
        assert child.wait(5) == -9
    waiting = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    with ending(waiting) as same_group:
        assert not is_child(same_group.pid, os.getpid())
        same_group.kill()


def test_the_server_of_an_unseen_shim_is_never_signalled() -> None:
    session = ShimSession("s", "files", 0.0, pid=0)
    with ending(subprocess.Popen(["sleep", "600"], start_new_session=True)) as child:
        session.follow_server({"pid": child.pid})
        session.end_server()
        assert child.poll() is None
        child.kill()


def test_an_unseen_shim_is_gone_after_silence_and_a_stopped_one_is_not() -> None:
    unseen = ShimSession("s", "files", seen_at=100.0)
    assert not unseen.is_gone(100.0 + LOST_AFTER_S - 1)
    assert unseen.is_gone(100.0 + LOST_AFTER_S + 1)
    assert not ShimSession("s", "files", seen_at=0.0, pid=os.getpid()).is_gone(1e9)


def test_a_member_that_must_be_text_is() -> None:
    assert string_of({"a": "b"}, "a") == "b"
    with pytest.raises(PeerError, match="a must be a string"):
        string_of({"a": 1}, "a")
