"""Tasks that are not forgotten."""

import asyncio
import logging

import pytest
from tests.support.waiting import run_async

from thoughtgate.gate.background import finish, spawn


def test_a_spawned_task_runs_and_gives_its_result() -> None:
    async def work() -> int:
        return 5

    async def main() -> int:
        return await spawn(work())

    assert run_async(main()) == 5


def test_what_a_task_raises_unseen_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        raise ValueError("no")

    async def main() -> None:
        task = spawn(work())
        await asyncio.wait([task])

    logger = logging.getLogger("thoughtgate")
    logger.addHandler(caplog.handler)
    try:
        run_async(main())
    finally:
        logger.removeHandler(caplog.handler)

    assert "ValueError" in caplog.text


def test_finished_tasks_have_ended_whatever_they_end_with() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("not so") from None

    async def main() -> list[bool]:
        tasks = [asyncio.ensure_future(stubborn()), asyncio.ensure_future(asyncio.sleep(60))]
        await asyncio.sleep(0)
        await finish(*tasks, None)
        return [task.done() for task in tasks]

    assert run_async(main()) == [True, True]
