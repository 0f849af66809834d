"""A real gate that kills itself with SIGKILL at one step of a task's life.

``python -m tests.support.mortal_gate STEP ARGUMENTS...`` runs ``thoughtgate ARGUMENTS``.
The steps, in the order in which a task passes them:

- ``asked``: the question is stored, the task is not
- ``kept``: the task is stored, its caller has not heard of it
- ``decided``: a person has approved, the approval is not spent
- ``used``: the approval is spent, the task is not marked as running
- ``started``: the task is marked as running, the call is not sent
- ``ran``: the server has answered, the task is not marked as ended
- ``ended``: the task is marked as ended
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from thoughtgate.cli.entry import main
from thoughtgate.core.approval import Approval
from thoughtgate.core.task import COMPLETED, HELD, RUNNING, Task
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.tasks import TaskStore


def die() -> None:
    """End at once, with nothing tidied up."""
    os.kill(os.getpid(), signal.SIGKILL)


def mortal(step: str) -> None:
    """Put death at one step."""
    ask, use, save = ApprovalStore.ask, ApprovalStore.use, TaskStore.save

    def ask_and(self: ApprovalStore, asked: Approval, *more: Any) -> Any:
        answer = ask(self, asked, *more)
        if step == "asked" and asked.is_durable:
            die()
        return answer

    def use_and(self: ApprovalStore, *more: Any, **options: Any) -> Any:
        if step == "decided":
            die()
        answer = use(self, *more, **options)
        if step == "used":
            die()
        return answer

    def save_and(self: TaskStore, task: Task) -> bool:
        if step == "ran" and task.phase == COMPLETED:
            die()
        saved = save(self, task)
        if step == {HELD: "kept", RUNNING: "started", COMPLETED: "ended"}.get(task.phase):
            die()
        return saved

    patched: list[tuple[type, str, Callable[..., Any]]] = [
        (ApprovalStore, "ask", ask_and),
        (ApprovalStore, "use", use_and),
        (TaskStore, "save", save_and),
    ]
    for kind, name, function in patched:
        setattr(kind, name, function)


if __name__ == "__main__":
    mortal(sys.argv[1])
    sys.argv = ["thoughtgate", *sys.argv[2:]]
    sys.exit(main())
