"""``thoughtgate policy diff``: what a change of config loosens or tightens."""

import os
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Final

import typer

from thoughtgate.cli.audit_place import RecordOption, write_json
from thoughtgate.cli.audit_query import printable
from thoughtgate.cli.options import JsonOption, examples
from thoughtgate.cli.policy_replay import recorded_calls
from thoughtgate.config.settings import Settings, WorkflowSettings
from thoughtgate.core.comparison import Target, compare
from thoughtgate.core.record import NOWHERE
from thoughtgate.core.rule_changes import CHANGES, LOOSENS, TIGHTENS, UNTOLD, Change
from thoughtgate.runtime.configuration import Loaded, load_configuration

DIFF_EXAMPLES: Final = examples(
    "thoughtgate policy diff thoughtgate.yaml candidate.yaml",
    "thoughtgate policy diff old.yaml new.yaml --record audit.jsonl --fail-on-loosen",
)


def diff_command(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The config that applies.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The config that shall apply.")],
    *,
    record: RecordOption = None,
    fail: Annotated[
        bool,
        typer.Option(
            "--fail-on-loosen",
            help="Exit 1 when anything is loosened, or when that cannot be told.",
        ),
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Say what a change of config loosens and what it tightens.

    Tools are probed that either config names and, with --record, that were ever called.
    """
    before, after = _load(old), _load(new)
    calls = recorded_calls(record, "", "") if record else ()
    observed = [Target(*one.call[:3]) for one in calls if one.call.server != NOWHERE]
    changes = compare(before.policy, after.policy, observed, time.time())
    changes = [
        *_approvals(before.settings, after.settings),
        *_cedar(before.settings, after.settings),
        *changes,
    ]
    if json_:
        write_json([change._asdict() for change in changes])
    else:
        for line in _told(changes):
            sys.stdout.write(line + "\n")
    effects = {change.effect for change in changes}
    if fail and UNTOLD in effects and LOOSENS not in effects:
        sys.stderr.write("it cannot be told whether this loosens anything; look at it yourself\n")
    if fail and not effects.isdisjoint({LOOSENS, UNTOLD}):
        raise typer.Exit(1)


def _load(path: str) -> Loaded:
    return load_configuration(path, os.environ, str(Path.cwd()))


def _told(changes: list[Change]) -> Iterable[str]:
    if not changes:
        yield "no change of what is let through, asked for or refused"
    for effect in (LOOSENS, UNTOLD, CHANGES, TIGHTENS):
        found = [change for change in changes if change.effect == effect]
        if found:
            yield f"{effect.upper().replace('_', ' ')} ({len(found)})"
            for change in found:
                yield f"  {printable(change.subject)}: {change.before} -> {change.after}"


def _approvals(old: Settings, new: Settings) -> Iterable[Change]:
    for name in sorted(old.approval.keys() & new.approval.keys()):
        one, other = old.approval[name], new.approval[name]
        before, after = asdict(one), asdict(other)
        for field in sorted(before):
            if before[field] != after[field]:
                effect = _effect(field, one, other)
                subject = f"approval.{name}.{field}"
                yield Change(effect, subject, str(before[field]), str(after[field]))


def _cedar(old: Settings, new: Settings) -> Iterable[Change]:
    """Name Cedar files that came, went or changed; probes show only some of what they decide."""
    before = {Path(source.file).name: source.text for source in old.cedar}
    after = {Path(source.file).name: source.text for source in new.cedar}
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            words = (
                "-" if name not in before else "there",
                "gone" if name not in after else "other text",
            )
            yield Change(UNTOLD, f"cedar {name}", *words)


def _effect(field: str, old: WorkflowSettings, new: WorkflowSettings) -> str:
    if field == "required":
        return TIGHTENS if new.required > old.required else LOOSENS
    if field == "on_timeout":
        return LOOSENS if new.on_timeout == "approve" else TIGHTENS
    if field == "approvers":
        # An empty list lets everybody decide who can reach the channel.
        narrower = bool(new.approvers) and (
            not old.approvers or set(new.approvers) < set(old.approvers)
        )
        return TIGHTENS if narrower else LOOSENS
    if field in {"allow_elicitation", "remember"}:
        return LOOSENS if getattr(new, field) else TIGHTENS
    return CHANGES
