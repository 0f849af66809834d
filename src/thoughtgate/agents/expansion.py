"""References to environment variables in config values.

The agent expands them, not the gate: expanding would put secrets into argv, and some agents
write expanded values back to their files. A rewrite therefore keeps every reference, and this
module finds those that cannot be resolved.

An undefined variable without a default is an error for Claude Code, Windsurf and Cursor, where
the server would get the literal text as an argument or token. It is a warning for Gemini CLI,
opencode and VS Code, which are documented to use an empty string or the literal text.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, Literal

Syntax = Literal["none", "shell", "dollar", "env", "brace-env"]

_NAME: Final = r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
_DEFAULT: Final = r"(?P<default>:-[^}]*)?"

_PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "shell": re.compile(rf"\$\{{{_NAME}{_DEFAULT}\}}"),
    "dollar": re.compile(rf"\$(?:\{{{_NAME}{_DEFAULT}\}}|(?P<bare>[A-Za-z_][A-Za-z0-9_]*))"),
    "env": re.compile(rf"\$\{{env:{_NAME}{_DEFAULT}\}}"),
    "brace-env": re.compile(rf"\{{env:{_NAME}\}}"),
}
"""In this order: ``${V}`` and ``${V:-d}``; the same and ``$V``; ``${env:V}``; ``{env:V}``."""


SIGNS: Final = ("${", "{env:", "{file:")
"""With these begin the references of all agents, also those to inputs and files."""


_IN_TEXT: Final = re.compile(r"\{(?P<kind>env|file):(?P<name>[^}]+)\}")
"""The references that opencode replaces in the text of a file, before it parses the text."""

Fill = Callable[[re.Match[str]], str]


def fillings(env: Mapping[str, str]) -> tuple[Fill, ...]:
    """Return what may take the place of references in a text.

    The variables as they are, and what a file may contain: nothing, a word, the end of a comment.
    """
    return (
        lambda one: env.get(one["name"], "") if one["kind"] == "env" else "x",
        lambda _: "",
        lambda _: "x",
        lambda _: "*/",
    )


def filled(value: Any, fill: Fill) -> Any:
    """Return a value with the references in all its texts replaced; keys stay as they are."""
    if isinstance(value, str):
        # What follows has no end of a reference; looking for one at every beginning is slow.
        end = value.rfind("}") + 1
        return _IN_TEXT.sub(fill, value[:end]) + value[end:]
    if isinstance(value, Mapping):
        return {key: filled(one, fill) for key, one in value.items()}
    return [filled(one, fill) for one in value] if isinstance(value, list) else value


def undefined_variables(
    value: Any, syntax: Syntax, env: Mapping[str, str], provided: Collection[str] = ()
) -> list[str]:
    """Return the undefined variables that a value refers to without a default.

    Args:
        value: a string, or lists and objects of strings.
        syntax: how the agent writes a reference.
        env: the environment that the agent gets.
        provided: names that the agent itself defines for its servers.
    """
    pattern = _PATTERNS.get(syntax)
    if pattern is None:
        return []
    found: dict[str, None] = {}
    for text in _strings(value):
        for match in pattern.finditer(text):
            groups = match.groupdict()
            name = groups["name"] or groups.get("bare") or ""
            if groups.get("default") is None:
                found[name] = None
    return [name for name in found if name not in env and name not in provided]


def has_reference(text: str, syntax: Syntax) -> bool:
    """Tell whether the agent, or one that is not in the catalog, may replace a part of a text."""
    pattern = _PATTERNS.get(syntax)
    return any(sign in text for sign in SIGNS) or (
        pattern is not None and pattern.search(text) is not None
    )


def expand(text: str, syntax: Syntax, env: Mapping[str, str]) -> str:
    """Expand the references in a text as the agent would; undefined ones are kept.

    Only for values that are not written to an agent's file again, such as a URL or a header.
    """
    pattern = _PATTERNS.get(syntax)
    if pattern is None:
        return text

    def fill(match: re.Match[str]) -> str:
        groups = match.groupdict()
        name = groups["name"] or groups.get("bare") or ""
        default = groups.get("default")
        return env.get(name, default.removeprefix(":-") if default is not None else match[0])

    return pattern.sub(fill, text)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
