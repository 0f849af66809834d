"""A small gate process, to be killed at any step of an approval's life.

``run STATE LOG DIE_AT OWNER``: asks about one call and, once it is approved, "runs" it by
adding a line to LOG. Prints each step it has passed and kills itself with SIGKILL right
after the one named DIE_AT. OWNER is ``-`` for a caller that is gone with the process, or a
task's id for one that will ask again.

``vote STATE ID BY yes|no`` and ``use STATE ID DIGEST``: wait for a line on stdin, then act
and print the outcome, so that several processes can be let go at one moment.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.approvals import a_store, held

from thoughtgate.core.approval import DURABLE, Approval, Vote
from thoughtgate.gate.approvals.queue import ApprovalQueue, new_approval_id
from thoughtgate.policy.redaction import Redactor
from thoughtgate.stores.process_owner import own_name

PATIENCE_S = 20.0


def run(state: str, log: str, die_at: str, task: str) -> None:
    """Ask, wait, spend, run."""
    desk = ApprovalQueue(
        a_store(state), {}, own_name(), Redactor(), new_approval_id, policy_version="v1"
    )
    call_id = f"run-{os.getpid()}.1"
    owner = DURABLE + task if task != "-" else ""
    decision = desk.ask(call_id, held(), "default", time.time(), owner=owner)
    _pass("asked", die_at)
    deadline = time.monotonic() + PATIENCE_S
    while decision is None:
        decision = next((each for _, each in desk.poll(time.time())), None)
        if decision is None:
            assert time.monotonic() < deadline, "nobody decided"
            time.sleep(0.01)
    _pass("decided", die_at)
    if not decision.approved or desk.use(call_id) is not None:
        _pass(f"refused {decision.kind} {decision.reason}", die_at)
        return
    _pass("used", die_at)
    with Path(log).open("a", encoding="utf-8") as effects:
        effects.write("deleted\n")
    _pass("ran", die_at)


def vote(state: str, ident: str, by: str, answer: str) -> None:
    """Vote when let go."""
    store = a_store(state)
    _pass("ready", "")
    sys.stdin.readline()
    now = time.time()
    counted = store.vote(ident, [Vote(by, answer == "yes", now)], now)
    _pass("counted" if isinstance(counted, Approval) else f"refused: {counted.text}", "")


def use(state: str, ident: str, digest: str) -> None:
    """Spend when let go."""
    store = a_store(state)
    _pass("ready", "")
    sys.stdin.readline()
    used = store.use(ident, digest, time.time())
    _pass("used" if isinstance(used, Approval) else "refused", "")


def _pass(step: str, die_at: str) -> None:
    sys.stdout.write(step + "\n")
    sys.stdout.flush()
    if step == die_at:
        os.kill(os.getpid(), signal.SIGKILL)


COMMANDS: dict[str, Callable[..., None]] = {"run": run, "vote": vote, "use": use}

if __name__ == "__main__":
    COMMANDS[sys.argv[1]](*sys.argv[2:])
