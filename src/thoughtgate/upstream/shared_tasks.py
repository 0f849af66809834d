"""The owners of the tasks of a shared stdio server.

To the server, all agents are one client, so it would list, return and cancel the tasks of one agent
for every other. The gate therefore remembers which agent was given which task id, and lets no other
agent use it.
"""

from collections import OrderedDict
from typing import Any, Final, NamedTuple
from weakref import ReferenceType, ref

from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.wire.methods import TASK_METHODS, TASKS_LIST
from thoughtgate.wire.revisions import META

MAX_TASKS: Final = 10_000
"""Maximum tasks that are remembered per server. The oldest are forgotten, and cannot be used then."""

RELATED: Final = "io.modelcontextprotocol/related-task"
"""The member of ``_meta`` that names the task which a message is about (2025-11-25)."""


class _Owner(NamedTuple):
    principal: str
    driver: ReferenceType[SessionDriver]


class SharedTasks:
    """The tasks of one process, by id."""

    def __init__(self, limit: int = MAX_TASKS) -> None:
        self._limit = limit
        self._owners: OrderedDict[str, _Owner] = OrderedDict()

    def may_use(self, driver: SessionDriver, method: str, params: dict[str, Any]) -> bool:
        """Tell whether an agent may send a request: not if it names another principal's task."""
        if method not in TASK_METHODS or method == TASKS_LIST:
            return True
        ident = params.get("taskId")
        owner = self._owners.get(ident) if type(ident) is str else None
        return owner is not None and owner.principal == driver.principal

    def answered(self, driver: SessionDriver, method: str, result: Any) -> Any:
        """Return a result as its agent may see it, and remember the task that it creates."""
        if type(result) is not dict:
            return result
        if method == TASKS_LIST:
            listed = result.get("tasks")
            tasks = listed if type(listed) is list else []
            return {**result, "tasks": [one for one in tasks if self._is_own(driver, one)]}
        if method not in TASK_METHODS:
            for place in (result, result.get("task")):
                ident = place.get("taskId") if type(place) is dict else None
                if type(ident) is str:
                    self._remember(ident, driver)
        return result

    def concerns(self, driver: SessionDriver, params: dict[str, Any]) -> bool | None:
        """Tell whether a notification is about a task of this session; None if about no task."""
        meta = params.get(META)
        related = meta.get(RELATED) if type(meta) is dict else None
        named = [one for one in (params, related) if type(one) is dict and "taskId" in one]
        return all(self._is_own(driver, one) for one in named) if named else None

    def _remember(self, ident: str, driver: SessionDriver) -> None:
        # The first owner stays: a server must not hand a task over by returning its id again.
        if ident not in self._owners:
            self._owners[ident] = _Owner(driver.principal, ref(driver))
            if len(self._owners) > self._limit:
                self._owners.popitem(last=False)

    def _is_own(self, driver: SessionDriver, task: Any) -> bool:
        ident = task.get("taskId") if type(task) is dict else None
        owner = self._owners.get(ident) if type(ident) is str else None
        return owner is not None and owner.driver() is driver
