"""Another policy while a run goes on: when its files change, or when somebody says so.

A file that is wrong changes nothing but what the record and the operator are told: the
old rules stay in force. The profile is the run's and does not change with the file, for
everybody who takes part was told it at the start.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from thoughtgate.config.settings import Settings, WorkflowSettings
from thoughtgate.core.record_events import POLICY_CHANGED, Record
from thoughtgate.core.run_summary import policy_reference
from thoughtgate.errors import ConfigError
from thoughtgate.gate.config_files import Loaded, load_configuration
from thoughtgate.gate.governor import Governor
from thoughtgate.policy.redaction import Redactor

Stamp = tuple[int, int, int]
"""What tells one version of a file from another: inode, size, time of change."""


@runtime_checkable
class Reloadable(Protocol):
    """A desk that can ask by other settings."""

    def reload(
        self, workflows: dict[str, WorkflowSettings], redactor: Redactor, policy_version: str
    ) -> None:
        """Ask by other settings from now on."""


@dataclass(slots=True)
class PolicyWatch:
    """Keeps a governor's policy the same as the files it came from."""

    governor: Governor
    loaded: Loaded
    load: Callable[[], Loaded]
    """Reads the configuration anew, from where it was found."""
    say: Callable[[str], None]
    adopt: Callable[[Settings], None] | None = None
    """Takes what else depends on the settings."""
    _stamps: dict[str, Stamp] | None = None

    def look(self, at: float) -> None:
        """Reload if one of the files has changed since the last look."""
        stamps = {name: _stamp(name) for name in self._files()}
        before, self._stamps = self._stamps, stamps
        if before is not None and before != stamps and self.loaded.settings.reload:
            self.reload(at)

    def reload(self, at: float) -> bool:
        """Read the files again; return whether what they say is now in force."""
        try:
            loaded = self.load()
        except ConfigError as error:
            for problem in error.problems:
                self.say(f"config not reloaded: {problem}")
            self.say("the old rules stay in force; check with: thoughtgate validate-config")
            self._note(at, loaded=False)
            return False
        for warning in loaded.warnings:
            self.say(f"warning: {warning}")
        self.loaded = loaded
        self._stamps = {name: _stamp(name) for name in self._files()}
        policy = loaded.policy
        self.governor.judge.replace_policy(policy)
        desk = self.governor.desk
        if isinstance(desk, Reloadable):
            desk.reload(dict(loaded.settings.approval), policy.redactor, policy.version)
        if self.adopt is not None:
            self.adopt(loaded.settings)
        self._note(at, loaded=True)
        self.say(f"policy    reloaded from {loaded.path or 'the built-in starter'}")
        return True

    def _note(self, at: float, *, loaded: bool) -> None:
        body = {"policy": {**policy_reference(self.governor.policy), "loaded": loaded}}
        self.governor.note(Record(POLICY_CHANGED, at, "", "0", body))
        self.governor.flush_quietly()

    def _files(self) -> list[str]:
        path = self.loaded.path
        if path is None:
            return []
        parent = Path(path).parent
        return [path, *(str(parent / source.file) for source in self.loaded.settings.cedar)]


def watch_policy(
    governor: Governor, loaded: Loaded, environ: Mapping[str, str], say: Callable[[str], None]
) -> PolicyWatch | None:
    """Have a governor look at the files of its policy as it judges; None without a file."""
    path = loaded.path
    if path is None:
        return None

    def load() -> Loaded:
        profile = loaded.policy.profile
        return load_configuration(path, environ, str(Path(path).parent), profile=profile)

    watch = PolicyWatch(governor, loaded, load, say)
    watch.look(0.0)
    governor.watch = watch.look
    return watch


def _stamp(name: str) -> Stamp:
    try:
        status = Path(name).stat()
    except OSError:
        return (0, 0, 0)
    return (status.st_ino, status.st_size, status.st_mtime_ns)
