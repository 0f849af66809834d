"""The events of the record as values."""

from typing import Any

import pytest

from thoughtgate.core.record_events import (
    AGENT_TO_SERVER,
    CALL_END,
    ERROR,
    FRAME_REFUSED,
    MAX_NAME,
    MESSAGE,
    NAME_READ,
    OK,
    SERVER_TO_AGENT,
    Record,
    call_ended,
    describe_exit,
    frame_refused,
    message_seen,
    server_exited,
    server_started,
    with_masked_start,
)
from thoughtgate.policy.redaction import Redactor


def test_a_message_that_nobody_judges_leaves_its_facts_and_no_content() -> None:
    record = message_seen(1.0, "srv", "1", AGENT_TO_SERVER, "request", "m" * 5000, 40)

    assert (record.type, record.at, record.server, record.session) == (MESSAGE, 1.0, "srv", "1")
    assert record.body == {
        "message": {
            "direction": AGENT_TO_SERVER,
            "shape": "request",
            "method": "m" * NAME_READ,
            "bytes": 40,
        }
    }


def test_a_refused_frame_names_the_check_that_failed() -> None:
    record = frame_refused(
        1.0,
        "srv",
        "1",
        direction=SERVER_TO_AGENT,
        check="raw_cr",
        kind="invalid_request",
        size=9,
        start=b"\r{}",
        method="x",
        correlation_id="1-f1",
    )

    assert record.type == FRAME_REFUSED
    assert record.body["frame"] == {
        "direction": SERVER_TO_AGENT,
        "check": "raw_cr",
        "kind": "invalid_request",
        "bytes": 9,
        "first_bytes": "0d7b7d",
        "method": "x",
        "correlation_id": "1-f1",
        "enforced": True,
    }


def test_what_development_lets_pass_says_what_would_have_been() -> None:
    def outcome(check: str) -> str:
        record = frame_refused(
            0, "", "", direction="", check=check, kind="", size=0, enforced=False
        )
        return str(record.body["frame"]["outcome"])

    assert outcome("unclassifiable") == outcome("unknown_response") == "WOULD_DROP"
    assert outcome("raw_cr") == "WOULD_REJECT"


def test_the_end_of_a_call_has_what_is_known_and_nothing_else() -> None:
    plain = call_ended(
        1.0, "srv", "1", call_id="c", tool="t" * 1000, status=OK, latency_ms=5, size=7
    )
    failed = call_ended(
        1.0,
        "srv",
        "1",
        call_id="c",
        tool="t",
        status=ERROR,
        latency_ms=5,
        size=7,
        error={"class": "transport"},
        is_error=True,
    )

    assert plain.type == CALL_END
    assert plain.body == {
        "call": {"call_id": "c", "server_name": "srv", "tool_name": "t" * MAX_NAME},
        "status": OK,
        "latency_ms": 5,
        "bytes_out": 7,
    }
    assert failed.body["error"] == {"class": "transport"}
    assert failed.body["is_error"] is True


def test_a_started_server_is_known_by_its_process() -> None:
    record = server_started(1.0, "srv", "1", 7)

    assert (record.type, record.at, record.server, record.session) == (
        "server_started",
        1.0,
        "srv",
        "1",
    )
    assert record.body == {"server": {"pid": 7}}


GONE, START = "upstream_connection_failed", "server_start_failed"


@pytest.mark.parametrize(
    ("code", "was_up", "facts"),
    [
        (3, True, {"state": "exited", "exit_code": 3, "cause": "exited", "kind": GONE}),
        (-9, True, {"state": "exited", "exit_code": 137, "cause": "exited", "kind": GONE}),
        (3, False, {"state": "exited", "exit_code": 3, "cause": "exited", "kind": START}),
        (None, True, {"state": "lost", "cause": "connection_lost", "kind": GONE}),
        (None, False, {"state": "failed_to_start", "cause": "start_failed", "kind": START}),
    ],
)
def test_an_ended_server_says_how_it_ended(
    code: int | None, facts: dict[str, Any], *, was_up: bool
) -> None:
    record = server_exited(1.0, "srv", "1", "why", exit_code=code, was_up=was_up)

    assert record.type == "server_exited"
    assert record.body == {"server": {**facts, "reason": "why"}}


def test_exits_are_told_in_words() -> None:
    assert describe_exit(3) == "the server exited with code 3"
    assert describe_exit(-9) == "the server was ended by signal 9"
    assert describe_exit(137) == "the server was ended by signal 9"


def refused(start: bytes) -> Record:
    return frame_refused(
        1.0,
        "srv",
        "1",
        direction=SERVER_TO_AGENT,
        check="malformed_json",
        kind="parse_error",
        size=len(start),
        start=start,
    )


def test_a_refused_frame_is_recorded_with_its_first_bytes_and_no_secret() -> None:
    mask = Redactor().mask_text
    token = b"ghp_" + b"a1B2" * 9

    def kept(start: bytes) -> bytes:
        record = with_masked_start(refused(start), mask)
        return bytes.fromhex(record.body["frame"]["first_bytes"])

    assert kept(b"\xff\xfe" + b"x" * 900) == b"\xff\xfe" + b"x" * 30
    assert kept(b"") == b""
    assert kept(token + b" and more") == b"[token, 40 characters] and more"
    # The stored bytes alone would not match the pattern of this token.
    assert b"ghp_" not in kept(b"-" * 24 + token)


def test_first_bytes_that_a_shim_reports_in_another_form_are_left_out() -> None:
    for wrong in ("zz", 7, None):
        record = refused(b"x")
        record.body["frame"]["first_bytes"] = wrong
        assert with_masked_start(record, str).body["frame"]["first_bytes"] == ""
