"""``thoughtgate policy diff``: show what a changed config loosens or tightens."""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, TypeAlias

from typer import Argument, Exit, Option

from thoughtgate.analysis.comparison import CallTarget
from thoughtgate.analysis.rule_changes import CHANGES, LOOSENS, TIGHTENS, UNTOLD, PolicyChange
from thoughtgate.cli.options import JsonOption, RecordOption, examples, read_config
from thoughtgate.cli.output import write_report
from thoughtgate.cli.policy.replay import recorded_calls
from thoughtgate.core.record_events import NOWHERE
from thoughtgate.errors import visible
from thoughtgate.status.policy_trial import changes_between

DIFF_EXAMPLES: Final = examples(
    "thoughtgate policy diff thoughtgate.yaml candidate.yaml",
    "thoughtgate policy diff old.yaml new.yaml --record audit.jsonl --fail-on-loosen",
)

_Key: TypeAlias = tuple[tuple[str, ...], str, tuple[str, ...]]
"""The words of a subject before and after the one that may differ, and between them the change."""
_IN_A_WORD: Final = {
    ("-", "there"): "added",
    ("there", "-"): "removed",
    ("there", "gone"): "removed",
}


def diff_command(
    old: Annotated[str, Argument(metavar="OLD", help="Current config.")],
    new: Annotated[str, Argument(metavar="NEW", help="New config.")],
    *,
    record: RecordOption = None,
    fail: Annotated[
        bool,
        Option(
            "--fail-on-loosen",
            help="Exit with 1 if anything is loosened, or if that cannot be told.",
        ),
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Show what a changed config loosens and what it tightens.

    This compares the decisions about all tools that either config names and, with --record,
    about all tools that were ever called.
    """
    before, after = read_config(old), read_config(new)
    calls = recorded_calls(record, "", "") if record else ()
    observed = [CallTarget(*one.call[:3]) for one in calls if one.call.server != NOWHERE]
    changes = changes_between(before, after, observed, os.environ, time.time())
    write_report([change._asdict() for change in changes], change_lines(changes), as_json=json_)
    effects = {change.effect for change in changes}
    if fail and UNTOLD in effects and LOOSENS not in effects:
        sys.stderr.write(
            "Cannot tell whether some changes loosen anything; review those under CANNOT BE TOLD.\n"
        )
    if fail and not effects.isdisjoint({LOOSENS, UNTOLD}):
        raise Exit(1)


def change_lines(changes: list[PolicyChange]) -> Iterable[str]:
    """Yield the lines that describe changes, loosening ones first."""
    if not changes:
        yield "No changes: both configs make the same decisions and have the same settings."
    for effect in (LOOSENS, UNTOLD, CHANGES, TIGHTENS):
        found = [change for change in changes if change.effect == effect]
        if found:
            yield f"{effect.upper().replace('_', ' ')} ({len(found)})"
            for subjects, change in _folded(found):
                yield f"  {visible(f'{subjects}: {_difference(change)}')}"


def _folded(changes: list[PolicyChange]) -> Iterator[tuple[str, PolicyChange]]:
    """Yield changes with their subjects; subjects that differ in a single word share a line.

    A starter rule lists dozens of words, each of which counts as a separate change: one line per
    change would hide the few lines that a reviewer must read. Nothing is left out.
    """
    keys = [[*_keys(change)] for change in changes]
    sizes = Counter(key for each in keys for key in each)
    groups: dict[_Key, list[PolicyChange]] = {}
    for change, each in zip(changes, keys, strict=True):
        groups.setdefault(max(reversed(each), key=sizes.__getitem__), []).append(change)
    for (before, _, after), group in groups.items():
        at = len(before)
        words = [change.subject.split(" ")[at] for change in group]
        yield " ".join([*before, _joined(words), *after]), group[0]


def _keys(change: PolicyChange) -> Iterator[_Key]:
    """Yield the subject without each of its words in turn, with what happens to it."""
    words = change.subject.split(" ")
    for at in range(len(words)):
        yield tuple(words[:at]), _difference(change), tuple(words[at + 1 :])


def _joined(words: list[str]) -> str:
    """Return words as a list, with the colon that ends a name only once."""
    if all(word.endswith(":") for word in words):
        return ", ".join(word[:-1] for word in words) + ":"
    return ", ".join(words)


def _difference(change: PolicyChange) -> str:
    before, after = _words(change.before), _words(change.after)
    return _IN_A_WORD.get((before, after), f"{before} -> {after}")


def _words(value: Any) -> str:
    """Return a value as text: strings unchanged, anything else as JSON."""
    if value is None or value == "":
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
