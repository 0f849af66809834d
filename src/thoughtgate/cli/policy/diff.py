"""``thoughtgate policy diff``: show what a changed config loosens or tightens."""

import json
import os
import sys
import time
from collections.abc import Iterable
from typing import Annotated, Any, Final

from typer import Argument, Exit, Option

from thoughtgate.analysis.comparison import CallTarget, compare
from thoughtgate.analysis.rule_changes import CHANGES, LOOSENS, TIGHTENS, UNTOLD, PolicyChange
from thoughtgate.analysis.setting_changes import compare_settings
from thoughtgate.cli.options import JsonOption, RecordOption, examples, read_config
from thoughtgate.cli.output import write_report
from thoughtgate.cli.policy.replay import recorded_calls
from thoughtgate.core.record_events import NOWHERE
from thoughtgate.errors import visible
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.policy_files.policy_change import difference_mask
from thoughtgate.policy.redaction import Redactor

DIFF_EXAMPLES: Final = examples(
    "thoughtgate policy diff thoughtgate.yaml candidate.yaml",
    "thoughtgate policy diff old.yaml new.yaml --record audit.jsonl --fail-on-loosen",
)


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
    changes = changes_between(before, after, observed)
    write_report([change._asdict() for change in changes], change_lines(changes), as_json=json_)
    effects = {change.effect for change in changes}
    if fail and UNTOLD in effects and LOOSENS not in effects:
        sys.stderr.write(
            "Cannot tell whether some changes loosen anything; review those under CANNOT BE TOLD.\n"
        )
    if fail and not effects.isdisjoint({LOOSENS, UNTOLD}):
        raise Exit(1)


def changes_between(
    before: Loaded, after: Loaded, observed: Iterable[CallTarget] = ()
) -> list[PolicyChange]:
    """Return what changes from one config to the other, with secrets masked."""
    mask = difference_mask(before, after, os.environ)
    changes = [
        change._replace(before=_masked(change.before, mask), after=_masked(change.after, mask))
        for change in compare_settings(before.settings, after.settings)
    ]
    return [*changes, *compare(before.policy, after.policy, observed, time.time())]


def _masked(value: Any, mask: Redactor) -> Any:
    """Return the value of a setting with the secrets of both configs masked."""
    if isinstance(value, dict):
        # Keys such as token_env are not masked: they name a variable, not a secret.
        return {name: _masked(inner, mask) for name, inner in value.items()}
    return mask.mask_value(value)


def change_lines(changes: list[PolicyChange]) -> Iterable[str]:
    """Yield the lines that describe changes, loosening ones first."""
    if not changes:
        yield "No changes: both configs make the same decisions and have the same settings."
    for effect in (LOOSENS, UNTOLD, CHANGES, TIGHTENS):
        found = [change for change in changes if change.effect == effect]
        if found:
            yield f"{effect.upper().replace('_', ' ')} ({len(found)})"
            for change in found:
                line = f"{change.subject}: {_words(change.before)} -> {_words(change.after)}"
                yield f"  {visible(line)}"


def _words(value: Any) -> str:
    """Return a value as text: strings unchanged, anything else as JSON."""
    if value is None or value == "":
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
