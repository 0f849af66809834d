"""The types of config keys: how a value from the file is parsed and checked, and its JSON Schema.

``settings`` writes them as ``Annotated`` types, so that the rest of the program sees plain
floats, texts and tuples. ``read_keys`` applies them, ``json_schema`` describes them.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Self

from thoughtgate.config.document import Path
from thoughtgate.config.durations import parse_duration, parse_size
from thoughtgate.policy.conditions import parse_conditions
from thoughtgate.policy.facts import ESTABLISHED, FACTS
from thoughtgate.policy.globs import Glob
from thoughtgate.policy.regexes import Pattern
from thoughtgate.policy.words import split_words

BUILT_IN_CHANNELS: Final = ("console", "terminal", "slack", "webhook", "elicitation")
"""The approval channels that ThoughtGate itself provides; packages can add others."""


MIB: Final = 1024 * 1024

RELOAD_MODES: Final = ("ask", "auto", "off")


class Section:
    """A part of the file with its own keys."""

    __slots__ = ()

    @classmethod
    def from_keys(cls, keys: dict[str, Any], path: Path) -> Self:
        """Return the settings for checked keys; ``path`` is where in the file they are."""
        del path
        return cls(**keys)


@dataclass(frozen=True, eq=False)
class Parsed:
    """Marks a type whose values are written in another form, and parses that form."""

    parse: Callable[[Any], Any]
    """Raises ValueError with a message for the user."""
    schema: Mapping[str, Any] | None = None
    """Describes the written form; without it, the schema of the type itself applies."""


class Checked:
    """Marks a type that allows only some values.

    ``check`` raises ValueError with a message for the user; ``schema`` is added to the type's own.
    """

    def __init__(self, check: Callable[[Any], object], **schema: Any) -> None:
        """Keep the check, and how JSON Schema expresses it."""
        self.check = check
        self.schema = schema


REQUIRED: Final = object()
"""Stands for the default of a key that has none."""


@dataclass(frozen=True, eq=False)
class FileKey:
    """A key of the file that is not a field of the settings: ``from_keys`` turns it into fields."""

    type: Any
    default: Any = REQUIRED


NOT_A_KEY: Final = object()
"""Marks a field that ``from_keys`` fills in: the file has no key for it."""


def one_of(*values: str | int) -> Parsed:
    """Allow these values only."""
    names = [repr(value) for value in values]
    words = " or ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)

    def choose(value: Any) -> Any:
        if not any(value == one and type(value) is type(one) for one in values):
            raise ValueError(f"unknown value; must be {words}")
        return value

    kind = "string" if isinstance(values[0], str) else "integer"
    allowed = {"enum": list(values)} if names[1:] else {"const": values[0]}
    return Parsed(choose, {"type": kind, **allowed})


def between(least: float, most: float | None = None, words: str = "") -> Checked:
    """Allow numbers from ``least`` to ``most``."""

    def check(value: float) -> None:
        if value < least:
            raise ValueError(words or f"must be at least {least}")
        if most is not None and value > most:
            raise ValueError(words or f"must be at most {most}")

    return Checked(check, minimum=least, **({} if most is None else {"maximum": most}))


def matching(pattern: str, words: str) -> Checked:
    """Allow texts that match a pattern."""

    def check(value: str) -> None:
        if not re.fullmatch(pattern, value):
            raise ValueError(words)

    return Checked(check, pattern=pattern)


def not_empty(value: str | tuple[Any, ...]) -> None:
    """Refuse an empty text or list."""
    if not value:
        raise ValueError("must not be empty")


def _duration(value: Any) -> float:
    return parse_duration(value if isinstance(value, str) else "")


def _size(value: Any) -> Any:
    return value if isinstance(value, bool) else parse_size(str(value))


def _one_or_more(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


ONE_OR_MORE: Final = Parsed(
    _one_or_more, {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
)
"""Lets a list of one text be written as the text alone."""


def _reload_mode(value: Any) -> Any:
    if isinstance(value, bool):
        return "ask" if value else "off"
    if value not in RELOAD_MODES:
        raise ValueError("unknown value; must be 'ask', 'auto' or 'off'")
    return value


def _word(value: str) -> None:
    if split_words(value) != {value.lower()}:
        raise ValueError(
            "must be a single word, because names are split at punctuation and camel case"
        )


Text = Annotated[str, Checked(not_empty, minLength=1)]
Texts = tuple[Text, ...]
VariableName = Annotated[
    str,
    matching(
        r"^[A-Za-z_][A-Za-z0-9_]*$", "must be the name of an environment variable, not its value"
    ),
]
GlobText = Annotated[str, Checked(Glob)]
Globs = Annotated[tuple[GlobText, ...], ONE_OR_MORE, Checked(not_empty)]
ScopeText = Annotated[
    str, matching(r"^[!#-\[\]-~]+$", 'must be a scope: printable ASCII without spaces, " and \\')
]
Scopes = Annotated[tuple[ScopeText, ...], ONE_OR_MORE, Checked(not_empty)]
Regex = Annotated[str, Checked(Pattern)]
Words = Annotated[
    tuple[Annotated[str, Checked(_word, minLength=1)], ...], Checked(not_empty, minItems=1)
]
Duration = Annotated[float, Parsed(_duration, {"type": "string", "examples": ["30s", "10m"]})]
Size = Annotated[int, Parsed(_size, {"type": ["integer", "string"], "examples": ["10MiB"]})]
When = Annotated[Mapping[str, Any], Checked(parse_conditions)]
Facts = tuple[Annotated[str, one_of(*ESTABLISHED)], ...]
WhenFacts = Annotated[tuple[Annotated[str, one_of(*FACTS)], ...], Checked(not_empty, minItems=1)]
Port = Annotated[int, between(1, 65_535, "must be a valid port number, 1 to 65535")]
PortOrZero = Annotated[int, between(0, 65_535, "must be 0 or a valid port number, 1 to 65535")]
Count = Annotated[int, between(1)]
ChannelName = Annotated[
    str,
    Checked(not_empty),
    # Any name, because packages can add channels; ``checks`` checks that the channel exists.
    Parsed(
        lambda value: value,
        {"anyOf": [{"enum": list(BUILT_IN_CHANNELS)}, {"type": "string", "minLength": 1}]},
    ),
]
Action = Annotated[str, one_of("forward", "deny", "approve", "policy")]
ReloadMode = Annotated[
    str, Parsed(_reload_mode, {"anyOf": [{"enum": list(RELOAD_MODES)}, {"type": "boolean"}]})
]
