"""Holding a call, by every gate alike: the shared scenarios on every stage."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.scenarios import approvals
from tests.scenarios.approvals import Scenario
from tests.support.stages import STAGES, Stage, WrapStage
from tests.support.waiting import wait_for

from thoughtgate.stores.process_owner import is_alive


class Set(NamedTuple):
    """A stage that many scenarios use, and the calls made when it opened."""

    stage: Stage
    timed: dict[str, int]


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Set]]:
    """Open every stage at once, so that what takes time takes it while others play."""
    with contextlib.ExitStack() as stack:
        opened: dict[str, Set] = {}
        for name, make in STAGES.items():
            stage = make(tmp_path_factory.mktemp("stage") / name)
            stack.callback(stage.close)
            stage.start()
            opened[name] = Set(stage, approvals.send_timed(stage))
        yield opened


@pytest.fixture(params=STAGES)
def on(request: pytest.FixtureRequest, stages: dict[str, Set]) -> Set:
    return stages[request.param]


@pytest.mark.parametrize("scenario", approvals.SHARED)
def test_held_calls_are_the_same_everywhere(on: Set, scenario: Scenario) -> None:
    scenario(on.stage)


@pytest.mark.requirement("S004-LIVE-3", "EC-STDIO-021")
def test_a_call_that_nobody_answers_for_times_out(on: Set) -> None:
    approvals.timed_out(on.stage, on.timed)


def test_silence_can_mean_yes(on: Set) -> None:
    approvals.timed_to_yes(on.stage, on.timed)


def test_a_held_call_tells_progress(on: Set) -> None:
    approvals.told_progress(on.stage, on.timed)


@pytest.mark.requirement("S004-LIVE-2", "S004-LIVE-4")
def test_a_caller_that_is_gone_runs_nothing(on: Set) -> None:
    approvals.caller_gone(on.stage)


@pytest.mark.requirement("EC-STDIO-022")
@pytest.mark.parametrize("name", STAGES)
def test_a_gate_that_stops_takes_its_questions_back(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stage = STAGES[name](tmp_path_factory.mktemp("stopped"))
    try:
        stage.start()
        approvals.stopped(stage)
    finally:
        stage.close()


def test_a_killed_shim_takes_its_question_with_it_at_once(tmp_path: Path) -> None:
    stage = WrapStage(tmp_path)
    try:
        stage.start()
        ident = stage.call()
        question = stage.question(ident)
        shim = int(question.owner.split("|")[4])
        assert shim != stage.gate.pid
        os.kill(shim, signal.SIGKILL)
        wait_for(lambda: not is_alive(question.owner), what="the end of the shim")
        assert approvals.refusal(stage.vote(question))
        assert stage.ran(ident) == 0
    finally:
        stage.close()
