"""Servers that are added to the agent's config during a run: put behind the gate, or reported.

A new entry in a file that ``wrap`` rewrites is rewritten too. A server that stays outside the gate
is reported at once, in the record, in ``thoughtgate status`` and at the end of the run. A config
file that was deleted is reported and recorded.
"""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final

from thoughtgate.agents.config_watch import ConfigWatch, FoundServer
from thoughtgate.agents.discovery import Plan
from thoughtgate.core.record_events import Record, config_changed
from thoughtgate.errors import ThoughtGateError
from thoughtgate.wrap.server_report import ServerReport
from thoughtgate.wrap.strategy import Outcome

MAX_NAMED: Final = 200
"""Maximum servers that one run reports; an agent that writes its config can add any number."""

MISSED: Final = 2
"""How many looks in a row a file must be missing: some programs delete a file and write it again."""

RESTART: Final = "if the agent runs it already, it is not governed until the agent starts it again"
NEXT_START: Final = "added during the run; this run does not govern it, the next start does"

RewriteAdded = Callable[[], tuple[Plan, Outcome] | None]


class AddedServers:
    """Watches the config files of one run."""

    def __init__(
        self,
        plan: Plan,
        outcome: Outcome,
        report: ServerReport,
        *,
        note: Callable[[Record], None],
        say: Callable[[str], None],
        rewrite_added: RewriteAdded | None,
        is_ours: Callable[[Sequence[Any]], bool],
    ) -> None:
        """Start from the servers that the agent was given.

        Args:
            plan: what was discovered at the start.
            outcome: which of its servers are behind the gate.
            report: gets the new servers.
            note: puts an event on record.
            say: prints a line for the user.
            rewrite_added: rewrites new servers; None if this run rewrites no file.
            is_ours: tells whether a command line runs behind the gate.
        """
        self._watch = ConfigWatch(plan, outcome.written, is_ours)
        self._missing = dict.fromkeys(map(Path, outcome.files), 0)
        self._report = report
        self._note = note
        self._say = say
        self._rewrite_added = rewrite_added
        self._named: set[tuple[str, str]] = set()
        self.outside: list[tuple[str, str]] = []
        """The servers that were added and are not governed, each with the reason."""

    def look(self, at: float) -> None:
        """Look for added servers and deleted files."""
        for path, times in self._missing.items():
            self._missing[path] = 0 if path.exists() else times + 1
            if self._missing[path] == MISSED:
                self._removed(path, at)
        added = self._watch.added()
        if added:
            self._added(added, at)

    def _added(self, added: Collection[FoundServer], at: float) -> None:
        entries = [one for one in added if not one.reason]
        outcome, reason = None, NEXT_START
        if entries and self._rewrite_added is not None:
            try:
                rewrite = self._rewrite_added()
            except (ThoughtGateError, OSError) as error:
                reason = f"added during the run and cannot be put behind the gate: {error}"
            else:
                if rewrite is None:
                    return  # the file is being written; the next look finds it again
                plan, outcome = rewrite
                self._missing |= dict.fromkeys(map(Path, outcome.files), 0)
                started = {one.id for one in plan.entries if one.status != "disabled"}
                entries = [one for one in entries if one.name in started]
        self._watch.accept(added, outcome.written if outcome is not None else {})
        governed = set(outcome.configured) if outcome is not None else set()
        outside = dict(outcome.outside) if outcome is not None else {}
        self._report.configured = tuple(sorted({*self._report.configured, *governed}))
        for one in sorted([*entries, *(one for one in added if one.reason)]):
            if one.name in governed and not one.reason:
                self._tell(one, "", at)
            else:
                self._tell(one, one.reason or outside.get(one.name, reason), at)

    def _tell(self, one: FoundServer, reason: str, at: float) -> None:
        """Report a server that was added; with a reason if it is not governed."""
        if len(self._named) >= MAX_NAMED or (one.name, reason) in self._named:
            return
        self._named.add((one.name, reason))
        if reason:
            self._say(f"NOT GOVERNED: {one.name} in {one.file} ({reason})")
            self.outside.append((one.name, reason))
            self._report.outside = (*self._report.outside, (one.name, reason))
        else:
            self._say(f"added     {one.name} in {one.file} is behind the gate now; {RESTART}")
        change = "server_not_governed" if reason else "server_added"
        self._note(
            config_changed(
                at, one.name, change, one.file, governed=not reason, reason=reason or RESTART
            )
        )

    def _removed(self, path: Path, at: float) -> None:
        reason = "deleted while it is wrapped; it stays deleted unless somebody writes it again"
        self._say(f"warning: {path} was {reason}")
        self._note(config_changed(at, "", "file_removed", str(path), governed=False, reason=reason))
