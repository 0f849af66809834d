"""The approval queue offers what a governor needs."""

import inspect

from thoughtgate.gate.approvals.interface import Approvals
from thoughtgate.gate.approvals.queue import ApprovalQueue


def test_the_queue_takes_the_arguments_of_every_operation() -> None:
    operations = {name: one for name, one in vars(Approvals).items() if not name.startswith("_")}
    assert operations
    for name, operation in operations.items():
        wanted = inspect.signature(operation).parameters
        offered = inspect.signature(getattr(ApprovalQueue, name)).parameters
        assert list(wanted) == list(offered)[: len(wanted)], name
