"""Qoder: one private config file, and the flag that makes it the only one.

Qoder expands nothing in such a file, so references are resolved here, as Qoder would do it. With a
prompt on the command line, Qoder starts the servers of a project without asking. In an interactive
session it may ask, and injected servers would skip that, so then the files are rewritten.
"""

from collections.abc import Iterable
from typing import Final

from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.injection.command_line import first_word_of, with_arguments, without_flag
from thoughtgate.agents.injection.injection import Governed, Injection
from thoughtgate.agents.injection.whole_entries import expanded, whole_entries

SUBCOMMANDS: Final = frozenset(
    {
        *("agent", "agents", "commit", "feedback", "hook", "hooks", "login", "mcp", "plugin"),
        *(
            "plugins",
            "remote-control",
            "rollback",
            "security",
            "skill",
            "skills",
            "status",
            "update",
        ),
    }
)
"""Subcommands that use the servers in the files, or none."""

CONFIG: Final = "--mcp-config"
STRICT: Final = "--strict-mcp-config"
_PROMPT: Final = frozenset({"-p", "--print"})


def obstacle(argv: Iterable[str], entries: Iterable[ServerEntry]) -> str:
    """Return why servers cannot be given to this command; empty if they can."""
    if first_word_of(tuple(argv), _PROMPT):
        return ""
    if any(entry.layer.scope in ("project", "local") for entry in entries):
        return "an interactive session of Qoder may ask about the servers of a project"
    return ""


def inject(given: Governed) -> Injection:
    """Return how Qoder is started with the governed servers and no others."""
    found = whole_entries(given)
    file = found._replace(servers=expanded(found.servers, given)).private_file(given)
    own = without_flag(without_flag(given.command, CONFIG), STRICT, values=False)
    # Written with "=", and followed by another option, because the flag takes several values.
    return Injection(
        with_arguments(own, (f"{CONFIG}={file.path}", STRICT)),
        found.governed,
        files=(file,),
        outside=found.outside,
    )
