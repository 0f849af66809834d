"""Governed entries for agents in which the entry of one file replaces those of all others.

Every entry that the agent would use is given as a whole: a governed one as a rewrite would leave it,
any other one as its file says.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.agents.entries import ServerEntry, UngovernedServer
from thoughtgate.agents.expansion import expand
from thoughtgate.agents.injection.injection import Governed, PrivateFile

FILE: Final = "mcp.json"


class WholeEntries(NamedTuple):
    """The entries to give to an agent, and what to report about the others."""

    servers: Mapping[str, Mapping[str, Any]]
    governed: tuple[str, ...]
    outside: tuple[UngovernedServer, ...]
    left_out: tuple[UngovernedServer, ...]

    def private_file(self, given: Governed) -> PrivateFile:
        """Return the entries as a file in the form that most agents share."""
        content = json.dumps({"mcpServers": self.servers}, indent=1).encode()
        return PrivateFile(given.folder / FILE, content)


def whole_entries(
    given: Governed,
    refusal: Callable[[ServerEntry], str] = lambda _: "",
    *,
    refused_hides: bool = False,
) -> WholeEntries:
    """Choose the entry of each name.

    Args:
        given: the plan with its governed values.
        refusal: returns why an entry must not be given to the agent; empty if it may be.
        refused_hides: whether an entry that must not be given also keeps one of the same name in
            another file from being used.
    """
    servers: dict[str, Mapping[str, Any]] = {}
    governed, outside, left_out = [], [], []
    for name, stack in given.stacks().items():
        candidates = stack[-1:] if refused_hides else stack
        refusals = [refusal(entry) for entry in candidates]
        allowed = [entry for entry, said in zip(candidates, refusals, strict=True) if not said]
        if not allowed:
            left_out.append(UngovernedServer(name, refusals[-1]))
            continue
        chosen = allowed[-1]
        # The agent would not start it from its file either.
        if chosen.status == "disabled":
            continue
        value = given.value_of(chosen)
        if value is not None:
            governed.append(name)
        else:
            outside.append(given.ungoverned(chosen))
        servers[name] = value if value is not None else chosen.raw
    return WholeEntries(servers, tuple(governed), tuple(outside), tuple(left_out))


def expanded(value: Any, given: Governed) -> Any:
    """Resolve the references in a value, for an agent that does not do so in injected entries."""
    if isinstance(value, str):
        return expand(value, given.plan.agent.syntax, given.plan.search.env)
    if isinstance(value, Mapping):
        return {key: expanded(one, given) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [expanded(one, given) for one in value]
    return value
