"""opencode, and its fork Kilo: a variable with config text, which is merged over the files.

The variable is inherited by every server, so it contains only the shims' command lines.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.config_paths import config_layers
from thoughtgate.agents.documents import parse_document
from thoughtgate.agents.entries import ConfigFile, ServerEntry, UngovernedServer
from thoughtgate.agents.entry_shapes import argv_of, merge_keys
from thoughtgate.agents.injection.command_line import first_word_of
from thoughtgate.agents.injection.injection import Governed, Injection
from thoughtgate.agents.injection.merged_entries import emptied, is_off, merged_value
from thoughtgate.agents.ungoverned_servers import kilo_files

VARIABLES: Final = {"opencode": "OPENCODE_CONFIG_CONTENT", "kilo": "KILO_CONFIG_CONTENT"}

_OFF: Final = {"type": "local", "command": ["thoughtgate"], "enabled": False}
"""A disabled server. The entry is complete, because not every version accepts ``enabled`` alone."""

_ATTACH: Final = frozenset({"attach", "--attach"})
_FILE: Final = re.compile(r"\{file:([^}]+)\}")


def inject(given: Governed) -> Injection:
    """Return how the agent is started with every known server behind the gate."""
    agent, variable = given.plan.agent, VARIABLES[given.plan.agent.type]
    servers: dict[str, Mapping[str, Any]] = {}
    governed, outside = [], []
    for name, stack in given.stacks().items():
        if is_off(given, stack):
            # Given as disabled, not left out: a user can enable it during the session, and the
            # layers may be merged in another order than the gate assumes.
            servers[name] = _OFF
            continue
        value = merged_value(given, stack)
        if value is None:
            outside.append(given.ungoverned(stack[-1]))
            continue
        governed.append(name)
        words = [_with_absolute_files(word, stack) for word in argv_of(value)]
        servers[name] = {"type": "local", "command": words, **emptied(stack)}
    if first_word_of(given.command, _ATTACH):
        reason = "a process that was started without the gate has its own servers"
        outside.append(UngovernedServer(f"the {agent.name} server that this attaches to", reason))
    if agent.type == "kilo":
        outside += kilo_files(given.plan.search)
    text = given.plan.search.env.get(variable, "")
    own = parse_document(text.encode(), "json", file=variable).values if text else {}
    content = merge_keys(own, {"mcp": servers})
    return Injection(
        given.command,
        tuple(governed),
        variables={variable: json.dumps(content, ensure_ascii=False)},
        outside=tuple(outside),
        warnings=tuple(_plugins(given)),
    )


def _with_absolute_files(word: Any, stack: list[ServerEntry]) -> Any:
    """Make the path in a ``{file:…}`` absolute: the agent takes it as relative to the config file."""
    if not isinstance(word, str):
        return word
    folder = next((one.layer.path.parent for one in reversed(stack) if argv_of(one.raw)), Path())

    def absolute(found: re.Match[str]) -> str:
        named = found[1]
        return found[0] if named.startswith(("/", "~")) else f"{{file:{folder / named}}}"

    return _FILE.sub(absolute, word)


def _plugins(given: Governed) -> list[str]:
    """Return a warning if plugins run, which may change servers after everything else."""
    if "--pure" in given.command:
        return []
    folders = dict.fromkeys(layer.path.parent for layer in config_layers(given.plan.search))
    found = [
        one
        for folder in folders
        for kind in ("plugin", "plugins")
        for one in (folder / kind).glob("*.[jt]s")
    ]
    found += [file.path for file in given.plan.files if _names_plugins(file)]
    return [
        f"{one}: a plugin can add servers that are not governed; --pure leaves plugins out"
        for one in found[:1]
    ]


def _names_plugins(file: ConfigFile) -> bool:
    values = parse_document(file.content, file.format, file=str(file.path)).values
    return isinstance(values, Mapping) and bool(values.get("plugin"))
