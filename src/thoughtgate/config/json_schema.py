"""The JSON Schema of the config file, for editors and for the reference page."""

import ast
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Final, get_args, get_origin

from thoughtgate.config import settings
from thoughtgate.config.durations import render_duration
from thoughtgate.config.key_types import Checked, Parsed
from thoughtgate.config.read_keys import REQUIRED, Key, keys_of, split_type

_TYPES: Final = {str: "string", int: "integer", float: "number", bool: "boolean"}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of the config file."""
    writer = _Writer()
    schema = writer.section(settings.Settings)
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
        self._meanings = dict(_meanings(ast.parse(inspect.getsource(settings))))

    def section(self, section: Any) -> dict[str, Any]:
        keys = keys_of(section)
        by_field = {key.field: name for name, key in keys.items()}
        properties = {}
        for ancestor in reversed(section.__mro__):
            for field, meaning in self._meanings.get(ancestor.__name__, {}).items():
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
        """Describe a key; defaults are as one would write them, and those of sections are left out."""
        schema = self._type(key.type)
        if schema.get("examples") == ["30s", "10m"]:
            return {**schema, "default": render_duration(key.default)}
        default = list(key.default) if isinstance(key.default, tuple) else key.default
        says_nothing = default in ("", []) and schema.keys() & {"enum", "pattern"}
        if isinstance(default, str | int | float | list) and not says_nothing:
            return {**schema, "default": default}
        return schema

    def _type(self, type_: Any) -> dict[str, Any]:
        base, marks = split_type(type_)
        written = next((mark.schema for mark in marks if isinstance(mark, Parsed)), None)
        schema = self._base(base) if written is None else dict(written)
        for mark in marks:
            if isinstance(mark, Checked):
                schema |= mark.schema
        return schema

    def _base(self, type_: Any) -> dict[str, Any]:
        origin = get_origin(type_)
        if origin is tuple:
            return {"type": "array", "items": self._type(get_args(type_)[0])}
        if origin is Mapping:
            inner = get_args(type_)[1]
            return {
                "type": "object",
                "additionalProperties": True if inner is Any else self._type(inner),
            }
        if type_ in _TYPES:
            return {"type": _TYPES[type_]}
        if type_.__name__ not in self.sections:
            self.sections[type_.__name__] = self.section(type_)
        return {"$ref": f"#/$defs/{type_.__name__}"}


def _meanings(tree: ast.Module) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name of each class, and the line below each of its keys."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name, dict(_lines_below(node))


def _lines_below(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for declared, below in zip(node.body, node.body[1:], strict=False):
        if isinstance(declared, ast.Assign | ast.AnnAssign) and isinstance(below, ast.Expr):
            target = declared.target if isinstance(declared, ast.AnnAssign) else declared.targets[0]
            yield ast.unparse(target), str(ast.literal_eval(below.value))
