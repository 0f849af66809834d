"""The pinned form of a definition: a canonical text and its digest, whatever the order and layout.

A definition is what a server says about a tool, prompt or resource, or about itself.
"""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

from thoughtgate.core.answers import INSTRUCTIONS
from thoughtgate.wire.canonical import NotCanonical
from thoughtgate.wire.fast_frame import canonical_quickly
from thoughtgate.wire.message import Json

TOOL: Final = "tool"
PROMPT: Final = "prompt"
RESOURCE: Final = "resource"
SERVER: Final = "server"

TEXTS: Final = frozenset({"title", "description", INSTRUCTIONS})
"""Members that are texts for the model: runs of white space in them mean nothing."""

MAX_TEXT: Final = 262_144
"""Characters of a definition that can be pinned; no model reads as much about one tool."""

_DATE: Final = re.compile(r"[0-9TZ:.+-]{1,40}\Z")
"""The characters of a resource's date: any other text could be meant for the model."""

_SETS: Final = frozenset({"required", "enum", "type"})
"""Lists of a JSON Schema whose order means nothing."""

_SPACE: Final = re.compile(r"[ \t\r\n]+")
"""Only characters that every reader shows as white space: other spaces may hide something."""

_MAX_DEPTH: Final = 64
"""Maximum nesting of a definition that is compared; messages may be nested deeper."""


class Definition(NamedTuple):
    """What a server says about one thing."""

    kind: str
    name: str
    text: str
    """Canonical JSON; empty if it has none, or is too long to be pinned."""
    digest: str
    """Digest of the text; of an unreadable definition, a value that no text has."""

    @property
    def is_readable(self) -> bool:
        """Whether there is a text that people can look at."""
        return bool(self.text)

    @property
    def body(self) -> dict[str, Any]:
        """The members that are pinned."""
        said: dict[str, Any] = json.loads(self.text) if self.text else {}
        return said


def define(kind: str, name: str, entry: Mapping[str, Json]) -> Definition:
    """Return what is pinned of an entry of a list, or of a server's introduction."""
    kept = {member: value for member, value in entry.items() if not _is_passing(member, value)}
    said = kept.get("annotations")
    if type(said) is dict and _DATE.match(str(said.get("lastModified"))):
        kept["annotations"] = {key: one for key, one in said.items() if key != "lastModified"}
    try:
        text = canonical_quickly(_normal(kept, "", 0))
    except NotCanonical:
        return Definition(kind, name, "", "unreadable")
    digest = sha256(text.encode()).hexdigest()
    if len(text) > MAX_TEXT:
        # The digest still tells two such definitions apart.
        return Definition(kind, name, "", f"too-long:{digest}")
    return Definition(kind, name, text, digest)


def _is_passing(member: str, value: Json) -> bool:
    """Tell whether a member says nothing about what an entry is for, and may change any time."""
    return member == "_meta" or (member == "size" and type(value) in {int, float})


def _normal(value: Json, member: str, depth: int) -> Json:
    """Return a value without what does not count: layout of texts, order of sets, images."""
    if depth > _MAX_DEPTH:
        raise NotCanonical("it is too deep")
    if type(value) is dict:
        return {key: _normal(inner, key, depth + 1) for key, inner in value.items()}
    if type(value) is list:
        made = [_normal(inner, member, depth + 1) for inner in value]
        if member in _SETS and all(type(one) is str for one in made):
            return sorted(made)
        return made
    if type(value) is str:
        if member in TEXTS:
            return _SPACE.sub(" ", value).strip(" ")
        if member == "src" and value.startswith("data:"):
            head = value.partition(",")[0][:64]
            return f"{head},sha256:{sha256(value.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return value
