"""Asking at a real terminal: a pseudo-terminal with a person's typing at its other end."""

import contextlib
import os
import pty
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.approvals import CALL, a_desk, a_no, a_store, held
from tests.support.waiting import PATIENCE_S, wait_for

from thoughtgate.channels.terminal import identity
from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import PENDING, Approval
from thoughtgate.gate.approvals.started_by_agent import STARTED
from thoughtgate.gate.approvals.terminal_prompt import Asker, TerminalPrompt, owns_terminal
from thoughtgate.gate.running_gates import announce, describe_governed
from thoughtgate.process.ancestry import read_process
from thoughtgate.stores.approvals import ApprovalStore


class Person:
    """Sits at a terminal: reads what it shows, types lines."""

    def __init__(self) -> None:
        self._near, self._far = pty.openpty()
        self.path = os.ttyname(self._far)
        self.terminal = self._far
        self.seen = ""

    def sees(self, words: str) -> None:
        """Wait until the terminal has shown the words, and look no further back next time."""
        deadline = time.monotonic() + PATIENCE_S
        while words not in self.seen:
            assert time.monotonic() < deadline, self.seen
            if select.select([self._near], [], [], 0.1)[0]:
                self.seen += os.read(self._near, 65536).decode()
        self.seen = self.seen.partition(words)[2]

    def types(self, line: str) -> None:
        os.write(self._near, line.encode())

    def close(self) -> None:
        for descriptor in (self._near, self._far):
            with contextlib.suppress(OSError):
                os.close(descriptor)


@pytest.fixture
def person() -> Iterator[Person]:
    made = Person()
    yield made
    made.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ApprovalStore]:
    opened = a_store(tmp_path)
    yield opened
    opened.close()


@contextlib.contextmanager
def asking(directory: Path, person: Person) -> Iterator[None]:
    """Let an asker run at the person's terminal, as ``approvals watch`` does."""
    over = threading.Event()
    own = a_store(directory)
    asker = Asker(own, person.terminal, person.terminal)
    thread = threading.Thread(target=asker.run, args=(over.is_set,))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PATIENCE_S)
        own.close()
        assert not thread.is_alive()


def ask(store: ApprovalStore, number: int = 1, *, required: int = 1, timeout_s: float = 300) -> str:
    workflow = WorkflowSettings("default", required=required, timeout_s=timeout_s)
    desk = a_desk(store, {"default": workflow})
    call = CALL._replace(name=f"delete_{number}")
    before = {each.id for each in store.listed()}
    assert desk.ask(f"run.{number}", held(call), "default", time.time()) is None
    (made,) = {each.id for each in store.listed()} - before
    return made


def status(store: ApprovalStore, ident: str) -> str:
    found = store.get(ident)
    assert isinstance(found, Approval)
    return found.status


def test_a_person_says_yes(store: ApprovalStore, tmp_path: Path, person: Person) -> None:
    with asking(tmp_path, person):
        ident = ask(store)
        person.sees("\a")
        person.sees("delete_1 on files")
        person.sees("press Enter: ")
        person.types("y looks right\n")
        person.sees("Approved.")
    found = store.get(ident)
    assert isinstance(found, Approval)
    assert found.status == "approved"
    assert found.decider is not None
    assert (found.decider.by, found.decider.reason) == (identity(), "looks right")


def test_a_person_says_no_and_why(store: ApprovalStore, tmp_path: Path, person: Person) -> None:
    with asking(tmp_path, person):
        ident = ask(store)
        person.sees("press Enter: ")
        person.types("what?\n")
        person.sees("press Enter: ")
        person.types("n not on a Friday\n")
        person.sees("Denied.")
    assert status(store, ident) == "denied"


def test_an_answer_can_be_remembered_for_the_session(
    store: ApprovalStore, tmp_path: Path, person: Person
) -> None:
    with asking(tmp_path, person):
        ask(store)
        person.sees("press Enter: ")
        person.types("t\n")
        person.sees("Approved.")
    (grant,) = store.grants(time.time())
    assert (grant.scope, grant.lifetime, grant.session) == ("tool", "session", "run/s1")


def test_a_question_put_off_comes_back_after_the_others(
    store: ApprovalStore, tmp_path: Path, person: Person
) -> None:
    one, two = ask(store, 1), ask(store, 2)
    with asking(tmp_path, person):
        person.sees("delete_1 on")
        person.sees("press Enter: ")
        person.types("l\n")
        person.sees("delete_2 on")
        person.sees("press Enter: ")
        person.types("later\n")
        person.sees("delete_1 on")
        person.sees("press Enter: ")
        person.types("n\n")
        person.sees("Denied.")
    assert (status(store, one), status(store, two)) == ("denied", "pending")


def test_a_question_answered_elsewhere_goes_away(
    store: ApprovalStore, tmp_path: Path, person: Person
) -> None:
    with asking(tmp_path, person):
        ident = ask(store)
        person.sees("press Enter: ")
        store.vote(ident, [a_no(at=time.time())], time.time())
        person.sees(f"{ident}: denied elsewhere.")


def test_a_question_that_times_out_goes_away(
    store: ApprovalStore, tmp_path: Path, person: Person
) -> None:
    with asking(tmp_path, person):
        ident = ask(store, timeout_s=0.5)
        person.sees(f"{ident}: expired elsewhere.")


def test_one_of_two_people_is_counted_and_asked_no_more(
    store: ApprovalStore, tmp_path: Path, person: Person
) -> None:
    ident = ask(store, required=2)
    with asking(tmp_path, person):
        person.sees("press Enter: ")
        person.types("y\n")
        person.sees("Counted: 1 of 2")
        ask(store, 2)
        person.sees("delete_2 on")
    assert status(store, ident) == "pending"


def test_what_cannot_be_done_is_said(store: ApprovalStore, tmp_path: Path, person: Person) -> None:
    ident = ask(store, required=2)
    with asking(tmp_path, person):
        person.sees("press Enter: ")
        person.types("s\n")
        person.sees("Not done: default asks 2 people each time")
    assert status(store, ident) == "pending"


def test_keys_typed_before_the_question_are_no_answer(
    store: ApprovalStore, tmp_path: Path, person: Person
) -> None:
    person.types("y\n")
    ident = ask(store)
    with asking(tmp_path, person):
        person.sees("press Enter: ")
        person.types("n\n")
        person.sees("Denied.")
    assert status(store, ident) == "denied"


def test_a_terminal_that_goes_away_ends_the_asking(store: ApprovalStore, tmp_path: Path) -> None:
    ask(store)
    read, write = os.pipe()
    os.close(write)
    near, screen = pty.openpty()
    own = a_store(tmp_path)
    Asker(own, read, screen).run(lambda: False)
    own.close()
    for descriptor in (read, near, screen):
        os.close(descriptor)


# The gate's own prompt.


def test_a_gate_asks_about_its_own_terminal_workflows_only(
    store: ApprovalStore, tmp_path: Path, person: Person
) -> None:
    prompt = TerminalPrompt(str(tmp_path), path=person.path, owns=lambda _: True)
    assert prompt.start()
    workflows = {
        "here": WorkflowSettings("here", channel="terminal"),
        "default": WorkflowSettings("default", channel="slack"),
    }
    desk = a_desk(store, workflows, channels=(prompt,))
    now = time.time()
    desk.ask("run.1", held(CALL._replace(name="not_here")), "default", now)
    desk.ask("run.2", held(CALL._replace(name="right_here")), "here", now)
    person.sees("right_here on files")
    person.sees("press Enter: ")
    person.types("y\n")
    person.sees("Approved.")
    decided = wait_for(lambda: desk.poll(time.time()))
    assert [(call_id, decision.approved) for call_id, decision in decided] == [("run.2", True)]
    assert desk.use("run.2") is None
    prompt.stop()
    assert "not_here" not in person.seen


@pytest.mark.promise("agent-cannot-approve")
def test_an_agent_answers_nothing_at_the_terminal_of_a_gate_that_it_started(
    store: ApprovalStore, tmp_path: Path, person: Person
) -> None:
    presence = announce(str(tmp_path), "wrap", **describe_governed(read_process(os.getppid())))
    assert presence is not None
    prompt = TerminalPrompt(str(tmp_path), path=person.path, owns=lambda _: True)
    assert prompt.start()
    desk = a_desk(store, {"default": WorkflowSettings("default")}, channels=(prompt,))
    desk.ask("run.1", held(CALL), "default", time.time())
    person.sees("press Enter: ")
    person.types("y\n")
    person.sees(f"Not done: {STARTED}")
    assert [(one.status, one.votes) for one in store.listed()] == [(PENDING, ())]
    prompt.stop()
    presence.withdraw()


def test_a_gate_without_a_terminal_of_its_own_does_not_ask(tmp_path: Path, person: Person) -> None:
    assert not TerminalPrompt(str(tmp_path), path=str(tmp_path / "none")).start()
    assert not TerminalPrompt(str(tmp_path), path=person.path).start()
    idle = TerminalPrompt(str(tmp_path), path=person.path)
    idle.stop()


def test_a_store_that_cannot_be_opened_ends_the_prompt_and_not_the_gate(
    tmp_path: Path, person: Person
) -> None:
    (tmp_path / "file").touch()
    prompt = TerminalPrompt(str(tmp_path / "file"), path=person.path, owns=lambda _: True)
    assert prompt.start()
    prompt.stop()


_OWNS = """
import os, sys
from thoughtgate.gate.approvals.terminal_prompt import owns_terminal
terminal = os.open("/dev/tty", os.O_RDWR)
print("leader", owns_terminal(terminal), flush=True)
if os.fork() == 0:
    print("child", owns_terminal(terminal), flush=True)
    os._exit(0)
os.wait()
"""


def test_only_the_process_that_leads_the_foreground_owns_the_terminal(person: Person) -> None:
    wrapper = "import pty, sys; pty.spawn([sys.executable, '-c', sys.argv[1]])"
    done = subprocess.run(
        [sys.executable, "-c", wrapper, _OWNS],
        stdin=person.terminal,
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.stdout.split() == ["leader", "True", "child", "False"]


def test_a_file_is_no_terminal(tmp_path: Path) -> None:
    with (tmp_path / "x").open("w") as file:
        assert not owns_terminal(file.fileno())


@pytest.mark.promise("approver-sees-every-character")
def test_the_whole_call_can_be_read_at_the_prompt(
    tmp_path: Path, store: ApprovalStore, person: Person
) -> None:
    desk = a_desk(store)
    text = "x" * 70_000 + "\u3164 the end"
    call = CALL._replace(arguments={"text": text})
    assert desk.ask("run.1", held(call), "default", time.time()) is None
    with asking(tmp_path, person):
        person.sees("press Enter: ")
        person.types("w\n")
        person.sees("[U+3164] the end")
        person.sees("press Enter: ")
        person.types("y\n")
        person.sees("Approved.")
