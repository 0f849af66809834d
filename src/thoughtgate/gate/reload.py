"""Reloads the config during a run, when one of its files changes or on request.

A change that only tightens the policy applies at once. A change that loosens it, or may loosen it,
waits for a person: until then both the policy in force and the changed one judge every call, and
the stricter verdict counts. If a file is invalid, the old rules stay in force. The record and the
operator log say what became of every change.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from thoughtgate.config.settings import Settings
from thoughtgate.core.approval import PENDING
from thoughtgate.core.record_events import POLICY_CHANGED, Record
from thoughtgate.core.run_summary import policy_reference
from thoughtgate.errors import ConfigError
from thoughtgate.gate.approvals.policy_questions import PolicyQuestion
from thoughtgate.gate.approvals.standing_questions import ACCEPTED, LAPSED, REFUSED, Answer
from thoughtgate.gate.clock import now
from thoughtgate.gate.config_files import Loaded, reload_configuration
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.policy_files.checked_files import changed_files, refused_files
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.policy.call import DEVELOPMENT
from thoughtgate.policy.layers import with_proposed
from thoughtgate.policy.policy import DEFAULT_WORKFLOW, Policy

if TYPE_CHECKING:
    from thoughtgate.gate.policy_files.policy_change import Change

Stamp = tuple[int, int, int]
"""Identifies a version of a file: inode, size, modification time."""

APPLIED: Final = "applied"
HELD: Final = "held"
INVALID: Final = "invalid"
UNCHANGED: Final = "unchanged"
AFTER_RESTART: Final = "needs_restart"
"""Nothing of the change applies before a restart."""

IN_FORCE: Final = frozenset({APPLIED, ACCEPTED, UNCHANGED, AFTER_RESTART})
"""Outcomes after which the files and the policy in force agree."""

AUTO: Final = "auto"
OFF: Final = "off"

NOBODY: Final = "nobody: it loosens nothing"
"""Who accepted a change that needed no acceptance."""
BY_CONFIG: Final = "nobody: reload is auto"


@dataclass(slots=True)
class HeldChange:
    """A change that waits for a person, or that nobody accepted."""

    loaded: Loaded
    change: "Change"
    status: str = ""
    """Empty until the question is asked; then ``pending``, ``refused`` or ``expired``."""
    approval: str = ""
    """The id of the question."""


class Reloader:
    """Keeps a governor's policy up to date with its config files."""

    def __init__(
        self,
        governor: Governor,
        loaded: Loaded,
        load: Callable[[], Loaded],
        say: Callable[[str], None],
        *,
        environ: Mapping[str, str] | None = None,
        transform: Callable[[Policy], Policy] = lambda policy: policy,
        adopt: Callable[[Settings], None] = lambda _: None,
        applied: Iterable[str] = (),
    ) -> None:
        """Reload with ``load``, which reads the config from where it was found at the start.

        ``transform`` adds to a loaded policy what the product itself contributes; ``adopt``
        applies new settings to other parts of the product, and ``applied`` names these settings.
        """
        self.loaded = replace(loaded, proposed=None)
        """The config in force."""
        self.needs_restart: tuple[str, ...] = ()
        """Settings of the config in force that this gate does not use before it is restarted."""
        self._at_start = self.loaded
        self.failure = ""
        """Why the last reload failed; empty if it succeeded."""
        self._governor = governor
        self._load = load
        self._say = say
        self._environ = environ or {}
        self._transform = transform
        self._adopt = adopt
        self._applied = tuple(applied)
        self._held: HeldChange | None = None
        self._rev = self._store_rev()
        """Policies that were accepted before this revision of the store are not news."""
        if loaded.proposed is not None:
            self._held = HeldChange(loaded.proposed, self._compare(loaded.proposed, now()))
            self._ask_both(loaded.proposed)
        self._stamps = self._look_at_files()

    def look(self, at: float) -> None:
        """Reload if one of the files has changed, or if a change was decided."""
        self._follow(at)
        stamps = self._look_at_files()
        # Stored even if the reload fails: an invalid file is reported once per change, not once
        # per second.
        before, self._stamps = self._stamps, stamps
        if before != stamps and self.loaded.settings.reload != OFF:
            self.reload(at)

    def reload(self, at: float) -> str:
        """Read the files again; return what became of the change."""
        try:
            loaded = self._load()
        except ConfigError as error:
            return self._fail(error, at)
        self.failure = ""
        if loaded.texts == self.loaded.texts:
            return self._take_back(at)
        if self._held is not None and loaded.texts == self._held.loaded.texts:
            return self._ask_again(at)
        self._withdraw("the file changed again", at)
        for warning in loaded.warnings:
            self._say(f"warning: {warning}")
        outcome = self._consider(loaded, at)
        # The new config may name other Cedar files.
        self._stamps = self._look_at_files()
        return outcome

    def _consider(self, loaded: Loaded, at: float) -> str:
        """Apply a changed config, or hold it for a person."""
        change = self._compare(loaded, at)
        by = self._accepted_by(loaded)
        if by:
            return self._apply(loaded, change, at, ACCEPTED, by=by)
        if change.needs_acceptance and self._is_enforced() and self._modes(loaded) != {AUTO}:
            self._held = HeldChange(loaded, change)
            self._ask_both(loaded)
            self._ask(at)
            return HELD
        if may_continue(loaded, self._environ):
            self._continue_from(loaded, BY_CONFIG if change.needs_acceptance else NOBODY, at)
        return self._apply(loaded, change, at, APPLIED)

    def _apply(
        self, loaded: Loaded, change: "Change", at: float, outcome: str, **facts: Any
    ) -> str:
        before = self.loaded
        questions = self._governor.policy_questions
        if outcome == ACCEPTED and questions is not None and loaded.path is not None:
            questions.take_accepted(loaded.own_file, str(facts.get("by", "")), at)
        self._held, self.loaded = None, loaded
        self._rev = self._store_rev()
        self._set_policy(loaded, self._transform(loaded.policy))
        self._adopt(loaded.settings)
        if not change.applies and outcome == APPLIED:
            outcome = AFTER_RESTART
        self._note(at, outcome, before, loaded, change, **facts)
        where = loaded.path or "the built-in starter"
        if outcome == AFTER_RESTART:
            self._say(f"policy    {where} changed; nothing of it applies before a restart")
        else:
            self._say(f"policy    reloaded from {where}")
        if change.after_restart:
            self._say(f"after a restart: {', '.join(change.after_restart)}")
        self._announce_restart(at)
        return outcome

    def _announce_restart(self, at: float) -> None:
        """Show in ``status`` which settings wait for a restart: all since this gate started."""
        before, self.needs_restart = self.needs_restart, ()
        if self.loaded.texts != self._at_start.texts:
            from thoughtgate.gate.policy_files.policy_change import find_change  # as below

            late = find_change(
                self._at_start, self.loaded, self._environ, at, applied=self._applied
            )
            self.needs_restart = late.after_restart
        if self.needs_restart != before:
            self._governor.announce(needs_restart=list(self.needs_restart))

    # A change that waits for a person.

    def _follow(self, at: float) -> None:
        """Ask about a held change, or act on the answer."""
        held = self._held
        if held is None:
            return
        if not held.status:
            self._ask(at)
            return
        by = self._accepted_by(held.loaded)
        if by:
            self._apply(held.loaded, held.change, at, ACCEPTED, by=by, approval=held.approval)
            return
        questions = self._governor.policy_questions
        if held.status == PENDING and questions is not None:
            self._settle(questions.follow(held.approval, at), at)

    def _ask(self, at: float) -> None:
        held, questions = self._held, self._governor.policy_questions
        if held is None:
            return
        answer = Answer(LAPSED)
        if questions is not None and held.change.is_whole:
            answer = questions.ask(self._question(held), at)
        held.status, held.approval = answer.status, answer.approval
        if answer.status == REFUSED:
            self._settle(answer, at)
            return
        self._note(at, HELD, self.loaded, held.loaded, held.change, approval=held.approval)
        path = self._question(held).file.path
        self._say(f"policy    {path} changed, but {held.change.words}: {self._how()}")
        self._say("until then the stricter verdict of the old and the new rules counts")

    def _how(self) -> str:
        """Return how to accept the held change."""
        held = self._held
        commands = [f"thoughtgate policy accept {held.loaded.path if held else ''}"]
        if held is not None and self._changes_floor(held.loaded):
            # The organisation's approvers decide; a restart reads its file as it is.
            commands = [] if held.approval else ["a restart of this gate"]
        if held is not None and held.approval:
            commands.insert(0, f"thoughtgate approvals approve {held.approval}")
        return f"accept it with: {', or: '.join(commands)}"

    def _ask_again(self, at: float) -> str:
        """Ask again about a held change whose question was not answered in time."""
        self._follow(at)
        held = self._held
        if held is None:
            return ACCEPTED
        if held.status == LAPSED:
            self._ask(at)
        return REFUSED if held.status == REFUSED else HELD

    def _settle(self, answer: Answer, at: float) -> None:
        held = self._held
        if held is None or answer.status == PENDING:
            return
        facts: dict[str, Any] = {"approval": answer.approval, "by": answer.by}
        if answer.status == ACCEPTED:
            if self._changes_floor(held.loaded):
                # The question named the organisation's file; it showed the user's change as well.
                self._continue_from(held.loaded, answer.by, at)
            self._apply(held.loaded, held.change, at, ACCEPTED, **facts)
            return
        held.status = answer.status
        path = self._question(held).file.path
        if answer.status == REFUSED:
            self._set_policy(self.loaded, self._transform(self.loaded.policy))
            self._say(f"policy    the change of {path} was refused: the old rules stay")
        else:
            self._say(f"policy    nobody accepted {path} in time: {self._how()}")
        self._note(at, answer.status, self.loaded, held.loaded, held.change, **facts)

    def _take_back(self, at: float) -> str:
        """Return to the config in force, because the files say the same as it does again."""
        held = self._held
        self._withdraw("the file says again what is in force", at)
        if held is not None:
            self._held = None
            self._set_policy(self.loaded, self._transform(self.loaded.policy))
            self._note(at, UNCHANGED, self.loaded, self.loaded, None, since=held.loaded)
            self._say("policy    the change was taken back")
        self._stamps = self._look_at_files()
        return UNCHANGED

    def _withdraw(self, reason: str, at: float) -> None:
        held, questions = self._held, self._governor.policy_questions
        if held is not None and held.status == PENDING and questions is not None:
            questions.withdraw(held.approval, reason, at)

    def _question(self, held: HeldChange) -> PolicyQuestion:
        floor = self.loaded.floor
        is_floor = self._changes_floor(held.loaded)
        return PolicyQuestion(
            held.loaded.floor_file if is_floor else held.loaded.own_file,
            held.change.digest,
            dict(held.change.shown),
            f"the file changed, and {held.change.words}",
            self.loaded.policy.version,
            (floor.workflow if is_floor and floor else "") or DEFAULT_WORKFLOW,
        )

    def _changes_floor(self, loaded: Loaded) -> bool:
        """Tell whether another config changes the organisation's policy."""
        return self.loaded.floor is not None and self.loaded.floor_file != loaded.floor_file

    def _modes(self, loaded: Loaded) -> set[str]:
        """Return the ``reload`` of each policy that another config changes."""
        floor, own = self.loaded.floor, self.loaded.settings.reload
        if floor is None or not self._changes_floor(loaded):
            return {own}
        is_alone = _without_floor(self.loaded) == _without_floor(loaded)
        return {floor.reload} if is_alone else {floor.reload, own}

    def _accepted_by(self, loaded: Loaded) -> str:
        """Return who accepted exactly this config while this gate runs; empty if nobody did."""
        questions = self._governor.policy_questions
        if questions is None or not _differs_only_in_own(self.loaded, loaded):
            return ""
        return questions.accepted_since(loaded.own_file, self._rev)

    def _continue_from(self, loaded: Loaded, by: str, at: float) -> None:
        """Let gates that start from now on compare with the new config instead of the old one."""
        questions = self._governor.policy_questions
        # A gate that only observes must not decide what another gate enforces.
        if questions is not None and self._is_enforced() and loaded.path is not None:
            questions.continue_from(self.loaded.own_file.digest, loaded.own_file, by, at)

    # Applying and reporting.

    def _compare(self, loaded: Loaded, at: float) -> "Change":
        # Imported here: most runs see no change, and a shim must stay small.
        from thoughtgate.gate.policy_files.policy_change import find_change

        return find_change(self.loaded, loaded, self._environ, at, applied=self._applied)

    def _store_rev(self) -> int:
        questions = self._governor.policy_questions
        return questions.rev() if questions is not None else 0

    def _is_enforced(self) -> bool:
        return self.loaded.policy.profile != DEVELOPMENT

    def _ask_both(self, proposed: Loaded) -> None:
        """Have every call judged by the policy in force and by the proposed one."""
        policy = self._transform(self.loaded.policy)
        self._set_policy(self.loaded, with_proposed(policy, self._transform(proposed.policy)))

    def _set_policy(self, loaded: Loaded, policy: Policy) -> None:
        self._governor.judge.replace_policy(policy)
        self._governor.approvals.reload(loaded.settings.approval, policy.redactor, policy.version)

    def _fail(self, error: ConfigError, at: float) -> str:
        self.failure = str(error)
        for problem in error.problems:
            self._say(f"config not reloaded: {problem}")
        self._say("the old rules stay in force; check with: thoughtgate validate-config")
        named = [problem.file for problem in error.problems]
        files = refused_files(self.loaded.texts, named)
        self._note(at, INVALID, self.loaded, None, None, files=files)
        return INVALID

    def _note(
        self,
        at: float,
        outcome: str,
        old: Loaded,
        new: Loaded | None,
        change: "Change | None",
        *,
        since: Loaded | None = None,
        files: list[dict[str, str]] | None = None,
        **facts: Any,
    ) -> None:
        """Record what became of a change, with the files that changed and what is read now.

        ``since`` is the config that the files had before, if that is not the one in force.
        """
        current = new or old
        if files is None:
            files = changed_files((since or old).texts, current.texts)
        told: dict[str, Any] = {
            **policy_reference(self._governor.policy),
            "loaded": outcome in IN_FORCE,
            "outcome": outcome,
            "old_version": old.policy.version,
            "sources": [source.as_recorded() for source in current.sources],
            "changed_files": files,
        }
        if new is not None:
            told["new_version"] = new.policy.version
        if change is not None:
            told["effect"] = change.effect
            told["change_digest"] = change.digest
            if change.after_restart:
                told["after_restart"] = list(change.after_restart)
        told |= {name: value for name, value in facts.items() if value}
        self._governor.note(Record(POLICY_CHANGED, at, "", "0", {"policy": told}))
        self._governor.flush_quietly()

    def _look_at_files(self) -> dict[str, Stamp]:
        names = {*self.loaded.texts, *(self._held.loaded.texts if self._held else ())}
        return {name: _stamp(name) for name in sorted(names)}


def may_continue(loaded: Loaded, environ: Mapping[str, str]) -> bool:
    """Tell whether a change that this gate applies by itself counts as accepted for other gates.

    Not if an agent started the gate and chose the values of its variables: for other gates, the
    same file may be looser. Commands that agents usually start ignore such variables.
    """
    if loaded.agent_started:
        return True
    # Imported here: most runs see no change, and a shim must stay small.
    from thoughtgate.gate.approvals.started_by_agent import is_inside_agent

    return not is_inside_agent(environ, state_directory(environ))


def watch_config(
    governor: Governor,
    loaded: Loaded,
    environ: Mapping[str, str],
    say: Callable[[str], None],
    **product: Any,
) -> Reloader:
    """Make a governor check its config files for changes while it judges.

    ``product`` is what the product adds: see ``Reloader``.
    """

    def load() -> Loaded:
        return reload_configuration(loaded, environ)

    reloader = Reloader(governor, loaded, load, say, environ=environ, **product)
    if loaded.files:
        governor.watch = reloader.look
    return reloader


def _differs_only_in_own(old: Loaded, new: Loaded) -> bool:
    """Tell whether two configs differ only in the file of the settings and the files it names."""

    def others(loaded: Loaded) -> dict[str, str]:
        own = loaded.own_file.texts
        return {name: text for name, text in loaded.texts.items() if name not in own}

    return others(old) == others(new)


def _without_floor(loaded: Loaded) -> dict[str, str]:
    floor = loaded.floor_file.texts
    return {name: text for name, text in loaded.texts.items() if name not in floor}


def _stamp(name: str) -> Stamp:
    try:
        status = Path(name).stat()
    except OSError:
        # A missing file counts as a version, so that removing and restoring it are both noticed.
        return (0, 0, 0)
    return (status.st_ino, status.st_size, status.st_mtime_ns)
