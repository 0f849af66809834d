"""Events are values, and a session answers each of them."""

import pytest
from tests.support.session_play import YES, new_session

from thoughtgate.core import events
from thoughtgate.core.events import (
    AgentGone,
    AgentSent,
    CallerGone,
    CallJudged,
    ListScreened,
    NotSent,
    ServerGone,
    ServerSent,
    ServerStarted,
    Ticked,
)


@pytest.mark.parametrize(
    "event",
    [
        AgentSent(b"", 1.0),
        ServerSent(b"", 1.0),
        CallJudged(1, YES, "run.1", 1.0),
        ListScreened(1, frozenset(), 1.0),
        NotSent(1, "service_unavailable", 1.0),
        AgentGone(1.0),
        CallerGone(1, 1.0),
        ServerGone("gone", 1.0),
        ServerStarted(1.0),
        Ticked(1.0),
    ],
)
def test_each_event_carries_its_time_and_finds_its_handler(event: events.Event) -> None:
    assert event.at == 1.0
    assert new_session().receive(event) == []


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Ticked(1.0).at = 2.0  # type: ignore[misc]  # the assignment is what is tested
