"""Errors that belong to no call are found by the id that the agent was told."""

import json
from typing import Any

import pytest

from thoughtgate.record.error_events import error_events, error_of, find_errors
from thoughtgate.record.verification import RecordLine


def event(ident: str, first: str = "", member: str = "frame") -> dict[str, Any]:
    said: dict[str, Any] = {"correlation_id": ident}
    if first:
        said |= {"first_correlation_id": first, "repeated": 5}
    return {"type": "frame_refused", member: said}


@pytest.mark.parametrize("member", ["frame", "request", "agent"])
def test_an_error_is_found_by_its_id(member: str) -> None:
    wanted = event("run.e2", member=member)
    assert find_errors([event("run.e1"), wanted, {"type": "message"}], "run.e2") == [wanted]
    assert error_of(wanted) == {"correlation_id": "run.e2"}


def test_the_end_of_an_id_is_enough() -> None:
    events = [event("a.e1"), event("a.e11"), event("b.e1")]
    assert find_errors(events, ".e1") == [events[0], events[2]]
    assert find_errors(events, "a.e1") == [events[0]]


@pytest.mark.parametrize(
    ("ident", "is_found"),
    [
        ("run.e3", True),
        ("run.e7", True),
        ("run.e9", True),
        ("run.e2", False),
        ("run.e10", False),
        ("other.e5", False),
        ("nothing", False),
        ("run.e" + "9" * 30, False),
    ],
)
def test_a_folded_error_is_found_between_the_first_and_the_last(
    ident: str, *, is_found: bool
) -> None:
    folded = event("run.e9", "run.e3")
    assert find_errors([folded], ident) == ([folded] if is_found else [])


@pytest.mark.parametrize("said", [None, 5, {}, {"correlation_id": 5}])
def test_what_has_no_id_is_no_error(said: Any) -> None:
    assert error_of({"frame": said}) is None
    assert find_errors([{"frame": said}], "x") == []


def test_only_lines_that_may_be_meant_are_parsed() -> None:
    lines = [
        json.dumps(one, separators=(",", ":")).encode()
        for one in (
            {"v": "1.3", **event("run.e1")},
            {"v": "1.3", **event("run.e2")},
            {"v": "1.3", **event("run.e9", "run.e4")},
            {"v": "1.3", "type": "message", "message": {"method": "run.e2"}},
        )
    ]
    found = error_events((RecordLine("f", at, line) for at, line in enumerate(lines)), "run.e2")
    assert [one["frame"]["correlation_id"] for one in found] == ["run.e2", "run.e9"]
