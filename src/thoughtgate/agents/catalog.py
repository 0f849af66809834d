"""The supported agents and how their config files differ.

A table of how each agent disables a server, refers to environment variables and merges entries
with the same name. The paths of the files are in ``config_paths``.
"""

from dataclasses import dataclass
from typing import Final, Literal

from thoughtgate.agents.expansion import Syntax

Way = Literal["inject", "rewrite"]
"""How ``wrap`` puts servers behind the gate.

``inject`` gives the agent governed entries when it starts, and touches no file; ``rewrite`` changes
the agent's config files for the time of the run.
"""


@dataclass(frozen=True, slots=True)
class Agent:
    """How one agent program reads its config files."""

    type: str
    name: str
    commands: tuple[str, ...] = ()
    """The names of its program."""
    packages: tuple[str, ...] = ()
    """The packages from which ``npx`` and the like run it."""
    application: str = ""
    """The beginning of its macOS application's name."""
    windowed: bool = False
    """Whether its command opens a window and may exit before the window is closed."""
    off_switch: Literal["disabled", "enabled", "either", "ignored"] = "ignored"
    """The key that disables a server. ``ignored``: the agent starts the server regardless of such
    a key, so the entry is governed as well."""
    merge: Literal["entry", "keys"] = "entry"
    """Whether a later file replaces the whole entry of the same name, or only the keys it sets."""
    syntax: Syntax = "none"
    rewritten: str = ""
    """When the config files are rewritten although servers are usually injected; for the docs."""
    undefined_is_error: bool = False
    """Whether a server with an undefined variable in its entry must not be started."""
    provided: frozenset[str] = frozenset()
    """Variables that the agent defines for its servers."""


_LIST: Final = (
    Agent("claude-desktop", "Claude Desktop", ("claude-desktop",), application="Claude", windowed=True, off_switch="disabled"),
    Agent("claude-code", "Claude Code", ("claude", "claude-code"), ("@anthropic-ai/claude-code",), rewritten="for subcommands such as `mcp`, and where an administrator manages the servers", syntax="shell", undefined_is_error=True, provided=frozenset({"CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT"})),
    Agent("cursor", "Cursor", ("cursor", "cursor-agent"), application="Cursor", windowed=True, off_switch="disabled", syntax="env", undefined_is_error=True),
    Agent("vscode", "VS Code", ("code", "code-insiders"), application="Visual Studio Code", windowed=True, syntax="env"),
    Agent("windsurf", "Windsurf", ("windsurf",), application="Windsurf", windowed=True, off_switch="disabled", syntax="env", undefined_is_error=True),
    Agent("zed", "Zed", ("zed", "zeditor"), application="Zed", windowed=True, off_switch="enabled"),
    Agent("codex", "Codex", ("codex",), ("@openai/codex",), rewritten="if a server is reached by a URL, and for `agents` and `remote-control`", off_switch="enabled", merge="keys"),
    Agent("gemini", "Gemini CLI", ("gemini",), ("@google/gemini-cli",), rewritten="in a sandbox, and unless it runs as root", syntax="dollar"),
    Agent("opencode", "opencode", ("opencode",), ("opencode-ai",), off_switch="enabled", merge="keys", syntax="brace-env"),
    Agent("kilo", "Kilo", ("kilo", "kilocode"), ("@kilocode/cli",), off_switch="enabled", merge="keys", syntax="brace-env"),
    Agent("copilot", "Copilot CLI", ("copilot",), ("@github/copilot",), rewritten="in an interactive session, with `--agent`, and for subcommands such as `mcp`", off_switch="disabled", syntax="dollar"),
    Agent("qwen", "Qwen Code", ("qwen",), ("@qwen-code/qwen-code",), rewritten="for subcommands such as `mcp`", syntax="dollar"),
    Agent("qoder", "Qoder", ("qodercli", "qoder"), ("@qoder-ai/qodercli",), rewritten="in an interactive session in a project that has servers, and for subcommands such as `mcp`", syntax="dollar"),
    Agent("droid", "Droid", ("droid",), ("droid", "@factory/cli"), off_switch="disabled", syntax="shell"),
    Agent("grok", "Grok", ("grok",), ("@xai-official/grok",), off_switch="enabled", syntax="dollar"),
    Agent("goose", "goose", ("goose",), ("@aaif/goose",), off_switch="enabled"),
    Agent("amp", "Amp", ("amp",), ("@sourcegraph/amp",), syntax="shell"),
    Agent("cline", "Cline CLI", ("cline",), ("cline",), off_switch="disabled"),
    Agent("kiro", "Kiro", ("kiro", "kiro-cli"), application="Kiro", windowed=True, off_switch="disabled", syntax="shell"),
    Agent("junie", "Junie", ("junie",), ("@jetbrains/junie",)),
    Agent("custom", "the agent", off_switch="either"),
)  # fmt: skip

AGENTS: Final = {agent.type: agent for agent in _LIST}
"""The agents by type."""

INJECTED: Final = frozenset(
    {"claude-code", "codex", "copilot", "gemini", "kilo", "opencode", "qoder", "qwen"}
)
"""The agents that are given governed servers when they start, unless the user chooses otherwise.

``agents.injection`` knows how.
"""


def usual_way(agent_type: str) -> Way:
    """Return how an agent's servers are put behind the gate if the user does not choose."""
    return "inject" if agent_type in INJECTED else "rewrite"
