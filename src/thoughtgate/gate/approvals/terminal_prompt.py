"""Approval prompts in a terminal: one request at a time, answered with a typed line.

``Asker`` serves ``approvals watch`` on the command's own terminal. ``TerminalPrompt`` is the
thread of a gate that owns a terminal; it opens the terminal by its own name and never uses stdin
or stdout, which may carry MCP. Votes go to the store as from every other channel.
"""

import contextlib
import os
import select
import sys
import termios
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from thoughtgate.channels.terminal import (
    CHOICES,
    identity,
    parse_answer,
    render_question,
    render_whole,
)
from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import PENDING, Approval, Refusal, Vote
from thoughtgate.errors import StoreError, visible
from thoughtgate.gate.approvals.queue import new_approval_id, open_store
from thoughtgate.gate.approvals.started_by_agent import find_agent_reason
from thoughtgate.policy.policy import DEFAULT_WORKFLOW
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.open_database import StoreLocation

LOOK_EVERY_S: Final = 0.25
"""How soon a request that was decided elsewhere disappears; a poll costs microseconds."""

MAX_LINE: Final = 4096
"""Bytes of one typed line; the kernel's own limit for a line."""

STOP_WITHIN_S: Final = 5.0
"""The thread checks at least every ``LOOK_EVERY_S``; longer means a blocked terminal."""

TERMINAL: Final = "/dev/tty"

BELL: Final = "\a"
"""For people who do not look at the terminal while they wait for requests."""

ANSWERED_HERE: Final = frozenset({"terminal", "console"})
"""Channels whose requests a terminal may decide: those for the user of this machine."""


class Asker:
    """Shows pending approval requests to the person at one terminal."""

    def __init__(
        self,
        store: ApprovalStore,
        keys: int,
        screen: int,
        *,
        wanted: Callable[[Approval], bool] = lambda _: True,
        wake: int | None = None,
        why_not: Callable[[], str] = str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Read from the descriptor ``keys``, write to ``screen``; ``wake`` ends a wait early.

        ``why_not`` returns why nobody may answer at this terminal; empty if somebody may.
        """
        self._store = store
        self._keys = keys
        self._screen = screen
        self._wanted = wanted
        self._wake = wake
        self._why_not = why_not
        self._clock = clock
        self._later: set[str] = set()
        """Postponed until all other requests were shown."""
        self._done: set[str] = set()
        """Still pending, but this person has voted."""
        self._by = identity()

    def run(self, is_over: Callable[[], bool]) -> None:
        """Show requests until told to stop or until the terminal is closed."""
        while not is_over():
            question = self._next()
            if question is None:
                self._wait(self._wake, LOOK_EVERY_S)
            elif not self._ask(question, is_over):
                return

    def _next(self) -> Approval | None:
        if self._store.has_due(self._clock()):
            self._store.settle_due(self._clock())
        waiting = [each for each in self._store.listed(PENDING) if self._wanted(each)]
        waiting = [each for each in waiting if each.id not in self._done]
        # Everything was postponed: start again with the first.
        if len(waiting) > 1 and self._later.issuperset(each.id for each in waiting):
            self._later.clear()
        return next((each for each in waiting if each.id not in self._later), None)

    def _ask(self, question: Approval, is_over: Callable[[], bool]) -> bool:
        """Show one request and wait until it is closed; False if the terminal is closed."""
        # Input typed before the request was shown must not decide it.
        with contextlib.suppress(termios.error):
            termios.tcflush(self._keys, termios.TCIFLUSH)
        self._say(f"{BELL}\n{render_question(question, self._clock())}{CHOICES}")
        typed = b""
        while not is_over():
            if self._is_settled(question):
                return True
            if not self._wait(self._keys, LOOK_EVERY_S):
                continue
            read = os.read(self._keys, MAX_LINE)
            if not read:
                return False
            typed = (typed + read)[-MAX_LINE:]
            if b"\n" in typed:
                line = typed.partition(b"\n")[0].decode("utf-8", "replace")
                if self._answered(question, line):
                    return True
                typed = b""
        return True

    def _answered(self, question: Approval, line: str) -> bool:
        """Handle a typed line; True if this request needs no further input here."""
        if line.strip().lower() in {"l", "later"}:
            self._later.add(question.id)
            return True
        if line.strip().lower() in {"w", "whole"}:
            self._say(render_question(question, self._clock(), whole=True))
            if question.folded:
                for text in render_whole(self._store.whole_arguments(question)):
                    self._say(text)
            self._say(CHOICES)
            return False
        answer = parse_answer(line)
        if answer is None:
            if line.strip():
                self._say(f"{visible(line.strip())} is not one of the answers:\n")
            self._say(CHOICES)
            return False
        # Checked for each answer: an agent may have opened the terminal before it was governed.
        if refused := self._why_not():
            self._say(f"Not done: {refused}\n")
            self._done.add(question.id)
            return True
        now = self._clock()
        counted = self._store.vote(
            question.id,
            [Vote(self._by, answer.approve, now, answer.reason)],
            now,
            remember=answer.remember,
            grant_id=new_approval_id(),
            digest=question.digest,
        )
        if isinstance(counted, Refusal):
            self._say(f"Not done: {counted.text}\n")
            self._done.add(question.id)
        elif counted.status == PENDING:
            self._say(
                f"Counted: {len(counted.votes)} of {counted.required} people have approved.\n"
            )
            self._done.add(question.id)
        else:
            self._say(f"{counted.status.capitalize()}.\n")
        return True

    def _is_settled(self, question: Approval) -> bool:
        if not self._store.changed() and self._clock() < question.expires_at:
            return False
        if self._store.has_due(self._clock()):
            self._store.settle_due(self._clock())
        found = self._store.get(question.id)
        if isinstance(found, Approval) and found.status == PENDING:
            return False
        status = found.status if isinstance(found, Approval) else "gone"
        self._say(f"\n{question.id}: {status} elsewhere.\n")
        return True

    def _wait(self, descriptor: int | None, timeout_s: float) -> bool:
        watched = [each for each in {descriptor, self._wake} if each is not None]
        if not watched:
            time.sleep(timeout_s)
            return False
        ready, _, _ = select.select(watched, [], [], timeout_s)
        return descriptor in ready

    def _say(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._screen, data) :]


class TerminalPrompt:
    """The prompt of a gate: a channel in the terminal from which the gate was started."""

    name = "terminal"

    def __init__(
        self,
        location: StoreLocation | str,
        *,
        path: str = TERMINAL,
        owns: Callable[[int], bool] | None = None,
    ) -> None:
        """Show the approval requests of a store at the terminal at ``path``."""
        self._location = location
        self._state = location if isinstance(location, str) else str(location.directory)
        self._path = path
        self._owns = owns or owns_terminal
        self._asked: set[str] = set()
        self._is_over = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._thread = threading.Thread(target=self._run, name="terminal-prompt", daemon=True)

    def start(self) -> bool:
        """Start the thread, if there is a terminal that this process may use."""
        try:
            terminal = os.open(self._path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return False
        if not self._owns(terminal):
            os.close(terminal)
            return False
        self._terminal = terminal
        self._thread.start()
        return True

    def show_request(self, approval: Approval) -> None:
        """Show a request if its workflow uses the terminal."""
        if approval.channel in ANSWERED_HERE:
            self._asked.add(approval.id)
            self._nudge()

    def show_outcome(self, approval: Approval) -> None:
        """Do nothing: the thread sees the outcome in the store."""
        self._asked.discard(approval.id)

    def stop(self) -> None:
        """Stop the thread; returns when the terminal is closed."""
        self._is_over = True
        self._nudge()
        if self._thread.is_alive():
            self._thread.join(timeout=STOP_WITHIN_S)

    def _nudge(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake_write, b".")

    def _run(self) -> None:
        try:
            with contextlib.closing(open_store(self._location)) as store:
                asker = Asker(
                    store,
                    self._terminal,
                    self._terminal,
                    wanted=lambda each: each.id in self._asked,
                    wake=self._wake_read,
                    why_not=partial(find_agent_reason, os.environ, self._state),
                )
                asker.run(self._must_stop)
        except (OSError, StoreError):
            # The terminal or the store is gone: requests can be decided elsewhere.
            return
        finally:
            os.close(self._terminal)

    def _must_stop(self) -> bool:
        # Emptied here, because the pipe would otherwise wake every wait.
        with contextlib.suppress(BlockingIOError):
            if select.select([self._wake_read], [], [], 0)[0]:
                os.read(self._wake_read, MAX_LINE)
        return self._is_over


def open_prompt(
    location: StoreLocation | str, workflows: Mapping[str, WorkflowSettings]
) -> TerminalPrompt | None:
    """Start the prompt of a gate that a person runs in a terminal; None if it would not be used.

    Never for a gate on stdio, whose terminal is the agent's.
    """
    named = {workflow.channel for workflow in workflows.values()}
    if DEFAULT_WORKFLOW not in workflows:
        named.add(WorkflowSettings(DEFAULT_WORKFLOW).channel)
    if not named & ANSWERED_HERE or not sys.stderr.isatty():
        return None
    prompt = TerminalPrompt(location)
    return prompt if prompt.start() else None


def owns_terminal(terminal: int) -> bool:
    """Tell whether this process was started from the terminal itself, in the foreground.

    A process that an agent started shares the agent's terminal but does not lead its
    foreground process group; reading there would take the agent's input.
    """
    try:
        return os.tcgetpgrp(terminal) == os.getpid()
    except OSError:
        return False
