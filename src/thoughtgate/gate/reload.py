"""Reading the config again while a run goes on: when its files change, or when somebody says so.

The config file and every Cedar file that it names are watched. A file that is wrong
changes nothing but what the record and the operator are told: the old rules stay in
force. The profile is the run's and does not change with the file, because everybody who
takes part was told it at the start.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

from thoughtgate.config.settings import Settings, WorkflowSettings
from thoughtgate.core.record_events import POLICY_CHANGED, Record
from thoughtgate.core.run_summary import policy_reference
from thoughtgate.errors import ConfigError
from thoughtgate.gate.config_files import Loaded, load_configuration
from thoughtgate.gate.governor import Governor
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.redaction import Redactor

Stamp = tuple[int, int, int]
"""What tells one version of a file from another: inode, size, time of change."""


@runtime_checkable
class ReloadableApprovals(Protocol):
    """An approval queue that can ask by other settings."""

    def reload(
        self, workflows: dict[str, WorkflowSettings], redactor: Redactor, policy_version: str
    ) -> None:
        """Ask by other settings from now on."""


class Reloader:
    """Keeps a governor's policy the same as the files it came from."""

    def __init__(
        self,
        governor: Governor,
        loaded: Loaded,
        load: Callable[[], Loaded],
        say: Callable[[str], None],
    ) -> None:
        """``load`` reads the configuration anew, from where it was found."""
        self.loaded = loaded
        self.failure = ""
        """Why the last reading changed nothing; empty when it worked."""
        self.adopt: Callable[[Settings], None] | None = None
        """Takes what else depends on the settings."""
        self.transform: Callable[[Policy], Policy] = lambda policy: policy
        """Completes a policy that was read with what the product adds to it."""
        self._governor = governor
        self._load = load
        self._say = say
        self._stamps = self._look_at_files()

    def look(self, at: float) -> None:
        """Reload if one of the files has changed since the last look."""
        stamps = self._look_at_files()
        before, self._stamps = self._stamps, stamps
        if before != stamps and self.loaded.settings.reload:
            self.reload(at)

    def reload(self, at: float) -> bool:
        """Read the files again; return whether what they say is now in force."""
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
        self._stamps = self._look_at_files()
        policy = self.transform(loaded.policy)
        self._governor.judge.replace_policy(policy)
        approvals = self._governor.approvals
        if isinstance(approvals, ReloadableApprovals):
            approvals.reload(dict(loaded.settings.approval), policy.redactor, policy.version)
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
        path = self.loaded.path
        if path is None:
            return {}
        parent = Path(path).parent
        names = [path, *(str(parent / source.file) for source in self.loaded.settings.cedar)]
        return {name: _stamp(name) for name in names}


def watch_config(
    governor: Governor, loaded: Loaded, environ: Mapping[str, str], say: Callable[[str], None]
) -> Reloader:
    """Have a governor look at the files of its config as it judges."""
    path = loaded.path

    def load() -> Loaded:
        directory = str(Path(path).parent) if path is not None else str(Path.cwd())
        return load_configuration(path, environ, directory, profile=loaded.policy.profile)

    reloader = Reloader(governor, loaded, load, say)
    if path is not None:
        governor.watch = reloader.look
    return reloader


def _stamp(name: str) -> Stamp:
    try:
        status = Path(name).stat()
    except OSError:
        return (0, 0, 0)
    return (status.st_ino, status.st_size, status.st_mtime_ns)
