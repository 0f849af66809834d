"""Copilot CLI: a private file whose entries replace those of the same name.

That holds only with a prompt on the command line. In an interactive session, and with ``--agent``,
Copilot starts the entries of its files first and replaces them a moment later, so for those the
files are rewritten. An entry given on the command line starts whether or not the folder is trusted,
so trust is looked up here, in Copilot's own record.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from thoughtgate.agents.config_paths import Search, copilot_home
from thoughtgate.agents.entries import ServerEntry
from thoughtgate.agents.injection.command_line import first_word_of, with_arguments, without_flag
from thoughtgate.agents.injection.injection import Governed, Injection
from thoughtgate.agents.injection.records import read_json, texts
from thoughtgate.agents.injection.whole_entries import whole_entries
from thoughtgate.agents.ungoverned_servers import copilot_own

SUBCOMMANDS: Final = frozenset(
    {"config", "help", "init", "login", "lsp", "mcp", "plugin", "update"}
)
"""Subcommands that use the servers in the files, or none."""

CONFIG: Final = "--additional-mcp-config"
_PROMPT: Final = ("-p", "--prompt")
_NOT_PLAIN: Final = frozenset(
    {"--acp", "--agent", "--connect", "--headless", "--remote", "--server"}
)
"""Options with which Copilot starts the entries of its files too, or for which this is unknown."""


def obstacle(argv: Sequence[str]) -> str:
    """Return why servers cannot be given to this command; empty if they can."""
    words = [word.partition("=")[0] for word in argv]
    if odd := first_word_of(words, _NOT_PLAIN):
        return f"with {odd}, Copilot CLI also starts the servers in its files"
    if not first_word_of(words, _PROMPT):
        return "an interactive session of Copilot CLI first starts the servers in its files"
    return ""


def inject(given: Governed) -> Injection:
    """Return how Copilot CLI is started with every known server behind the gate."""
    search = given.plan.search
    trusted = tuple(_trusted_folders(search))
    found = whole_entries(given, lambda entry: _refusal(entry, trusted))
    file = found.private_file(given)
    own = without_flag(given.command, CONFIG)
    return Injection(
        with_arguments(own, (f"{CONFIG}=@{file.path}",)),
        found.governed,
        files=(file,),
        left_out=found.left_out,
        outside=(*found.outside, *copilot_own(search)),
    )


def _trusted_folders(search: Search) -> Iterator[Path]:
    """Return the folders whose files Copilot uses, with everything below them."""
    record = read_json(copilot_home(search) / "config.json")
    for key in ("trustedFolders", "trusted_folders"):
        # A relative path would be resolved against the gate's working directory.
        yield from (Path(one).resolve() for one in texts(record.get(key)) if one.startswith("/"))


def _refusal(entry: ServerEntry, trusted: Sequence[Path]) -> str:
    """Return why an entry must not be given to Copilot; empty if it may be."""
    layer = entry.layer
    if layer.scope != "project":
        return ""
    folder = layer.path.parent
    if folder.name == ".github":
        folder = folder.parent
        if (folder / ".mcp.json").exists():
            return f"Copilot CLI does not read {layer.path} beside an .mcp.json"
    place = folder.resolve()
    if any(place.is_relative_to(one) for one in trusted):
        return ""
    return "the folder is not trusted in Copilot CLI"
