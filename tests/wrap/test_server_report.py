"""What is proven about the servers of a run."""

from typing import Any

from tests.support.waiting import run_async

from thoughtgate.wrap.server_report import ServerReport


def test_a_server_is_governed_once_its_shim_has_reported() -> None:
    reported: set[str] = set()
    report = ServerReport(reported)
    report.configured = ("a", "b")
    report.outside = [("far", "remote server")]
    assert (report.governed, report.silent) == ((), ("a", "b"))

    reported |= {"b", "by hand"}

    assert (report.governed, report.silent) == (("b",), ("a",))
    assert run_async(report.describe({})) == {
        "servers": [
            {"id": "b", "status": "governed", "reason": ""},
            {"id": "a", "status": "never started", "reason": "no shim has reported"},
            {"id": "far", "status": "not governed", "reason": "remote server"},
        ]
    }


def test_a_governed_server_that_failed_says_why() -> None:
    error = {"kind": "server_start_failed", "cause": "start_failed"}
    failed = {
        "id": "a",
        "since": "now",
        "status": "failed_to_start",
        "reason": "no",
        "error": error,
    }
    states: dict[str, dict[str, Any]] = {
        "a": failed,
        "b": {"id": "b", "status": "running", "pid": 7},
    }
    report = ServerReport({"a", "b"}, lambda: states)
    report.configured = ("a", "b")
    assert run_async(report.describe({})) == {
        "servers": [
            {"id": "a", "status": "governed", "reason": "no", "error": error},
            {"id": "b", "status": "governed", "reason": ""},
        ]
    }
