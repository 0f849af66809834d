"""Playbooks, played on a receiver of three lines."""

from typing import Any

import pytest

from thoughtgate.core.commands import ToAgent, ToServer, WriteRecord
from thoughtgate.core.events import AgentSent
from thoughtgate.core.session import Session
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.testing.playbook import Playbook, Some


class _Echo:
    def receive(self, event: Any) -> list[Any]:
        return [ToServer(event), ToAgent(event)]


def test_commands_that_are_as_expected_pass() -> None:
    Playbook(_Echo()).when(b"x").then(ToServer(b"x"), ToAgent(b"x")).when(b"y").whatever()


def test_other_commands_fail_with_both_lists() -> None:
    with pytest.raises(AssertionError, match=r"(?s)step 1.*expected:.*got:"):
        Playbook(_Echo()).when(b"x").then(ToServer(b"x"))


def test_commands_that_nobody_checked_fail_at_the_next_event() -> None:
    with pytest.raises(AssertionError, match="nothing"):
        Playbook(_Echo()).when(b"x").when(b"y")


def test_kinds_can_be_ignored() -> None:
    Playbook(_Echo(), ignore=(ToAgent,)).when(b"x").then(ToServer(b"x"))


def test_some_stands_for_a_kind_or_for_what_passes_a_test() -> None:
    played = Playbook(_Echo()).when(b"x")
    assert len(played.commands) == 2

    played.then(Some(ToServer), Some(ToAgent, lambda command: command.data == b"x"))

    assert Some(ToServer) != ToAgent(b"x")
    assert repr(Some(ToServer)) == "Some(ToServer)"
    assert len({Some(ToServer)}) == 1


def test_commands_of_different_kinds_are_never_the_same() -> None:
    with pytest.raises(AssertionError):
        Playbook(_Echo()).when(b"x").then(ToAgent(b"x"), ToServer(b"x"))


def test_the_real_session_can_be_played() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    session = Session(SessionSettings("s", "1"))

    Playbook(session).when(AgentSent(line, 0.0)).then(
        Some(WriteRecord), Some(ToServer, lambda command: command.data == line)
    )
