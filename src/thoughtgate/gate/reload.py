"""Reloads the config during a run, when one of its files changes or on request.

The config file and every Cedar file that it names are watched. If a file is invalid, the
old rules stay in force, and the record and the operator log say so. The profile belongs to
the run and does not change on a reload, because shims and clients learn it when they
connect.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from thoughtgate.config.settings import Settings
from thoughtgate.core.record_events import POLICY_CHANGED, Record
from thoughtgate.core.run_summary import policy_reference
from thoughtgate.errors import ConfigError
from thoughtgate.gate.config_files import Loaded, reload_configuration
from thoughtgate.gate.governor import Governor
from thoughtgate.policy.policy import Policy

Stamp = tuple[int, int, int]
"""Identifies a version of a file: inode, size, modification time."""


class Reloader:
    """Keeps a governor's policy up to date with its config files."""

    def __init__(
        self,
        governor: Governor,
        loaded: Loaded,
        load: Callable[[], Loaded],
        say: Callable[[str], None],
    ) -> None:
        """Reload with ``load``, which reads the config from where it was found at the start."""
        self.loaded = loaded
        self.failure = ""
        """Why the last reload failed; empty if it succeeded."""
        self.adopt: Callable[[Settings], None] | None = None
        """Applies the new settings to other parts of the product that depend on them."""
        self.transform: Callable[[Policy], Policy] = lambda policy: policy
        """Adds to a loaded policy what the product itself contributes."""
        self._governor = governor
        self._load = load
        self._say = say
        self._stamps = self._look_at_files()

    def look(self, at: float) -> None:
        """Reload if one of the files has changed since the last check."""
        stamps = self._look_at_files()
        # Stored even if the reload fails: an invalid file is reported once per change, not once
        # per second.
        before, self._stamps = self._stamps, stamps
        if before != stamps and self.loaded.settings.reload:
            self.reload(at)

    def reload(self, at: float) -> bool:
        """Read the files again; return whether the new config is in force."""
        try:
            loaded = self._load()
        except ConfigError as error:
            self.failure = str(error)
            for problem in error.problems:
                self._say(f"config not reloaded: {problem}")
            self._say("the old rules stay in force; check with: thoughtgate validate-config")
            self._note(at, loaded=False)
            return False
        self.failure = ""
        for warning in loaded.warnings:
            self._say(f"warning: {warning}")
        self.loaded = loaded
        # The new config may name other Cedar files.
        self._stamps = self._look_at_files()
        policy = self.transform(loaded.policy)
        self._governor.judge.replace_policy(policy)
        self._governor.approvals.reload(loaded.settings.approval, policy.redactor, policy.version)
        if self.adopt is not None:
            self.adopt(loaded.settings)
        self._note(at, loaded=True)
        self._say(f"policy    reloaded from {loaded.path or 'the built-in starter'}")
        return True

    def _note(self, at: float, *, loaded: bool) -> None:
        body = {"policy": {**policy_reference(self._governor.policy), "loaded": loaded}}
        self._governor.note(Record(POLICY_CHANGED, at, "", "0", body))
        self._governor.flush_quietly()

    def _look_at_files(self) -> dict[str, Stamp]:
        return {name: _stamp(name) for name in self.loaded.files}


def watch_config(
    governor: Governor, loaded: Loaded, environ: Mapping[str, str], say: Callable[[str], None]
) -> Reloader:
    """Make a governor check its config files for changes while it judges."""
    reloader = Reloader(governor, loaded, lambda: reload_configuration(loaded, environ), say)
    if loaded.files:
        governor.watch = reloader.look
    return reloader


def _stamp(name: str) -> Stamp:
    try:
        status = Path(name).stat()
    except OSError:
        # A missing file counts as a version, so that removing and restoring it are both noticed.
        return (0, 0, 0)
    return (status.st_ino, status.st_size, status.st_mtime_ns)
