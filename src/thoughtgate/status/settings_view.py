"""The settings in force, key by key, with where each value came from. Secrets are masked."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from thoughtgate.config.document import Document, dotted
from thoughtgate.config.document import Path as KeyPath
from thoughtgate.config.environment import VARIABLES, apply_environment
from thoughtgate.config.key_types import REQUIRED, Section
from thoughtgate.config.parse import parse
from thoughtgate.config.read_keys import Key, keys_of
from thoughtgate.config.settings import Settings
from thoughtgate.errors import ConfigError
from thoughtgate.gate.config_files import Loaded, load_document, secret_values
from thoughtgate.policy.redaction import Redactor

FILE: Final = "file"
DEFAULT: Final = "default"
ENVIRONMENT: Final = "environment"
FLAG: Final = "flag"

MAX_ROWS: Final = 2000
MAX_VALUE: Final = 400

_ONLY_NAMES: Final = frozenset({"env", "headers"})
"""Maps of a server whose values may be secrets, whatever they are called."""


class SettingRow(NamedTuple):
    """One key and its value."""

    key: str
    value: str
    source: str
    where: str
    """The file and line, the variable or the flag; empty for a default."""


class SettingsSection(NamedTuple):
    """A top-level part of the config."""

    name: str
    rows: list[SettingRow]

    @property
    def given(self) -> int:
        """How many values are not defaults."""
        return sum(row.source != DEFAULT for row in self.rows)


def describe_settings(loaded: Loaded, environ: Mapping[str, str]) -> list[SettingsSection]:
    """Return the settings by section, in the order of the reference."""
    sections: dict[str, list[SettingRow]] = {}
    for count, row in enumerate(_Walk(loaded, environ).rows()):
        if count >= MAX_ROWS:
            break
        name = row.key.partition(".")[0].partition("[")[0]
        is_alone = row.key == name
        sections.setdefault("general" if is_alone else name, []).append(row)
    return [SettingsSection(name, rows) for name, rows in sections.items()]


class _Walk:
    """Walks through the keys that a config may have."""

    def __init__(self, loaded: Loaded, environ: Mapping[str, str]) -> None:
        self._loaded = loaded
        self._file = _document(loaded)
        self._data, _ = apply_environment(self._file.data, environ)
        self._variables = [one for one in VARIABLES if one.key and environ.get(one.name)]
        self._redactor = Redactor(literals=secret_values(loaded.settings, environ))
        self._name = Path(loaded.path).name if loaded.path else "built-in starter policy"

    def rows(self) -> Iterator[SettingRow]:
        """Yield every key."""
        yield from self._section(Settings, self._data, (), defaults=True)

    def _section(
        self, section: Any, data: dict[str, Any], path: KeyPath, *, defaults: bool
    ) -> Iterator[SettingRow]:
        for name, key in keys_of(section).items():
            written = "mcpServers" if name == "servers" and "mcpServers" in data else name
            where = (*path, written)
            if written in data:
                yield from self._given(key, data[written], where, defaults=defaults)
            elif not defaults or key.default is REQUIRED:
                continue
            elif _is_section(key.shape.base) and key.default is not None:
                yield from self._section(key.shape.base, {}, where, defaults=True)
            else:
                yield self._flagged(SettingRow(dotted(where), _default(key), DEFAULT, ""))

    def _given(
        self, key: Key, value: Any, path: KeyPath, *, defaults: bool
    ) -> Iterator[SettingRow]:
        base, member = key.shape.base, key.shape.member
        if isinstance(value, dict) and _is_section(base):
            yield from self._section(base, value, path, defaults=defaults)
        elif isinstance(value, dict) and base is Mapping:
            # There may be many servers or workflows, so their defaults are left out.
            if not value:
                yield self._row(path, value)
            for name, one in value.items():
                if isinstance(one, dict) and member is not None and _is_section(member.base):
                    yield from self._section(member.base, one, (*path, name), defaults=False)
                else:
                    yield self._row((*path, name), one)
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield from (self._row((*path, at), one) for at, one in enumerate(value))
        else:
            yield self._row(path, value)

    def _row(self, path: KeyPath, value: Any) -> SettingRow:
        row = SettingRow(dotted(path), self._shown(path, value), *self._source(path, value))
        return self._flagged(row)

    def _flagged(self, row: SettingRow) -> SettingRow:
        """Return the row with the profile that a flag chose, if one did."""
        profile = self._loaded.settings.profile
        if row.key != "profile" or row.value == profile:
            return row
        return SettingRow(row.key, profile, FLAG, "--profile")

    def _source(self, path: KeyPath, value: Any) -> tuple[str, str]:
        if _found(self._file.data, path) != (value,):
            key = dotted(path)
            names = [one.name for one in self._variables if _sets(one.key, key)]
            return ENVIRONMENT, names[0] if names else ""
        line = next((self._file.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self._file.lines), 0)  # fmt: skip
        return FILE, f"{self._name}:{line}" if line else self._name

    def _shown(self, path: KeyPath, value: Any) -> str:
        name = str(path[-1])
        if len(path) > 2 and _ONLY_NAMES & {name, str(path[-2])}:  # noqa: PLR2004 - below a server
            return ", ".join(map(str, value)) if isinstance(value, dict) else "set, not shown"
        masked = self._redactor.mask_value({name: value})[name]
        text = masked if isinstance(masked, str) else json.dumps(masked, ensure_ascii=False)
        text = self._redactor.mask_text(text)
        return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"


def _document(loaded: Loaded) -> Document:
    """Return the file's content when it was loaded; nothing if it cannot be parsed again."""
    try:
        if loaded.path is None:
            return load_document(None)
        text = loaded.texts.get(str(Path(loaded.path).absolute()))
        if text is None:
            text = next(iter(loaded.texts.values()), "schema: 1\n")
        found = parse(text, file=loaded.path)
    except ConfigError:
        return Document({}, {})
    return found if isinstance(found.data, dict) else Document({}, {})


def _is_section(base: Any) -> bool:
    return isinstance(base, type) and issubclass(base, Section)


def _found(data: Any, path: KeyPath) -> tuple[Any, ...]:
    """Return the value at a path, alone in a tuple; an empty tuple if there is none."""
    for part in path:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return ()
    return (data,)


def _sets(keys: str, key: str) -> bool:
    """Tell whether a variable that sets ``keys`` sets this key."""
    parts = key.split(".")
    for one in keys.split(", "):
        names = one.split(".")
        if len(names) == len(parts) and all(
            a in {"*", b} for a, b in zip(names, parts, strict=True)
        ):
            return True
    return key == "listen.transport" and "listen.host" in keys


def _default(key: Key) -> str:
    value = key.default
    if value is None or value in ((), "", {}):
        return "not set"
    if isinstance(value, bool):
        return "true" if value else "false"
    if key.field.endswith("_s") and isinstance(value, (int, float)):
        return f"{value:g}s"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value))
    return str(value)[:MAX_VALUE]
