"""Reading the config again while the hub runs: on SIGHUP, when the file changes, when asked.

A file that is wrong changes nothing, and everybody who should know is told. Of a good
one, only what changed restarts.
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from thoughtgate.config.settings import Settings
from thoughtgate.core.namespace import NoSelection
from thoughtgate.core.record_events import POLICY_CHANGED, Record
from thoughtgate.errors import ConfigError, PeerError
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import Loaded, load_configuration
from thoughtgate.gate.governor import Governor
from thoughtgate.hub.hub import hide_nowhere

LOOK_S: Final = 1.0
"""How often the file is looked at."""

_log: Final = logging.getLogger("thoughtgate.serve")


class Reloadable(Protocol):
    """What takes over a new config."""

    selection: Any

    async def apply(self, settings: Settings) -> list[str]:
        """Take it over; return what changed."""


class Reloader:
    """Watches one config file."""

    def __init__(
        self,
        loaded: Loaded,
        environ: Mapping[str, str],
        governor: Governor,
        hub: Reloadable,
        *,
        profile: str = "",
    ) -> None:
        self._path = Path(loaded.path).absolute() if loaded.path is not None else None
        self._environ = environ
        self._governor = governor
        self._hub = hub
        self._profile = profile
        self._seen = self._look()
        self._lock = asyncio.Lock()
        self.failure = ""
        """Why the last try changed nothing; empty when it worked."""

    async def watch(self) -> None:
        """Read the file again whenever it changes, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_S)
            seen = self._look()
            if seen is not None and seen != self._seen:
                await self.try_reload()

    async def try_reload(self) -> None:
        """Read the file again where nobody waits for the outcome."""
        try:
            told = await self.reload()
        except PeerError as error:
            _log.error("config not taken over: %s", error)
        else:
            _log.info("%s", told)

    async def reload(self) -> str:
        """Read the file again and return what changed, in words.

        Raises:
            PeerError: the file is wrong; nothing has changed.
        """
        if self._path is None:
            raise PeerError(
                "service_unavailable", "there is no config file: the starter policy applies"
            )
        async with self._lock:
            self._seen = self._look()
            try:
                loaded = load_configuration(
                    str(self._path),
                    self._environ,
                    str(self._path.parent),
                    profile=self._profile or None,
                )
            except ConfigError as error:
                self.failure = str(error)
                raise PeerError("service_unavailable", f"nothing was changed: {error}") from None
            self.failure = ""
            return await self._take_over(loaded)

    async def _take_over(self, loaded: Loaded) -> str:
        before = self._governor.policy.version
        self._governor.judge.replace_policy(hide_nowhere(loaded.policy))
        reload_desk = getattr(self._governor.desk, "reload", None)
        if reload_desk is not None:
            reload_desk(loaded.settings.approval, loaded.policy.redactor, loaded.policy.version)
        changed = await self._hub.apply(loaded.settings)
        if before != loaded.policy.version:
            facts = {"policy": {"before": before, "after": loaded.policy.version}}
            self._governor.note(Record(POLICY_CHANGED, now(), "", "0", facts))
            self._governor.flush_quietly()
        told = f"servers changed: {', '.join(changed)}" if changed else "no server changed"
        rules = "the rules changed" if before != loaded.policy.version else "the rules are the same"
        text = f"the config was read again; {told}; {rules}"
        selection = self._hub.selection
        return f"{text}; {selection.reason}" if isinstance(selection, NoSelection) else text

    def _look(self) -> tuple[int, int, int] | None:
        if self._path is None:
            return None
        try:
            facts = self._path.stat()
        except OSError:
            return None
        return facts.st_mtime_ns, facts.st_size, facts.st_ino
