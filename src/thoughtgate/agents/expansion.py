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
"""The forms of a reference, in this order: ``${V}`` and ``${V:-d}``; these and ``$V``; ``${env:V}`` and
``${env:V:-d}``; ``{env:V}``."""


SIGNS: Final = ("${", "{env:", "{file:")
"""The beginnings of all agents' references, including those to inputs and files."""


_IN_TEXT: Final = re.compile(r"\{(?P<kind>env|file):(?P<name>[^}]+)\}")
"""The references that opencode replaces in the text of a file, before it parses the text."""

Fill = Callable[[re.Match[str]], str]


def fillings(env: Mapping[str, str]) -> tuple[Fill, ...]:
    """Return functions that each fill in the references of a text in one possible way.

    The first fills in the variables as they are. The contents of files can be anything, so the
    others try what could change the structure: nothing, a word, and the end of a comment.
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
        # No reference ends after the last brace. Without this cut, a text with many beginnings and
        # no end would take quadratic time.
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
    """Tell whether the agent may replace a part of a text, even if it is not in the catalog."""
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
