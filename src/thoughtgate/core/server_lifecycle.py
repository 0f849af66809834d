"""Lifecycle of one server behind the hub, as a table of transitions.

Pure: an event with its time goes in, the next state comes out. The supervisor starts, waits and
kills; the diagram in the docs is generated from this table.
"""

from typing import Final, NamedTuple

STOPPED: Final = "stopped"
"""Not needed now: the next call starts it."""
STARTING: Final = "starting"
RUNNING: Final = "running"
STOPPING: Final = "stopping"
WAITING: Final = "waiting"
"""It exited by itself and is restarted after its back-off."""
FAILED: Final = "failed"
"""It failed too often: only a new call or a person starts it again."""
HALTED: Final = "halted"
"""A person stopped it: only a person starts it again."""
DISABLED: Final = "disabled"

WANTED: Final = "wanted"
"""A call or a list needs it, or its back-off is over."""
TOLD_TO_START: Final = "told_to_start"
CAME_UP: Final = "came_up"
BROKE: Final = "broke"
"""It did not start, or exited by itself."""
NEEDS_LOGIN: Final = "needs_login"
"""It refused to start until somebody signs in; the next call tries again."""
TOLD_TO_STOP: Final = "told_to_stop"
UNUSED: Final = "unused"
"""Idle for longer than its config allows, or no longer in the config."""
ENDED: Final = "ended"
"""The stop is complete."""

_MOVES: Final = (
    (WANTED, (STOPPED, WAITING, FAILED), STARTING),
    (TOLD_TO_START, (STOPPED, WAITING, FAILED, HALTED), STARTING),
    (CAME_UP, (STARTING,), RUNNING),
    (BROKE, (STARTING, RUNNING), WAITING),
    (NEEDS_LOGIN, (STARTING,), STOPPED),
    (TOLD_TO_STOP, (STOPPED, WAITING, FAILED), HALTED),
    (TOLD_TO_STOP, (STARTING, RUNNING), STOPPING),
    (UNUSED, (STARTING, RUNNING), STOPPING),
    (UNUSED, (WAITING, FAILED), STOPPED),
    (ENDED, (STOPPING,), STOPPED),
)
"""An event, the states in which it is possible, and the state after it."""

TRANSITIONS: Final[dict[tuple[str, str], str]] = {
    (state, event): after for event, states, after in _MOVES for state in states
}
"""(state, event) -> next state. After ``BROKE``, too many failures lead to ``FAILED``; a stop that a
person requested leads to ``HALTED``."""

_OTHERWISE: Final = {(STARTING, FAILED), (RUNNING, FAILED), (STOPPING, HALTED)}

FOLLOWING: Final[dict[str, frozenset[str]]] = {
    state: frozenset(
        {after for (before, _), after in TRANSITIONS.items() if before == state}
        | {after for before, after in _OTHERWISE if before == state}
    )
    for state in (STOPPED, STARTING, RUNNING, STOPPING, WAITING, FAILED, HALTED, DISABLED)
}
"""State -> states that can follow it, for the docs' diagram."""

FIRST_BACKOFF_S: Final = 0.5
MAX_BACKOFF_S: Final = 30.0
MAX_FAILURES: Final = 5
"""Failures in a row after which it is not restarted automatically."""

STABLE_S: Final = 60.0
"""A server that ran for this long has recovered: its earlier failures no longer count."""


class Supervision(NamedTuple):
    """The state of a server."""

    state: str = STOPPED
    failures: int = 0
    """Failures in a row."""
    retry_at: float = 0.0
    """When it may be started again, while it waits or has failed."""
    since: float = 0.0
    """When it entered this state."""
    halting: bool = False
    """While it stops: whether a person requested it."""
    reason: str = ""
    """The last failure, without paths and arguments."""

    @property
    def is_up(self) -> bool:
        """Whether a process or connection exists, or may exist."""
        return self.state in {STARTING, RUNNING, STOPPING}


def backoff_s(failures: int) -> float:
    """Return the delay before the next start: doubling from half a second to half a minute."""
    # The exponent is bounded, because a float overflows with an exception.
    return min(MAX_BACKOFF_S, FIRST_BACKOFF_S * 2.0 ** min(max(0, failures - 1), 16))


def advance(now: Supervision, event: str, at: float, reason: str = "") -> Supervision | None:
    """Return the next state, or None if the event is impossible in the current one."""
    state = TRANSITIONS.get((now.state, event))
    if state is None:
        return None
    if event == BROKE:
        return _broken(now, at, reason)
    if event == NEEDS_LOGIN:
        return Supervision(state, since=at, reason=reason)
    if state == STOPPING:
        return now._replace(state=state, since=at, halting=event == TOLD_TO_STOP)
    if event == ENDED and now.halting:
        state = HALTED
    # Failures are counted only while the server is restarted automatically.
    failures = 0 if event in {TOLD_TO_START, TOLD_TO_STOP, UNUSED, ENDED} else now.failures
    # ``status`` shows the last failure until the server runs, or a person starts or stops it.
    kept = now.reason if event in {WANTED, UNUSED} else ""
    return Supervision(state, failures, 0.0, at, reason=kept)


def _broken(now: Supervision, at: float, reason: str) -> Supervision:
    recovered = now.state == RUNNING and at - now.since >= STABLE_S
    failures = 1 if recovered else now.failures + 1
    state = FAILED if failures > MAX_FAILURES else WAITING
    return Supervision(state, failures, at + backoff_s(failures), at, reason=reason)
