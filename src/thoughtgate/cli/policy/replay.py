"""``thoughtgate policy replay``: evaluate recorded calls with a different policy."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

from typer import Exit, Option

from thoughtgate.analysis.replay import (
    Flip,
    RecordedCall,
    ReplayOutcome,
    flips_of,
    recorded_call,
    replay,
)
from thoughtgate.cli.audit.source import find_place, open_ledger, span
from thoughtgate.cli.options import (
    ConfigOption,
    JsonOption,
    RecordOption,
    SinceOption,
    UntilOption,
    examples,
    read_config,
)
from thoughtgate.cli.output import counted, write_report
from thoughtgate.cli.progress import Progress
from thoughtgate.core.record_events import NOWHERE
from thoughtgate.errors import visible
from thoughtgate.record.ledger_queries import CallFilter, find_calls

REPLAY_EXAMPLES: Final = examples(
    "thoughtgate policy replay --since 7d -c candidate.yaml",
    "thoughtgate policy replay --since 1d -c candidate.yaml --json",
)

REDACTED_NOTE: Final = (
    "the record contains masked and shortened arguments and no annotations; verdicts that could "
    "depend on them are marked uncertain"
)


def replay_command(
    *,
    since: SinceOption = "",
    until: UntilOption = "",
    config: ConfigOption = None,
    record: RecordOption = None,
    fail: Annotated[
        bool, Option("--fail-on-flip", help="Exit with 1 if any decision changes.")
    ] = False,
    json_: JsonOption = False,
) -> None:
    """Evaluate recorded calls with a config and show which decisions change.

    Nothing is called. -c names the config to try; the record is that of the default config,
    unless you choose another with --record.
    """
    loaded = read_config(config)
    start, end = span(since, until)
    with Progress() as progress:
        calls = _whole_runs(record, start, end, progress)
        replayed = replay(
            calls, loaded.policy, lambda found: progress.count(found, len(calls), "replaying calls")
        )
    # Earlier calls of the same runs were needed only for the counts of limits.
    outcomes = [one for one in replayed if one.recorded.at >= start]
    unowned = sum(one.call.server == NOWHERE and one.at >= start for one in calls)
    flips = flips_of(outcomes)
    report = _as_json(outcomes, flips, unowned, loaded.policy.version)
    write_report(report, _lines(outcomes, flips, unowned), as_json=json_)
    if fail and flips:
        raise Exit(1)


def recorded_calls(record: Path | None, since: str, until: str) -> Iterator[RecordedCall]:
    """Yield the recorded calls, oldest first."""
    start, end = span(since, until)
    with open_ledger(find_place(record, None)) as ledger:
        rows = find_calls(ledger.connection, CallFilter(since=start, until=end, limit=0))
    with Progress() as progress:
        yield from _calls_of(rows, progress)


def _whole_runs(
    record: Path | None, start: float, end: float, progress: Progress
) -> list[RecordedCall]:
    """Return the calls in a time span, and earlier calls of the same runs, which limits counted."""
    with open_ledger(find_place(record, None)) as ledger:
        rows = find_calls(ledger.connection, CallFilter(since=start, until=end, limit=0))
        if start:
            for run in {row["run_id"] for row in rows if row["run_id"]}:
                rows += find_calls(ledger.connection, CallFilter(run=run, until=start, limit=0))
    return sorted(_calls_of(rows, progress), key=lambda one: one.at)


def _calls_of(rows: list[dict[str, Any]], progress: Progress) -> Iterator[RecordedCall]:
    # The ledger returns the newest calls first.
    for row in progress.count(reversed(rows), len(rows), "reading calls"):
        recorded = recorded_call(row)
        if recorded is not None:
            yield recorded


def _as_json(
    outcomes: list[ReplayOutcome], flips: list[Flip], unowned: int, version: str
) -> dict[str, Any]:
    return {
        "policy_version": version,
        "calls": len(outcomes),
        "left_out": unowned,
        "flipped": sum(flip.calls for flip in flips),
        "uncertain": sum(bool(outcome.uncertain) for outcome in outcomes),
        "note": REDACTED_NOTE,
        "flips": [{**flip._asdict(), "tightens": flip.tightens} for flip in flips],
        "uncertain_calls": [
            {"call_id": one.recorded.call_id, "decision": one.decision, "why": one.uncertain}
            for one in outcomes
            if one.uncertain
        ],
    }


def _lines(outcomes: list[ReplayOutcome], flips: list[Flip], unowned: int) -> Iterable[str]:
    flipped = sum(flip.calls for flip in flips)
    yield f"{counted(len(outcomes), 'call')} replayed, {counted(flipped, 'decision')} changed"
    if unowned:
        yield f"{counted(unowned, 'call')} left out: no server offers the name that was called"
    for flip in flips:
        word = "tighter" if flip.tightens else "LOOSER"
        doubt = f", {flip.uncertain} uncertain" if flip.uncertain else ""
        yield ""
        yield f"{flip.before} -> {flip.after}  ({word})  {counted(flip.calls, 'call')}{doubt}"
        yield f"  {flip.kind} {visible(flip.name)} of {flip.server or '-'}, now by {flip.rule}"
        yield f"  for example {', '.join(flip.examples)}"
    doubts = Counter(outcome.uncertain for outcome in outcomes if outcome.uncertain)
    if doubts:
        yield ""
        yield "uncertain, because the record does not contain everything:"
        for why, count in doubts.most_common():
            yield f"  {counted(count, 'call')}: {why}"
