"""Delivery of approval requests to a remote service, and collection of the votes.

The gate only puts requests into a queue, from which a thread takes them. A service that is down,
slow or failing therefore delays no other call: the held call waits until its own timeout. Votes go
to the store, as from every channel. A ``DeliveryClient`` implements the service's protocol.
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
"""Pause after the first failure; it doubles with each further one."""
MAX_RETRY_S: Final = 60.0
"""The longest pause after repeated failures."""
MAX_WAIT_S: Final = 600.0
"""The longest ``Retry-After`` that is honoured."""
SLOWER: Final = 1.3
"""Factor by which the pause grows with each poll that finds no new vote."""
SLOWEST: Final = 6.0
"""The longest pause between polls, as a multiple of the first. Reviewers may take minutes,
but once they have voted, they expect the call to run soon."""
IDLE_S: Final = 30.0
"""How long the thread sleeps when it has nothing to do; a new request wakes it."""
STOP_WITHIN_S: Final = 2.0
"""How long a gate that stops waits until its requests are marked as withdrawn."""
MAX_SETTLE_TRIES: Final = 5
"""How many times showing an outcome is tried."""


class DeliveryError(Exception):
    """The service did not accept a request; it is tried again later."""

    def __init__(self, reason: str, retry_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s


class RequestGoneError(Exception):
    """The service no longer has the approval request, so nobody can answer it there."""


class DeliveryClient(Protocol):
    """Speaks a service's protocol on behalf of one workflow.

    The methods may take seconds. They raise ``DeliveryError`` or ``RequestGoneError``.
    """

    poll_s: float
    """The first pause between polls."""

    def send_request(self, approval: Approval) -> str:
        """Send an approval request and return a handle for it."""

    def poll_votes(self, approval: Approval, handle: str) -> Sequence[Vote]:
        """Return all votes that the service has by now."""

    def send_outcome(self, approval: Approval, handle: str) -> None:
        """Report the outcome of the request."""


class VoteStore(Protocol):
    """The methods of the approval store that delivery needs."""

    def get(self, ident: str) -> Approval | Refusal:
        """Return an approval."""

    def vote(self, ident: str, votes: Sequence[Vote], now: float) -> Approval | Refusal:
        """Count the votes of one poll."""

    def keep_handle(self, ident: str, channel: str, handle: str) -> None:
        """Remember a handle."""

    def handle(self, ident: str, channel: str) -> str:
        """Return a remembered handle, or an empty string."""


@dataclass(slots=True)
class _Item:
    approval: Approval
    handle: str = ""
    due_at: float = 0.0
    failures: int = 0
    quiet: int = 0
    """Polls since the last new vote."""
    is_settled: bool = False
    seen: frozenset[tuple[str, bool]] = frozenset()
    """Votes that were already counted or refused."""


class DeliveryChannel:
    """A channel with its own thread, which starts with the first request."""

    def __init__(
        self,
        name: str,
        clients: Mapping[str, DeliveryClient],
        open_store: Callable[[], AbstractContextManager[VoteStore]],
        say: Callable[[str], None],
    ) -> None:
        """Serve the workflows in ``clients``; ``say`` reports failures to the operator."""
        self.name = name
        self._clients = clients
        self._open_store = open_store
        self._say = say
        self._inbox: queue.SimpleQueue[Approval | None] = queue.SimpleQueue()
        """Requests and outcomes from the gate; None only wakes the thread."""
        self._items: dict[str, _Item] = {}
        self._paused: dict[str, float] = {}
        """Workflows whose service asked us to wait, and until when."""
        self._thread: threading.Thread | None = None
        self._is_stopping = False

    def show_request(self, approval: Approval) -> None:
        """Queue a request for delivery, if its workflow uses this channel."""
        if approval.channel != self.name or approval.workflow not in self._clients:
            return
        self._inbox.put(approval)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()

    def show_outcome(self, approval: Approval) -> None:
        """Queue the outcome of a request for delivery."""
        # Without a thread, no request was sent, so no outcome has to be shown.
        if self._thread is not None and approval.channel == self.name:
            self._inbox.put(approval)

    def stop(self) -> None:
        """Try briefly to deliver the remaining outcomes, then end the thread."""
        self._is_stopping = True
        if self._thread is not None:
            self._inbox.put(None)
            self._thread.join(STOP_WITHIN_S)

    def _run(self) -> None:
        try:
            with self._open_store() as store:
                while not self._is_done():
                    self._read_inbox()
                    for item in list(self._items.values()):
                        if item.due_at <= time.monotonic():
                            self._serve(store, item)
        except StoreError as error:
            # The requests can still be answered in another channel, or expire.
            self._say(f"{self.name}: {error}")

    def _is_done(self) -> bool:
        waiting = any(item.is_settled for item in self._items.values()) or not self._inbox.empty()
        return self._is_stopping and not waiting

    def _read_inbox(self) -> None:
        """Wait until the next item is due or something arrives, then read everything in the inbox."""
        due = min((item.due_at for item in self._items.values()), default=time.monotonic() + IDLE_S)
        timeout = max(0.0, min(IDLE_S, due - time.monotonic()))
        try:
            update = self._inbox.get(timeout=timeout)
            while True:
                self._take(update)
                update = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _take(self, update: Approval | None) -> None:
        if update is None:
            return
        item = self._items.get(update.id)
        if item is None:
            if update.status == PENDING:
                self._items[update.id] = _Item(update)
            return
        item.approval = update
        if update.status != PENDING:
            # Show the outcome now, even if a failed poll has put the item off.
            item.is_settled, item.due_at, item.failures = True, 0.0, 0

    def _serve(self, store: VoteStore, item: _Item) -> None:
        workflow = item.approval.workflow
        paused = self._paused.get(workflow, 0.0)
        if paused > time.monotonic():
            item.due_at = paused
            return
        try:
            self._step(store, item, self._clients[workflow])
        except DeliveryError as error:
            self._put_off(item, error)
        except RequestGoneError:
            self._say(
                f"{self.name}: the request for approval {item.approval.id} was deleted there; "
                f"use thoughtgate approvals approve {item.approval.id}"
            )
            self._items.pop(item.approval.id, None)
        except StoreError:
            item.due_at = time.monotonic() + RETRY_S
        except Exception as error:  # noqa: BLE001 - one request's failure must not end the thread for all
            self._put_off(item, DeliveryError(f"{type(error).__name__} during delivery"))

    def _step(self, store: VoteStore, item: _Item, client: DeliveryClient) -> None:
        approval = item.approval
        if item.is_settled:
            # Without a handle, this gate has not sent the request, so there is nothing to update.
            if item.handle:
                client.send_outcome(approval, item.handle)
            del self._items[approval.id]
            return
        if _is_taken_over(store.get(approval.id), approval):
            # The gate that holds the call now continues with the message.
            del self._items[approval.id]
            return
        if not item.handle:
            # A restarted gate continues with the message that it sent before; a gate that has taken
            # over the call continues with the message of the gate that died.
            item.handle = store.handle(approval.id, self.name)
        if not item.handle:
            item.handle = client.send_request(approval)
            store.keep_handle(approval.id, self.name, item.handle)
        self._count(store, item, client.poll_votes(approval, item.handle))
        item.failures = 0
        pause = min(client.poll_s * SLOWER**item.quiet, client.poll_s * SLOWEST)
        item.quiet += 1
        item.due_at = time.monotonic() + pause
        if time.time() > approval.expires_at + MAX_RETRY_S:
            # The gate died without reporting an outcome; without this, polling never ends.
            item.is_settled = True

    def _count(self, store: VoteStore, item: _Item, votes: Sequence[Vote]) -> None:
        # Each poll returns all votes, so a refused one would be reported again with every poll.
        fresh = [vote for vote in votes if (vote.by, vote.approve) not in item.seen]
        if not fresh:
            return
        item.quiet = 0
        counted = store.vote(item.approval.id, fresh, time.time())
        item.seen |= {(vote.by, vote.approve) for vote in fresh}
        if isinstance(counted, Refusal):
            self._say(f"{self.name}: a vote on {item.approval.id} was not counted: {counted.text}")

    def _put_off(self, item: _Item, error: DeliveryError) -> None:
        item.failures += 1
        pause = error.retry_after_s or min(RETRY_S * 2 ** (item.failures - 1), MAX_RETRY_S)
        item.due_at = time.monotonic() + min(pause, MAX_WAIT_S)
        if error.retry_after_s:
            # A rate limit applies to the whole workflow, not only to this request.
            self._paused[item.approval.workflow] = item.due_at
        if item.failures == 1:
            self._say(f"{self.name}: {error}; retrying")
        if item.is_settled and (item.failures >= MAX_SETTLE_TRIES or self._is_stopping):
            self._items.pop(item.approval.id, None)


def _is_taken_over(found: Approval | Refusal, shown: Approval) -> bool:
    """Tell whether a request is now about another call than the one that this gate holds."""
    if isinstance(found, Refusal):
        return False
    return (found.owner, found.call_id) != (shown.owner, shown.call_id)
