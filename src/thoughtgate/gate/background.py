"""Starts asyncio tasks and keeps references to them: the event loop keeps only weak ones."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

Result = TypeVar("Result")

_RUNNING: Final[set[asyncio.Task[Any]]] = set()
_log: Final = logging.getLogger("thoughtgate")


def spawn(work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
    """Start a task and keep it until it ends; an exception that nobody awaits is logged."""
    task = asyncio.get_running_loop().create_task(work)
    _RUNNING.add(task)
    task.add_done_callback(_ended)
    return task


def _ended(task: asyncio.Task[Any]) -> None:
    _RUNNING.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a task failed: %s", type(error).__name__, exc_info=error)


async def finish(*tasks: asyncio.Task[Any] | None) -> None:
    """Cancel tasks and wait until they have ended, with whatever result."""
    waiting = [task for task in tasks if task is not None and not task.done()]
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
