"""Checks that every approval channel must pass, for the tests of a package that provides one.

Derive a class from ``ChannelContract``, implement its four hooks, and let pytest run it. The
checks use the real threads of the channel and an approval store in memory.
"""

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from thoughtgate.channels.channel import Channel, Stoppable
from thoughtgate.channels.channel_context import ChannelContext
from thoughtgate.channels.delivery import VoteStore
from thoughtgate.core.approval import (
    APPROVED,
    PENDING,
    WITHDRAWN,
    Approval,
    Refusal,
    Vote,
    move,
    vote_all,
)

WORKFLOW: Final = "contract"
"""The workflow that the checks use."""

PATIENCE_S: Final = 30.0
"""How long a check waits for something that the channel must do; speed is not checked."""

_STEP_S: Final = 0.005
_LIFETIME_S: Final = 600.0
_DIGEST: Final = "0" * 64
_SECRET_WORDS: Final = ("secret", "token", "password", "key")


class MemoryStore:
    """An approval store in memory that notes every vote brought to it. Thread-safe."""

    def __init__(self) -> None:
        self.brought: list[tuple[str, Vote]] = []
        """The votes that the channel brought, whether or not they counted."""
        self._approvals: dict[str, Approval] = {}
        self._handles: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def put(self, approval: Approval) -> None:
        """Add or replace an approval, as the gate does."""
        with self._lock:
            self._approvals[approval.id] = approval

    def get(self, ident: str) -> Approval | Refusal:
        """Return an approval."""
        with self._lock:
            return self._approvals.get(ident) or Refusal("unknown", f"no approval {ident}")

    def vote(self, ident: str, votes: Sequence[Vote], now: float) -> Approval | Refusal:
        """Count votes."""
        with self._lock:
            self.brought += [(ident, one) for one in votes]
            approval = self._approvals.get(ident)
            if approval is None:
                return Refusal("unknown", f"no approval {ident}")
            counted, refusals = vote_all(approval, votes, now)
            self._approvals[ident] = counted
            return refusals[0] if refusals else counted

    def keep_handle(self, ident: str, channel: str, handle: str) -> None:
        """Remember a handle."""
        with self._lock:
            self._handles[ident, channel] = handle

    def handle(self, ident: str, channel: str) -> str:
        """Return a remembered handle, or an empty string."""
        with self._lock:
            return self._handles.get((ident, channel), "")


class ChannelContract(ABC):
    """The checks. Each method that begins with ``test_`` is one, for a new channel.

    Example:
        >>> class TestFolderChannel(ChannelContract):
        ...     name = "folder"
        ...
        ...     @pytest.fixture(autouse=True)
        ...     def place(self, tmp_path: Path) -> None:
        ...         self.folder = tmp_path
        ...
        ...     def options(self) -> dict[str, Any]:
        ...         return {"folder": str(self.folder)}
        ...
        ...     def open_channel(self, context: ChannelContext) -> Channel:
        ...         return open_channel(context)
        ...
        ...     def shown(self) -> str:
        ...         return "".join(one.read_text() for one in self.folder.glob("*.json"))
        ...
        ...     def decide(self, approval: Approval, *, approve: bool, reviewer: str) -> None:
        ...         file = self.folder / f"{approval.id}.{reviewer}.decision"
        ...         file.write_text("approve" if approve else "deny")
        ...
        ...     def break_service(self) -> None:
        ...         self.folder.rename(self.folder.with_name("gone"))
    """

    name: str
    """The channel's name: that of its entry point."""
    patience_s: float = PATIENCE_S
    """Raise this for a channel that polls rarely."""

    # What you implement.

    @abstractmethod
    def open_channel(self, context: ChannelContext) -> Channel:
        """Make a channel; usually by calling the function that the entry point names."""

    @abstractmethod
    def shown(self) -> str:
        """Return everything that reviewers can see at the service now, as one text."""

    @abstractmethod
    def decide(self, approval: Approval, *, approve: bool, reviewer: str) -> None:
        """Decide on a request at the service, as the reviewer with this name or id would."""

    @abstractmethod
    def break_service(self) -> None:
        """Make the service fail from now on: stop it, or have it answer with errors."""

    def options(self) -> Mapping[str, Any]:
        """Return the options of the workflow."""
        return {}

    def environ(self) -> Mapping[str, str]:
        """Return the environment: the variables with the secrets that the channel needs."""
        return {}

    # The checks.

    def test_a_request_is_shown(self) -> None:
        """Reviewers see the tool, the server and the arguments of a request."""
        with self._opened() as (channel, store, _):
            approval = self._ask(channel, store)
            parts = (approval.tool, approval.server, "quarterly.txt")
            self._wait(
                lambda: all(part in self.shown() for part in parts), f"{', '.join(parts)} are shown"
            )

    def test_the_outcome_is_shown(self) -> None:
        """Reviewers see that the request has been decided."""
        with self._opened() as (channel, store, _):
            approval = self._ask(channel, store)
            before = self._wait_until_shown(approval)
            self._settle(channel, store, approval, APPROVED)
            self._wait(lambda: self.shown() != before, "the outcome is shown")

    def test_a_vote_is_delivered_once(self) -> None:
        """A reviewer's vote reaches the store once, in the reviewer's name."""
        with self._opened() as (channel, store, _):
            approval = self._ask(channel, store, required=2)
            self._wait_until_shown(approval)
            for count, reviewer in enumerate(("ann", "cas"), 1):
                # The second vote shows that the channel has looked again after the first.
                self.decide(approval, approve=True, reviewer=reviewer)
                self._wait(
                    lambda count=count: len(store.brought) >= count,  # type: ignore[misc]
                    f"the vote of {reviewer} is in the store",
                )
            self._settle(channel, store, approval, APPROVED)
        votes = [(vote.by, vote.approve) for _, vote in store.brought]
        assert votes == [(f"{self.name}:ann", True), (f"{self.name}:cas", True)], votes

    def test_a_denial_is_a_denial(self) -> None:
        """A reviewer who denies is not counted as one who approves."""
        with self._opened() as (channel, store, _):
            approval = self._ask(channel, store)
            self._wait_until_shown(approval)
            self.decide(approval, approve=False, reviewer="bob")
            self._wait(lambda: store.brought, "the vote is in the store")
        assert [vote.approve for _, vote in store.brought] == [False]

    def test_a_withdrawn_request_is_taken_back(self) -> None:
        """A request that nobody waits for any more is marked, and votes on it are ignored."""
        with self._opened() as (channel, store, _):
            approval = self._ask(channel, store)
            before = self._wait_until_shown(approval)
            self._settle(channel, store, approval, WITHDRAWN)
            self._wait(lambda: self.shown() != before, "the request is taken back")
            with contextlib.suppress(Exception):  # the service may refuse the decision, too
                self.decide(approval, approve=True, reviewer="ann")
        assert store.brought == [], "a vote on a withdrawn request was delivered"

    def test_failures_stay_in_the_channel(self) -> None:
        """A service that fails raises nothing into the gate; the operator is told."""
        self.break_service()
        with self._opened() as (channel, store, said):
            approval = self._ask(channel, store)
            self._wait(lambda: said, "the operator is told")
            self._settle(channel, store, approval, WITHDRAWN)
        assert store.brought == []

    def test_no_secret_is_shown(self) -> None:
        """What reviewers see and what the operator is told contains no secret of the channel."""
        with self._opened() as (channel, store, said):
            approval = self._ask(channel, store)
            seen = self._wait_until_shown(approval)
            self._settle(channel, store, approval, APPROVED)
        for secret in self._secrets():
            assert secret not in seen + self.shown(), "a secret of the channel is shown"
            assert secret not in "".join(said), "the operator is told a secret"

    def test_stopping_ends_its_threads(self) -> None:
        """After ``stop``, no thread of the channel is left."""
        before = set(threading.enumerate())
        with self._opened() as (channel, store, _):
            self._wait_until_shown(self._ask(channel, store))
        self._wait(
            lambda: set(threading.enumerate()) <= before, "the threads of the channel have ended"
        )

    # How they work.

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[Channel, MemoryStore, list[str]]]:
        store = MemoryStore()
        said: list[str] = []

        def open_store() -> AbstractContextManager[VoteStore]:
            return contextlib.nullcontext(store)

        context = ChannelContext(
            self.name, WORKFLOW, self.options(), self.environ(), open_store, said.append
        )
        channel = self.open_channel(context)
        assert channel.name == self.name, f"the channel calls itself {channel.name!r}"
        try:
            yield channel, store, said
        finally:
            if isinstance(channel, Stoppable):
                self._promptly(channel.stop)

    def _ask(self, channel: Channel, store: MemoryStore, required: int = 1) -> Approval:
        approval = sample_approval(self.name)._replace(required=required)
        store.put(approval)
        self._promptly(lambda: channel.show_request(approval))
        return approval

    def _settle(
        self, channel: Channel, store: MemoryStore, approval: Approval, status: str
    ) -> None:
        found = store.get(approval.id)
        assert isinstance(found, Approval)
        moved = move(found, status, time.time()) if found.status == PENDING else found
        assert isinstance(moved, Approval)
        store.put(moved)
        self._promptly(lambda: channel.show_outcome(moved))

    def _wait_until_shown(self, approval: Approval) -> str:
        self._wait(lambda: approval.tool in self.shown(), "the request is shown")
        return self.shown()

    def _wait(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + self.patience_s
        while not condition():
            assert time.monotonic() < deadline, f"not within {self.patience_s:g} s: {what}"
            time.sleep(_STEP_S)

    def _promptly(self, function: Callable[[], None]) -> None:
        """Call a function of the channel; fail if it raises, or waits for the service for ever."""
        errors: list[BaseException] = []

        def call() -> None:
            try:
                function()
            except BaseException as error:  # noqa: BLE001 - raised again below, in the test's thread
                errors.append(error)

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(self.patience_s)
        assert not thread.is_alive(), "the channel does not return to the gate"
        if errors:
            raise AssertionError("the channel raised into the gate") from errors[0]

    def _secrets(self) -> list[str]:
        options = (
            value
            for key, value in self.options().items()
            if isinstance(value, str)
            and not key.endswith("_env")
            and any(word in key.lower() for word in _SECRET_WORDS)
        )
        return [one for one in (*self.environ().values(), *options) if one]


def sample_approval(channel: str, ident: str = "k3f9ab") -> Approval:
    """Return a pending approval request, as the gate passes it to a channel."""
    now = time.time()
    return Approval(
        id=ident,
        call_id="run.1",
        digest=_DIGEST,
        server="files",
        kind="tool",
        tool="delete_file",
        arguments='{"api_key":"[secret, 40 characters]","path":"/reports/quarterly.txt"}',
        folded=False,
        principal="local",
        session="1",
        workflow=WORKFLOW,
        channel=channel,
        rule="rules[0]",
        reason="it deletes",
        policy_version="0",
        created_at=now,
        expires_at=now + _LIFETIME_S,
        required=1,
        approvers=(),
        on_timeout="deny",
        elicitation=False,
        remember=True,
        owner="contract",
    )
