"""What is proven about the servers of a run."""

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
