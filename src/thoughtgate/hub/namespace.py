"""Chooses the namespace: the set of servers that an endpoint of ``serve`` exposes."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

BY_FLAG: Final = "flag"
BY_DEFAULT: Final = "default"
THE_ONLY: Final = "only"
ALL: Final = "all"


class Selection(NamedTuple):
    """A namespace, and how it was chosen."""

    name: str
    """Empty if there are no namespaces and all servers are exposed."""
    how: str
    """``flag``, ``default``, ``only`` or ``all``."""
    servers: tuple[str, ...]


class NoSelection(NamedTuple):
    """Why no namespace could be chosen."""

    reason: str
    """For people to read, with the choices."""
    choices: tuple[str, ...]


def select_namespace(
    asked: str, default: str, namespaces: Mapping[str, tuple[str, ...]], servers: Iterable[str]
) -> Selection | NoSelection:
    """Choose by the flag, else the default, else the only one; all servers if there is none."""
    choices = tuple(namespaces)
    for name, how in ((asked, BY_FLAG), (default, BY_DEFAULT)):
        if name:
            if name in namespaces:
                return Selection(name, how, namespaces[name])
            return NoSelection(f"there is no namespace {name!r}; {_offer(choices)}", choices)
    if len(choices) == 1:
        return Selection(choices[0], THE_ONLY, namespaces[choices[0]])
    if not choices:
        return Selection("", ALL, tuple(servers))
    reason = f"several namespaces are configured and none is chosen; {_offer(choices)}"
    return NoSelection(reason, choices)


def _offer(choices: tuple[str, ...]) -> str:
    if not choices:
        return "none is configured"
    named = ", ".join(choices)
    return f"start with --namespace ID or set default_namespace; the choices are: {named}"
