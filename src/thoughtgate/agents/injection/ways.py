"""The choice between injecting and rewriting, and the module that injects for each agent."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from thoughtgate.agents.catalog import Way, usual_way
from thoughtgate.agents.config_paths import Search
from thoughtgate.agents.discovery import Plan
from thoughtgate.agents.entries import Layer
from thoughtgate.agents.injection import claude_code, codex, copilot, gemini, opencode, qoder, qwen
from thoughtgate.agents.injection.claude_plugins import plugin_layers
from thoughtgate.agents.injection.codex_plugins import plugin_layers as codex_plugin_layers
from thoughtgate.agents.injection.command_line import first_word_of
from thoughtgate.agents.injection.injection import Governed, Injection
from thoughtgate.errors import ConfigError, Problem, UsageError

_INJECT: Final[dict[str, Callable[[Governed], Injection]]] = {
    "claude-code": claude_code.inject,
    "codex": codex.inject,
    "copilot": copilot.inject,
    "gemini": gemini.inject,
    "kilo": opencode.inject,
    "opencode": opencode.inject,
    "qoder": qoder.inject,
    "qwen": qwen.inject,
}

_PLUGIN_LAYERS: Final[dict[str, Callable[[Search], tuple[Layer, ...]]]] = {
    "claude-code": plugin_layers,
    "codex": codex_plugin_layers,
}
"""The servers of plugins, which rewriting config files cannot govern."""

_SUBCOMMANDS: Final = {
    "claude-code": claude_code.SUBCOMMANDS,
    "codex": codex.SUBCOMMANDS,
    "copilot": copilot.SUBCOMMANDS,
    "qoder": qoder.SUBCOMMANDS,
    "qwen": qwen.SUBCOMMANDS,
}
"""Words on an agent's command line that use the servers in its files."""


MAX_TEXT: Final = 120_000
"""Maximum bytes of one argument or variable; Linux passes at most 128 KiB."""


class Choice(NamedTuple):
    """How the servers of one run are put behind the gate."""

    way: Way
    reason: str = ""
    """Why it is not the agent's usual way; empty if it is."""


def can_inject(agent_type: str) -> bool:
    """Tell whether an agent can be given servers when it starts."""
    return agent_type in _INJECT


def search_for_injection(search: Search) -> Search:
    """Return where to look for the servers of an agent for which they are injected."""
    injecting = replace(search, injects=True)
    layers = _PLUGIN_LAYERS.get(search.agent_type)
    return replace(injecting, lowest=layers(injecting) if layers else ())


def inject(given: Governed) -> Injection:
    """Return how the agent of a plan is started with governed servers.

    Raises:
        ConfigError: the servers cannot be given to this agent.
    """
    injection = _INJECT[given.plan.agent.type](given)
    if max(map(_size, (*injection.command, *injection.variables.values()))) > MAX_TEXT:
        where = str(given.plan.files[0].path)
        message = "the servers are too large for a command line; use thoughtgate wrap --rewrite"
        raise ConfigError([Problem("", message, where)])
    return injection


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def choose_way(plan: Plan, wanted: Way | None, *, state: Path, remote: bool = True) -> Choice:
    """Choose between injecting and rewriting.

    Args:
        plan: the agent's servers, discovered for injecting.
        wanted: what the user asked for.
        state: the directory below which private files are written.
        remote: whether remote servers are to be put behind the gate.

    Raises:
        UsageError: the user wants to inject, and that is not possible for this command.
    """
    if wanted == "rewrite":
        return Choice("rewrite")
    obstacle = _obstacle(plan, state, remote=remote)
    if wanted == "inject" and obstacle:
        raise UsageError(f"--inject is not possible: {obstacle}; omit it, or use --rewrite")
    if wanted is None and usual_way(plan.agent.type) == "rewrite":
        return Choice("rewrite")
    return Choice("rewrite", obstacle) if obstacle else Choice("inject")


def _obstacle(plan: Plan, state: Path, *, remote: bool) -> str:
    """Return why servers cannot be given to this command; empty if they can."""
    agent, search = plan.agent, plan.search
    if not can_inject(agent.type):
        return f"{agent.name} takes its servers only from its files"
    if search.config_path is not None:
        return "--config-path names a file to govern"
    if not search.is_agent:
        return f"{search.argv[0]} may not pass on what {agent.name} is started with"
    word = first_word_of(search.argv, _SUBCOMMANDS.get(agent.type, frozenset()))
    if word:
        return f"'{word}' uses the servers in the files"
    return _own_obstacle(plan, state, remote=remote)


def _own_obstacle(plan: Plan, state: Path, *, remote: bool) -> str:
    """Return the obstacle that is specific to the plan's agent; empty if there is none."""
    kind = plan.agent.type
    if kind == "claude-code" and (managed := claude_code.managed_file(plan.search)):
        return f"Claude Code takes its servers only from {managed}, which an administrator manages"
    if kind == "copilot":
        return copilot.obstacle(plan.search.argv)
    if kind == "qoder":
        return qoder.obstacle(plan.search.argv, plan.entries)
    if kind == "gemini":
        return gemini.obstacle(plan.search, state)
    if kind == "codex" and remote and plan.with_status("remote"):
        return "Codex cannot be given a command for a server that its files reach by a URL"
    return ""
