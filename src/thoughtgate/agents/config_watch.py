"""Noticing servers that are added to an agent's config files while the agent runs.

Compares the entries that do not run behind the gate with those that were there before. A file
that cannot be read at the moment, because its writer has not finished, keeps its old entries.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from thoughtgate.agents.atomic import read_regular
from thoughtgate.agents.config_paths import config_layers
from thoughtgate.agents.discovery import MAX_FILE, Plan
from thoughtgate.agents.documents import read_back
from thoughtgate.agents.entries import KeyPath, Layer, UngovernedServer
from thoughtgate.agents.entry_shapes import argv_of, is_left_by_wrap, lookup
from thoughtgate.agents.ungoverned_servers import find_ungoverned_servers
from thoughtgate.errors import ConfigError


class FoundServer(NamedTuple):
    """A server that the agent may start without the gate, as its config defines it."""

    name: str
    file: str
    """The file, or another source such as a plugin."""
    key: KeyPath
    written: str
    reason: str = ""
    """Why it can never be put behind the gate; empty for an entry of a config file."""


class ConfigWatch:
    """Looks at the config files of one agent whenever its owner asks.

    Compares with what was planned and written, and not with what the files contain when the watch
    begins: a server that is added in between is not behind the gate either.
    """

    def __init__(
        self,
        plan: Plan,
        written: Mapping[Path, bytes] = MappingProxyType({}),
        is_ours: Callable[[Sequence[Any]], bool] = is_left_by_wrap,
    ) -> None:
        """Start from what a plan read, and from what was then written to some of its files.

        ``is_ours`` tells whether a command line runs behind the gate.
        """
        self._search = plan.search
        self._is_ours = is_ours
        self._signatures: dict[Path, tuple[int, ...] | None] = {}
        self._found: dict[Path, frozenset[FoundServer]] = {}
        self._known = frozenset(map(_outside, plan.outside))
        self.accept((), {file.real: file.content for file in plan.files} | dict(written))

    def accept(self, added: Iterable[FoundServer], written: Mapping[Path, bytes]) -> None:
        """Stop reporting these servers; of a file that was written, know what was written."""
        layers = self._layers()
        texts = [
            self._in_text(text, layers[real]) for real, text in written.items() if real in layers
        ]
        replaced = {str(layer.path) for real in written for layer in layers.get(real, ())}
        left = (one for one in added if one.file not in replaced)
        self._known = self._known.union(left, *(found for found in texts if found))

    def added(self) -> frozenset[FoundServer]:
        """Return the servers that were added or changed and are not known yet."""
        now = self._look()
        # A server that was removed is reported again if it comes back.
        self._known &= now
        return now - self._known

    def _layers(self) -> dict[Path, list[Layer]]:
        files: dict[Path, list[Layer]] = {}
        for layer in config_layers(self._search):
            files.setdefault(layer.real, []).append(layer)
        return files

    def _look(self) -> frozenset[FoundServer]:
        files = self._layers()
        for real, layers in files.items():
            signature = _signature(real)
            if real in self._signatures and self._signatures[real] == signature:
                continue
            found = self._entries(real, layers) if signature is not None else frozenset()
            if found is not None:
                # Only now: a file that was half written is read again, even if nothing else changes.
                self._signatures[real], self._found[real] = signature, found
        outside = frozenset(map(_outside, find_ungoverned_servers(self._search)))
        return outside.union(*(self._found.get(real, frozenset()) for real in files))

    def _entries(self, real: Path, layers: list[Layer]) -> frozenset[FoundServer] | None:
        """Return the entries of a file that do not run behind the gate; None if it cannot be read."""
        try:
            return self._in_text(read_regular(real, MAX_FILE), layers)
        except OSError:
            return None

    def _in_text(self, content: bytes, layers: Sequence[Layer]) -> frozenset[FoundServer] | None:
        try:
            values = read_back(content.decode(), layers[0].format)
        except (ValueError, ConfigError, RecursionError):
            return None
        return frozenset(
            FoundServer(
                str(name), str(layer.path), layer.key, json.dumps(raw, sort_keys=True, default=str)
            )
            for layer in layers
            for name, raw in _table(values, layer.key).items()
            if isinstance(raw, Mapping) and not self._is_ours(argv_of(raw))
        )


def _outside(one: UngovernedServer) -> FoundServer:
    return FoundServer(one.place, one.place, (), "", one.reason)


def _signature(path: Path) -> tuple[int, ...] | None:
    """Return values that change whenever a file's content does; None if there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    # The writer of a file can set its modification time back (utime), but not its change time.
    return status.st_ino, status.st_size, status.st_ctime_ns


def _table(values: Any, key: KeyPath) -> Mapping[str, Any]:
    table = lookup(values, key)
    return table if isinstance(table, Mapping) else {}
