"""Playbooks: tests that list the events that a session gets and the commands that it must return.

A test of the core is a list of events in and commands out:

    (
        Playbook(session)
        .when(AgentSent(line, at=0.0))
        .then(Some(WriteRecord), ToServer(line))
    )

Any object with ``receive(event) -> list of commands`` can be tested this way. A step that does not
match fails with both lists, one command per line.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self


class Receiver(Protocol):
    """An object that a playbook drives."""

    def receive(self, event: Any) -> Sequence[Any]:
        """Handle an event and return commands."""


class Some:
    """Matches any command of a type, or those for which a predicate is true."""

    def __init__(self, kind: type, test: Callable[[Any], bool] = lambda _: True) -> None:
        self.kind = kind
        self.test = test

    def __eq__(self, other: object) -> bool:
        return isinstance(other, self.kind) and self.test(other)

    def __hash__(self) -> int:
        return hash(self.kind)

    def __repr__(self) -> str:
        return f"Some({self.kind.__name__})"


class Playbook:
    """Feeds events and checks the resulting commands, in turns."""

    def __init__(self, receiver: Receiver, *, ignore: tuple[type, ...] = ()) -> None:
        self._receiver = receiver
        self._ignore = ignore
        self._got: list[Any] = []
        self._step = 0

    @property
    def commands(self) -> list[Any]:
        """The commands for the last event, without those that are ignored."""
        return self._got

    def when(self, event: Any) -> Self:
        """Feed an event. The commands for the previous event must have been checked."""
        self._expect_all_checked()
        self._step += 1
        commands = self._receiver.receive(event)
        self._got = [command for command in commands if not isinstance(command, self._ignore)]
        return self

    def then(self, *expected: Any) -> Self:
        """Expect exactly these commands, in this order."""
        if not _are_same(self._got, expected):
            raise AssertionError(self._difference(expected))
        self._got = []
        return self

    def whatever(self) -> Self:
        """Accept the commands without checking them."""
        self._got = []
        return self

    def _expect_all_checked(self) -> None:
        if self._got:
            raise AssertionError(self._difference(()))

    def _difference(self, expected: Sequence[Any]) -> str:
        lines = [f"step {self._step}: the commands are not the expected ones"]
        lines += ["expected:", *(f"  {command!r}" for command in expected or ["nothing"])]
        lines += ["got:", *(f"  {command!r}" for command in self._got or ["nothing"])]
        return "\n".join(lines)


def _are_same(got: Sequence[Any], expected: Sequence[Any]) -> bool:
    return len(got) == len(expected) and all(
        _is_same(one, other) for one, other in zip(got, expected, strict=True)
    )


def _is_same(got: Any, expected: Any) -> bool:
    """Compare types too: named tuples of different types with the same values are equal."""
    if isinstance(expected, Some):
        return bool(expected == got)
    return type(got) is type(expected) and bool(got == expected)
