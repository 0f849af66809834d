"""The JSON Schema of the config file, for editors and for the reference page."""

import ast
import inspect
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

from thoughtgate.config.durations import render_duration
from thoughtgate.config.key_types import REQUIRED
from thoughtgate.config.read_keys import Key, Shape, keys_of
from thoughtgate.config.settings import Settings

_TYPES: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the config file."""
    writer = _Writer()
    schema = writer.section(Settings)
    schema["properties"]["mcpServers"] = schema["properties"]["servers"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "$defs": dict(sorted(writer.sections.items())),
    }


class _Writer:
    """Writes the sections that it meets, each once."""

    def __init__(self) -> None:
        self.sections: dict[str, dict[str, Any]] = {}

    def section(self, section: Any) -> dict[str, Any]:
        keys = keys_of(section)
        by_field = {key.field: name for name, key in keys.items()}
        properties = {}
        for ancestor in reversed(section.__mro__[:-1]):
            for field, meaning in _meanings(ancestor):
                name = by_field[field]
                properties[name] = {**self._property(keys[name]), "description": meaning}
        required = [name for name in properties if keys[name].default is REQUIRED]
        return {
            "type": "object",
            "description": inspect.getdoc(section),
            "additionalProperties": False,
            "properties": properties,
            **({"required": required} if required else {}),
        }

    def _property(self, key: Key) -> dict[str, Any]:
        """Describe a key; defaults are written as in a file, and those of sections are left out."""
        schema = self._shape(key.shape)
        if schema.get("examples") == ["30s", "10m"]:
            return {**schema, "default": render_duration(key.default)}
        default = list(key.default) if isinstance(key.default, tuple) else key.default
        says_nothing = default in ("", []) and schema.keys() & {"enum", "pattern"}
        if isinstance(default, str | int | float | list) and not says_nothing:
            return {**schema, "default": default}
        return schema

    def _shape(self, shape: Shape) -> dict[str, Any]:
        written = next((parser.schema for parser in shape.parsers), None)
        schema = self._base(shape) if written is None else dict(written)
        for check in shape.checks:
            schema |= check.schema
        return schema

    def _base(self, shape: Shape) -> dict[str, Any]:
        base, member = shape.base, shape.member
        if member is not None and base is tuple:
            return {"type": "array", "items": self._shape(member)}
        if member is not None:
            allowed = True if member.base is Any else self._shape(member)
            return {"type": "object", "additionalProperties": allowed}
        if base in _TYPES:
            return {"type": _TYPES[base]}
        if base.__name__ not in self.sections:
            self.sections[base.__name__] = self.section(base)
        return {"$ref": f"#/$defs/{base.__name__}"}


def _meanings(section: type) -> Iterator[tuple[str, str]]:
    """Yield the keys that a class declares, each with the line below it."""
    (declaration,) = ast.parse(inspect.getsource(section)).body
    for declared, below in pairwise(getattr(declaration, "body", [])):
        if isinstance(declared, ast.Assign | ast.AnnAssign) and isinstance(below, ast.Expr):
            target = declared.target if isinstance(declared, ast.AnnAssign) else declared.targets[0]
            yield ast.unparse(target), str(ast.literal_eval(below.value))
