"""The seam between a session driver and whoever judges for it."""

import inspect
from typing import Any

import pytest

from thoughtgate.core.commands import AskPeople
from thoughtgate.core.elicitation import ID_PREFIX, HoldNotice
from thoughtgate.core.events import PersonAsked
from thoughtgate.gate.authority import PolledAuthority, prompts
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.session_driver import Authority
from thoughtgate.shim.service_authority import ServiceAuthority

ASKED = AskPeople(1, "run.1", "default", 5.0)
QUESTION = HoldNotice(prompt="May I?")
TOLD = HoldNotice(waits="It waits.", page="http://127.0.0.1:1/approvals/k3f9ab")


def _members(seam: Any) -> set[str]:
    return {
        name
        for name, member in inspect.getmembers(seam)
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }


def test_both_judges_offer_the_whole_seam() -> None:
    judging = {"judge", "resume", "screen", "inspect", "ask", "person_answered", "withdraw"}
    tasks = {"ask_task", "end_task", "request_states"}

    assert judging | tasks | {"note", "flush"} <= _members(Authority)
    assert {"read", "rest", "descriptors", "interval_s", "ready", "tick", "finish"} <= _members(
        PolledAuthority
    )
    for judge in (LocalAuthority, ServiceAuthority):
        assert _members(PolledAuthority) <= set(dir(judge)), judge


def test_both_take_the_same_arguments() -> None:
    for name, member in inspect.getmembers(PolledAuthority, inspect.isfunction):
        if name.startswith("_"):
            continue
        wanted = list(inspect.signature(member).parameters)
        for judge in (LocalAuthority, ServiceAuthority):
            assert list(inspect.signature(getattr(judge, name)).parameters) == wanted, (judge, name)


def test_whatever_concerns_one_session_names_its_driver_first() -> None:
    for name in (
        "judge",
        "resume",
        "screen",
        "inspect",
        "ask",
        "person_answered",
        "ask_task",
        "end_task",
        "withdraw",
    ):
        assert list(inspect.signature(getattr(Authority, name)).parameters)[1] == "driver", name


def test_a_prompt_shows_the_text_under_an_id_of_the_gates_own() -> None:
    (first,), (second,) = prompts(ASKED, QUESTION), prompts(ASKED, QUESTION)

    assert isinstance(first, PersonAsked)
    assert isinstance(second, PersonAsked)
    assert (first.key, first.text, first.at) == (1, "May I?", 5.0)
    assert first.ident.startswith(ID_PREFIX)
    assert first.ident != second.ident


@pytest.mark.parametrize(
    ("command", "notice"),
    [
        (ASKED, HoldNotice()),
        (ASKED._replace(params={}), QUESTION),
        (ASKED._replace(params={}, modern=True), TOLD),
    ],
)
def test_without_a_text_or_for_a_task_nobody_is_prompted(
    command: AskPeople, notice: HoldNotice
) -> None:
    assert prompts(command, notice) == []


def test_a_caller_that_can_show_no_prompt_is_told_in_its_progress_only() -> None:
    (told,) = prompts(ASKED, TOLD._replace(prompt="May I?"), can_show=False)

    assert told == PersonAsked(1, "", "", 5.0, "It waits.", TOLD.page)
