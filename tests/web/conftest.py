"""What the tests of the console share: a store with questions, a console."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.approvals import a_desk, a_store
from tests.support.consoles import Client, LocalConsole

from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import Decision
from thoughtgate.core.open_calls import OpenCall
from thoughtgate.gate.approvals.queue import ApprovalQueue
from thoughtgate.policy.call import APPROVE, Call, Verdict
from thoughtgate.stores.approvals import ApprovalStore

WORKFLOWS = {
    "default": WorkflowSettings("default"),
    "two": WorkflowSettings("two", required=2),
    "bob": WorkflowSettings("bob", approvers=("terminal:bob",)),
    "soon": WorkflowSettings("soon", timeout_s=1.0),
    "never": WorkflowSettings("never", remember=False),
    "signed_in": WorkflowSettings(
        "signed_in",
        approvers=("group:sre", "user:bob@example.org", "console:cas@example.org"),
    ),
}


class Gate:
    """A gate that holds calls, as the console sees one: through the store."""

    def __init__(self, store: ApprovalStore, owner: str = "", ids: str = "a") -> None:
        self.store = store
        self.approvals: ApprovalQueue = a_desk(store, WORKFLOWS, owner=owner, ids=ids)
        self._calls = 0

    def hold(
        self,
        tool: str = "delete_file",
        arguments: dict[str, object] | None = None,
        workflow: str = "default",
        extra: dict[str, object] | None = None,
        client: str = "",
    ) -> str:
        """Hold a call and return the id of its approval."""
        assert self.ask(tool, arguments, workflow, extra, client) is None
        return str(self.approvals.facts(f"run.{self._calls}")["approval_id"])

    def ask(
        self,
        tool: str = "delete_file",
        arguments: dict[str, object] | None = None,
        workflow: str = "default",
        extra: dict[str, object] | None = None,
        client: str = "",
    ) -> Decision | None:
        """Ask for a call, and return the decision if there is one at once."""
        self._calls += 1
        call_id = f"run.{self._calls}"
        arguments = arguments or {"path": f"/tmp/{self._calls}"}
        call = Call("files", "tool", tool, arguments, session="s1", extra=extra, definition="d1")
        verdict = Verdict(APPROVE, "rules", reason="it deletes", rule="rules[0]", workflow=workflow)
        return self.approvals.ask(
            call_id, OpenCall(call, verdict, time.time(), client=client), workflow, time.time()
        )

    def decided(self) -> dict[str, bool]:
        """Return what was decided since the last look: yes or no, by call id."""
        return {call_id: one.approved for call_id, one in self.approvals.poll(time.time())}


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    store = a_store(tmp_path)
    yield Gate(store)
    store.close()


@pytest.fixture
def console(tmp_path: Path, gate: Gate) -> Iterator[LocalConsole]:
    del gate
    with LocalConsole(tmp_path) as served:
        yield served


@pytest.fixture
def client(console: LocalConsole) -> Client:
    return console.client()
