"""``thoughtgate policy diff``: what a change of config loosens or tightens."""

import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from thoughtgate.analysis.comparison import CallTarget, compare
from thoughtgate.analysis.rule_changes import CHANGES, LOOSENS, TIGHTENS, UNTOLD, PolicyChange
from thoughtgate.analysis.setting_changes import compare_settings
from thoughtgate.cli.audit.query import printable
from thoughtgate.cli.audit.source import RecordOption, write_json
from thoughtgate.cli.options import JsonOption, examples
from thoughtgate.cli.policy.replay import recorded_calls
from thoughtgate.core.record_events import NOWHERE
from thoughtgate.gate.config_files import Loaded, load_configuration

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
    observed = [CallTarget(*one.call[:3]) for one in calls if one.call.server != NOWHERE]
    changes = compare(before.policy, after.policy, observed, time.time())
    changes = [
        *(
            change._replace(
                before=_masked(change.before, before, after),
                after=_masked(change.after, before, after),
            )
            for change in compare_settings(before.settings, after.settings)
        ),
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


def _masked(value: Any, *loaded: Loaded) -> Any:
    """Return the value of a setting without the secrets that either config knows."""
    if isinstance(value, dict):
        # Names such as token_env name no secret here, but the variable of one.
        return {name: _masked(inner, *loaded) for name, inner in value.items()}
    for one in loaded:
        value = one.policy.redactor.mask_value(value)
    return value


def _told(changes: list[PolicyChange]) -> Iterable[str]:
    if not changes:
        yield "no change of what is let through, asked for or refused, nor of any other setting"
    for effect in (LOOSENS, UNTOLD, CHANGES, TIGHTENS):
        found = [change for change in changes if change.effect == effect]
        if found:
            yield f"{effect.upper().replace('_', ' ')} ({len(found)})"
            for change in found:
                told = f"{change.subject}: {_words(change.before)} -> {_words(change.after)}"
                yield f"  {printable(told)}"


def _words(value: Any) -> str:
    """Return a value for people: text as it is, anything else as in the config."""
    if value is None or value == "":
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
