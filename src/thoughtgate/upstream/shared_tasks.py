"""The owners of the tasks of a server that agents share.

To a stdio server, and often to one over HTTP, all agents are one client, so it would list, return
and cancel the tasks of one agent for every other. The gate therefore remembers which agent was given
which task id, and lets no other agent use it.
"""

import json
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple
from weakref import ReferenceType, ref

from thoughtgate.errors import StoreError
from thoughtgate.gate.clock import now
from thoughtgate.gate.session_driver import SessionDriver
from thoughtgate.stores.server_tasks import ServerTaskStore
from thoughtgate.wire.methods import LISTEN, TASK_METHODS, TASKS_LIST
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
        return all(
            ident is not None
            and (owner := self._owners.get(ident)) is not None
            and owner.principal == driver.principal
            for ident in _named_tasks(method, params)
        )

    def answered(self, driver: SessionDriver, method: str, result: Any) -> Any:
        """Return a result as its agent may see it, and remember the task that it creates."""
        if type(result) is not dict:
            return result
        if method == TASKS_LIST:
            listed = result.get("tasks")
            tasks = listed if type(listed) is list else []
            return {**result, "tasks": [one for one in tasks if self._is_own(driver, one)]}
        if method not in TASK_METHODS:
            for ident in _made_tasks(result):
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


class StoredTasks:
    """The owners of the tasks of a server over HTTP, for every gate that shares the store."""

    def __init__(self, store: ServerTaskStore, server: str) -> None:
        self._store = store
        self._server = server

    def may_use(self, principal: str, method: str, params: dict[str, Any]) -> bool:
        """Tell whether a principal may send a request: not if it names another's task."""
        named = _named_tasks(method, params)
        return not named or set(named) <= self._own(principal, named)

    def answered(self, principal: str, answer: bytes) -> None:
        """Remember the task that an answer creates, before its caller learns the id."""
        try:
            result = json.loads(answer).get("result")
        except (ValueError, AttributeError):
            return
        # A task that cannot be remembered cannot be used either.
        with suppress(StoreError):
            for ident in _made_tasks(result) if type(result) is dict else ():
                at = now()
                if self._store.owner(self._server, ident, at) is None:
                    self._store.add(self._server, ident, principal, at)

    def listed(self, principal: str, answer: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request for a list with the tasks of a principal alone."""
        result = answer.get("result")
        listed = result.get("tasks") if type(result) is dict else None
        if type(result) is not dict or type(listed) is not list:
            return answer
        idents = [one.get("taskId") if type(one) is dict else None for one in listed]
        own = self._own(principal, idents)
        kept = [one for one, ident in zip(listed, idents, strict=True) if _in(ident, own)]
        return {**answer, "result": {**result, "tasks": kept}}

    def _own(self, principal: str, idents: Iterable[Any]) -> set[str]:
        """Return those of the ids that are tasks of a principal, with few queries for many ids."""
        with suppress(StoreError):
            named = [one for one in idents if type(one) is str]
            found = self._store.owners(self._server, named, now())
            return {ident for ident, owner in found.items() if owner == principal}
        return set()


def _in(ident: Any, idents: set[str]) -> bool:
    return type(ident) is str and ident in idents


def _named_tasks(method: str, params: dict[str, Any]) -> list[str | None]:
    """Return the ids of the tasks that a request uses; None for what is no id."""
    if method == LISTEN:
        # MCP 2026-07-28, tasks: a subscription may name tasks to hear of.
        wanted = params.get("notifications")
        named = wanted.get("taskIds", []) if type(wanted) is dict else []
        named = named if type(named) is list else [named]
    else:
        is_one = method in TASK_METHODS and method != TASKS_LIST
        named = [params.get("taskId")] if is_one else []
    meta = params.get(META)
    if type(meta) is dict and RELATED in meta:
        # Any request may say that it is part of a task, which servers then change and answer.
        about = meta[RELATED]
        is_plain = type(about) is dict and about.keys() == {"taskId"}
        named = [*named, about["taskId"] if is_plain else None]
    return [one if type(one) is str else None for one in named]


def _made_tasks(result: dict[str, Any]) -> list[str]:
    """Return the ids of the tasks that a result shows, in both forms."""
    places = (result, result.get("task"))
    idents = [place.get("taskId") for place in places if type(place) is dict]
    return [ident for ident in idents if type(ident) is str]
