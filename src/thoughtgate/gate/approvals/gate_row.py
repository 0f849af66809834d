"""The row of this gate in a store that several gates share, renewed for as long as it runs.

A separate thread renews it, even while the event loop is busy. If the row expires, other gates may
take over the calls that this one holds. The thread also tells the operator when the store goes
away and when it is back.

Loaded only with a shared store.
"""

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from thoughtgate.errors import StoreError
from thoughtgate.gate.clock import now
from thoughtgate.stores.database import Database
from thoughtgate.stores.gates import RENEW_S, GateStore
from thoughtgate.stores.process_owner import own_name
from thoughtgate.version import __version__

LOOK_S: Final = 0.5
"""How often the thread looks whether the store has gone away or is back."""

STOP_WITHIN_S: Final = 1.0
"""How long a stopping gate waits for a renewal that is under way."""

SHOWN: Final = ("kind", "server", "config", "policy", "profile", "record", "namespace", "url")
"""The announced facts that other machines may see: no secret, and nothing about the agent."""


class GateRow:
    """Keeps the row of this process, and closes the store in the end."""

    def __init__(
        self,
        database: Database,
        say: Callable[[str], None],
        details: Callable[[], Mapping[str, Any]],
        chores: Callable[[], None] = lambda: None,
    ) -> None:
        """Keep a row in ``database``; ``details`` returns the facts that change while it runs.

        The thread calls ``chores`` about twice per second; it may raise ``StoreError``.
        """
        self._chores = chores
        self._database = database
        self._gates = GateStore(database)
        self._say = say
        self._details = details
        self._owner = own_name()
        self._started_at = now()
        self._facts: dict[str, Any] = {}
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_lost = False
        self._due_at = 0.0
        """When the row is renewed."""

    def announce(self, facts: Mapping[str, Any]) -> None:
        """Add the row, or have other facts written soon.

        Raises:
            StoreError: the row cannot be added.
        """
        self._facts = {name: facts[name] for name in SHOWN if facts.get(name)}
        self._due_at = 0.0
        if self._thread is None:
            # Before the first call: others could take over the requests of a gate without a row.
            self._renew()
            self._due_at = time.monotonic() + RENEW_S
            self._thread = threading.Thread(target=self._run, name="gate row", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Remove the row and close the store."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(STOP_WITHIN_S)
        # If the store is away, the row expires by itself, and another gate does the rest then.
        with suppress(StoreError):
            self._chores()
            self._gates.end(self._owner)
        self._database.close()

    def _renew(self) -> None:
        facts = {
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "version": __version__,
            **self._facts,
            **self._details(),
        }
        self._gates.renew(self._owner, self._started_at, facts, now())

    def _run(self) -> None:
        while not self._stopping.wait(LOOK_S):
            is_away = self._database.is_away
            if not is_away:
                with suppress(StoreError):
                    self._chores()
            # While the store is away, the engine itself finds out when it is back.
            if (is_away and self._is_lost) or (not is_away and time.monotonic() < self._due_at):
                continue
            # Set before: facts may change during the renewal.
            self._due_at = time.monotonic() + RENEW_S
            try:
                self._renew()
            except StoreError as error:
                self._due_at = 0.0
                self._lost(str(error))
            else:
                self._found()

    def _lost(self, reason: str) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._say(f"store     {reason}; calls that need approval are refused until it is back")

    def _found(self) -> None:
        if self._is_lost:
            self._is_lost = False
            self._say("store     reached again")
