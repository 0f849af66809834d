"""A thread that carries questions to a place on the network, and the answers back.

The gate only puts questions into a queue, so a place that is down, slow or full of errors
holds up nobody: the call waits until its own time is over. Answers go to the store like
everybody's. What is said to the place, and how an answer looks there, is its errand's
business.
"""

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from thoughtgate.core.approval import PENDING, Approval, Refusal, Vote
from thoughtgate.errors import StoreError

RETRY_S: Final = 1.0
"""First pause after a failure; it doubles."""
MAX_RETRY_S: Final = 60.0
MAX_WAIT_S: Final = 600.0
"""The longest a place may make us wait with one answer."""
SLOWER: Final = 1.3
"""How much longer the pause gets with each look that brings nothing."""
SLOWEST: Final = 6.0
"""The longest pause between looks, in first pauses: people are slow, but they wait for us."""
IDLE_S: Final = 30.0
"""How long the thread sleeps when there is nothing to do; news wakes it."""
STOP_WITHIN_S: Final = 2.0
"""How long a gate that stops waits until its questions are marked as withdrawn."""
MAX_SETTLE_TRIES: Final = 5
"""An outcome that cannot be shown so often is not shown."""


class Trouble(Exception):  # noqa: N818 - the place's trouble, not a fault of the program
    """The place did not take it, for now."""

    def __init__(self, reason: str, retry_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class Gone(Exception):  # noqa: N818 - as above
    """What was shown there is there no more; nobody can answer it."""


class Errand(Protocol):
    """How one workflow's place is spoken to. May take seconds, raises ``Trouble`` or ``Gone``."""

    poll_s: float
    """The first pause between looks."""

    def ask(self, approval: Approval) -> str:
        """Put a question and return a handle for it."""

    def look(self, approval: Approval, handle: str) -> Sequence[Vote]:
        """Return the answers there are now."""

    def settle(self, approval: Approval, handle: str) -> None:
        """Show how the question ended."""


class Ballot(Protocol):
    """The store, as a courier uses it."""

    def get(self, ident: str) -> Approval | Refusal:
        """Return a question."""

    def vote(self, ident: str, votes: Sequence[Vote], now: float) -> Approval | Refusal:
        """Count the votes of one look."""

    def keep_handle(self, ident: str, channel: str, handle: str) -> None:
        """Remember a handle."""

    def handle(self, ident: str, channel: str) -> str:
        """Return a handle that was remembered."""


@dataclass(slots=True)
class _Item:
    approval: Approval
    handle: str = ""
    due_at: float = 0.0
    failures: int = 0
    quiet: int = 0
    is_settled: bool = False
    seen: frozenset[tuple[str, bool]] = frozenset()
    """Answers that were counted or refused already."""


class Courier:
    """A channel with a thread of its own; the thread starts with the first question."""

    def __init__(
        self,
        name: str,
        errands: Mapping[str, Errand],
        open_ballot: Callable[[], AbstractContextManager[Ballot]],
        say: Callable[[str], None],
    ) -> None:
        """Serve the workflows in ``errands``; tell the operator of trouble with ``say``."""
        self.name = name
        self._errands = errands
        self._open_ballot = open_ballot
        self._say = say
        self._news: queue.SimpleQueue[Approval | None] = queue.SimpleQueue()
        self._items: dict[str, _Item] = {}
        self._paused: dict[str, float] = {}
        """Workflows whose place asked for patience, and until when."""
        self._thread: threading.Thread | None = None
        self._is_over = False

    def asked(self, approval: Approval) -> None:
        """Carry a question, if its workflow asks here."""
        if approval.channel != self.name or approval.workflow not in self._errands:
            return
        self._news.put(approval)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()

    def settled(self, approval: Approval) -> None:
        """Show how a question ended."""
        if self._thread is not None and approval.channel == self.name:
            self._news.put(approval)

    def stop(self) -> None:
        """Show what is still to be shown, for a moment, and end."""
        self._is_over = True
        if self._thread is not None:
            self._news.put(None)
            self._thread.join(STOP_WITHIN_S)

    def _run(self) -> None:
        try:
            with self._open_ballot() as ballot:
                while not self._is_done():
                    self._take_news()
                    for item in list(self._items.values()):
                        if item.due_at <= time.monotonic():
                            self._serve(ballot, item)
        except StoreError as error:
            # Questions can still be answered elsewhere, and end by their own time.
            self._say(f"{self.name}: {error}")

    def _is_done(self) -> bool:
        waiting = any(item.is_settled for item in self._items.values()) or not self._news.empty()
        return self._is_over and not waiting

    def _take_news(self) -> None:
        due = min((item.due_at for item in self._items.values()), default=time.monotonic() + IDLE_S)
        timeout = max(0.0, min(IDLE_S, due - time.monotonic()))
        try:
            told = self._news.get(timeout=timeout)
            while True:
                self._take(told)
                told = self._news.get_nowait()
        except queue.Empty:
            return

    def _take(self, told: Approval | None) -> None:
        if told is None:
            return
        item = self._items.get(told.id)
        if item is None:
            if told.status == PENDING:
                self._items[told.id] = _Item(told)
            return
        item.approval = told
        if told.status != PENDING:
            item.is_settled, item.due_at, item.failures = True, 0.0, 0

    def _serve(self, ballot: Ballot, item: _Item) -> None:
        workflow = item.approval.workflow
        paused = self._paused.get(workflow, 0.0)
        if paused > time.monotonic():
            item.due_at = paused
            return
        try:
            self._step(ballot, item, self._errands[workflow])
        except Trouble as trouble:
            self._put_off(item, trouble)
        except Gone:
            self._say(f"{self.name}: the message about {item.approval.id} is gone")
            self._items.pop(item.approval.id, None)
        except StoreError:
            item.due_at = time.monotonic() + RETRY_S
        except Exception as error:  # noqa: BLE001 - one question's trouble must not end the thread for all
            self._put_off(item, Trouble(f"{type(error).__name__} while asking"))

    def _step(self, ballot: Ballot, item: _Item, errand: Errand) -> None:
        asked = item.approval
        if item.is_settled:
            if item.handle:
                errand.settle(asked, item.handle)
            del self._items[asked.id]
            return
        if not item.handle:
            # A gate that was started again finds the message that it had sent before.
            item.handle = ballot.handle(asked.id, self.name)
        if not item.handle:
            item.handle = errand.ask(asked)
            ballot.keep_handle(asked.id, self.name, item.handle)
        self._count(ballot, item, errand.look(asked, item.handle))
        item.failures = 0
        pause = min(errand.poll_s * SLOWER**item.quiet, errand.poll_s * SLOWEST)
        item.quiet += 1
        item.due_at = time.monotonic() + pause
        if time.time() > asked.expires_at + MAX_RETRY_S:
            # Whoever asked is gone without a word.
            item.is_settled = True

    def _count(self, ballot: Ballot, item: _Item, votes: Sequence[Vote]) -> None:
        fresh = [vote for vote in votes if (vote.by, vote.approve) not in item.seen]
        if not fresh:
            return
        item.quiet = 0
        counted = ballot.vote(item.approval.id, fresh, time.time())
        item.seen |= {(vote.by, vote.approve) for vote in fresh}
        if isinstance(counted, Refusal):
            self._say(
                f"{self.name}: an answer to {item.approval.id} does not count: {counted.text}"
            )

    def _put_off(self, item: _Item, trouble: Trouble) -> None:
        item.failures += 1
        pause = trouble.retry_after_s or min(RETRY_S * 2 ** (item.failures - 1), MAX_RETRY_S)
        item.due_at = time.monotonic() + min(pause, MAX_WAIT_S)
        if trouble.retry_after_s:
            self._paused[item.approval.workflow] = item.due_at
        if item.failures == 1:
            self._say(f"{self.name}: {trouble}; trying again")
        is_hopeless = item.is_settled and (item.failures >= MAX_SETTLE_TRIES or self._is_over)
        if is_hopeless:
            self._items.pop(item.approval.id, None)
