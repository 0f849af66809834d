"""A server's state is told when it changes, not with every call."""

from typing import Any

import pytest

from thoughtgate.core.record_events import Record
from thoughtgate.errors import upstream_error
from thoughtgate.upstream import health as module
from thoughtgate.upstream.health import MAX_CHANGES, WINDOW_S, ServerHealth


class _Scene:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.records: list[Record] = []
        self.health = ServerHealth("far", self.records.append)
        self.time = 1000.0
        monkeypatch.setattr(module, "monotonic", lambda: self.time)

    @property
    def types(self) -> list[str]:
        return [record.type for record in self.records]

    @property
    def last(self) -> dict[str, Any]:
        facts: dict[str, Any] = self.records[-1].body["server"]
        return facts


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> _Scene:
    return _Scene(monkeypatch)


def test_the_first_answer_is_a_start(scene: _Scene) -> None:
    scene.health.answered()
    scene.health.answered()
    assert scene.types == ["server_started"]
    assert scene.last == {"pid": 0}
    assert scene.health.is_settled
    assert scene.health.describe() == {"state": "up"}


def test_a_failure_is_told_once_and_so_is_the_recovery(scene: _Scene) -> None:
    scene.health.answered()
    for _ in range(3):
        scene.health.failed(upstream_error("connection_refused"))
    assert scene.last == scene.health.describe()
    assert scene.last == {
        "state": "down",
        "kind": "upstream_connection_failed",
        "cause": "connection_refused",
        "reason": "the server's port refused the connection",
    }
    assert not scene.health.is_settled
    scene.time += 12.0
    scene.health.answered()
    assert scene.types == ["server_started", "server_unreachable", "server_recovered"]
    assert scene.last == {"state": "up", "down_s": 12.0}


@pytest.mark.parametrize(
    ("cause", "state"),
    [
        ("tls_expired", "down"),
        ("connect_timeout", "down"),
        ("dns_failed", "down"),
        ("connection_lost", "degraded"),
        ("status_401", "degraded"),
        ("wrong_id", "degraded"),
        ("unavailable", "degraded"),
    ],
)
def test_a_server_that_answers_wrongly_is_not_down(scene: _Scene, cause: str, state: str) -> None:
    scene.health.failed(upstream_error(cause, status=0))
    assert scene.health.state == scene.last["state"] == state
    assert scene.last["cause"] == cause


@pytest.mark.parametrize("cause", ["session_lost", "stopped", "gate_closing", "stream_ended"])
def test_what_is_no_failure_of_the_server_changes_nothing(scene: _Scene, cause: str) -> None:
    scene.health.answered()
    scene.health.failed(upstream_error(cause))
    assert scene.types == ["server_started"]


def test_a_refused_notification_says_nothing_about_the_server(scene: _Scene) -> None:
    scene.health.failed(upstream_error("status", status=405), is_call=False)
    assert scene.types == []
    scene.health.failed(upstream_error("status_401", status=401), is_call=False)
    assert scene.types == ["server_unreachable"]


def test_another_cause_is_a_change(scene: _Scene) -> None:
    causes = ["connection_refused", "dns_failed", "tls_expired"]
    for cause in causes:
        scene.health.failed(upstream_error(cause))
        scene.health.failed(upstream_error(cause))
    assert [record.body["server"]["cause"] for record in scene.records] == causes


def test_a_connection_proves_only_that_a_server_is_not_down(scene: _Scene) -> None:
    scene.health.failed(upstream_error("connection_refused"))
    scene.health.reachable()
    assert scene.health.state == "up"
    scene.health.failed(upstream_error("status_401", status=401))
    scene.health.reachable()
    assert scene.health.state == "degraded"


def test_a_server_that_changes_all_the_time_is_told_a_few_times(scene: _Scene) -> None:
    for _ in range(50):
        scene.health.failed(upstream_error("status", status=500))
        scene.health.answered()
    assert len(scene.records) == MAX_CHANGES
    assert scene.health.state == "up"
    scene.health.failed(upstream_error("status", status=500))
    scene.time += WINDOW_S
    scene.health.failed(upstream_error("status", status=500))
    assert len(scene.records) == MAX_CHANGES + 1
    assert scene.last["state"] == "degraded"


def test_after_a_stop_the_next_answer_is_a_start(scene: _Scene) -> None:
    scene.health.answered()
    scene.health.disconnected()
    assert scene.health.describe() == {"state": "unknown"}
    scene.health.answered()
    assert scene.types == ["server_started", "server_started"]
