"""Parses YAML 1.2 into plain data with line numbers: only the core schema, without tags.

The tree is built from the parser's events, so that this module decides what a plain scalar means:
``on`` and ``2024-01-01`` are text, ``010`` is ten, a duplicate key is an error, and aliases cannot
make a small file expand without limit.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, NoReturn, cast

from ruamel.yaml import YAML, events
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from thoughtgate.config.document import MAX_DEPTH, MAX_VALUES, Document, Path, syntax_error

_NULL: Final = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE: Final = frozenset({"true", "True", "TRUE"})
_FALSE: Final = frozenset({"false", "False", "FALSE"})
_INT: Final = re.compile(r"[-+]?[0-9]{1,64}|0o[0-7]{1,64}|0x[0-9a-fA-F]{1,64}")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_TEXT_TAGS: Final = frozenset({"!", "tag:yaml.org,2002:str"})


def parse_yaml(text: str, file: str) -> Document:
    """Read one YAML document.

    Raises:
        ConfigError: the text is not YAML, or uses a feature that is not supported.
    """
    try:
        return _Tree(YAML(typ="safe", pure=True).parse(text), file).read()
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = f"not valid YAML: {error.problem or error.context}"
        raise syntax_error(message, file, mark.line + 1 if mark else 0) from None
    except (YAMLError, RecursionError, ValueError) as error:
        raise syntax_error(f"not valid YAML: {str(error).splitlines()[0]}", file) from None


class _Tree:
    """Builds data from events, and keeps lines and anchors."""

    def __init__(self, parsed: Iterator[events.Event], file: str) -> None:
        self._events = parsed
        self._file = file
        self._lines: dict[Path, int] = {}
        self._anchors: dict[str, list[events.Event]] = {}
        self._values = 0

    def read(self) -> Document:
        data: Any = None
        documents = 0
        for event in self._events:
            if isinstance(event, events.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._fail("only one document is allowed; remove the second '---'", event, ())
                data = self._value(next(self._events), (), 0)
        return Document(data, self._lines)

    def _value(self, event: events.Event, path: Path, depth: int) -> Any:
        self._values += 1
        if depth > MAX_DEPTH or self._values > MAX_VALUES:
            self._fail("nested too deeply, or too many values", event, path)
        self._lines.setdefault(path, event.start_mark.line + 1)
        if isinstance(event, events.AliasEvent):
            return self._alias(event, path, depth)
        node = cast(
            "events.ScalarEvent | events.SequenceStartEvent | events.MappingStartEvent", event
        )
        if node.anchor is not None:
            self._record(node)
        if isinstance(node, events.ScalarEvent):
            return self._scalar(node, path)
        if node.tag is not None:
            self._fail("YAML tags are not supported", node, path)
        if isinstance(node, events.SequenceStartEvent):
            return self._sequence(path, depth)
        return self._mapping(path, depth)

    def _record(
        self, event: events.ScalarEvent | events.SequenceStartEvent | events.MappingStartEvent
    ) -> None:
        """Keep the events of an anchored value, to replay them at each alias."""
        recorded: list[events.Event] = [event]
        open_count = int(isinstance(event, events.SequenceStartEvent | events.MappingStartEvent))
        while open_count:
            following = next(self._events)
            recorded.append(following)
            open_count += isinstance(
                following, events.SequenceStartEvent | events.MappingStartEvent
            )
            open_count -= isinstance(following, events.SequenceEndEvent | events.MappingEndEvent)
        # Cleared, so that replaying the value does not record it again.
        anchor, event.anchor = event.anchor, None
        self._events = chain(recorded[1:], self._events)
        self._anchors[anchor] = recorded

    def _alias(self, event: events.AliasEvent, path: Path, depth: int) -> Any:
        recorded = self._anchors.get(event.anchor)
        # An alias inside its own anchor would be replayed without end.
        if recorded is None or event in recorded:
            self._fail(f"alias *{event.anchor} has no anchor before it", event, path)
        rest = self._events
        self._events = iter(recorded[1:])
        value = self._value(recorded[0], path, depth)
        self._events = rest
        return value

    def _sequence(self, path: Path, depth: int) -> list[Any]:
        members: list[Any] = []
        while not isinstance(event := next(self._events), events.SequenceEndEvent):
            members.append(self._value(event, (*path, len(members)), depth + 1))
        return members

    def _mapping(self, path: Path, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        while not isinstance(event := next(self._events), events.MappingEndEvent):
            key = self._key(event, path)
            if key in members:
                self._fail(f"duplicate key {key!r}; keep one of them", event, (*path, key))
            self._lines[(*path, key)] = event.start_mark.line + 1
            members[key] = self._value(next(self._events), (*path, key), depth + 1)
        return members

    def _key(self, event: events.Event, path: Path) -> str:
        if not isinstance(event, events.ScalarEvent):
            self._fail("a key must be plain text", event, path)
        # In quotes, it is an ordinary key.
        if event.value == "<<" and event.style is None:
            self._fail("merge keys (<<) are not supported; repeat the values", event, path)
        return str(event.value)

    def _scalar(self, event: events.ScalarEvent, path: Path) -> Any:
        text = event.value
        if event.tag is not None:
            if event.tag not in _TEXT_TAGS and str(event.tag) not in _TEXT_TAGS:
                self._fail("YAML tags are not supported", event, path)
            return text
        return text if event.style else _plain_value(text)

    def _fail(self, message: str, event: events.Event, path: Path) -> NoReturn:
        raise syntax_error(message, self._file, event.start_mark.line + 1, path)


def _plain_value(text: str) -> Any:
    """Resolve a plain scalar by the core schema of YAML 1.2."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INT.fullmatch(text):
        return int(text, 10 if text.lstrip("-+").isdigit() else 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
