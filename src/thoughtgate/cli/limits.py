"""``thoughtgate limits``: show how much of each limit is used, and reset limits."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from thoughtgate.cli.options import (
    ConfigOption,
    JsonOption,
    WatchOption,
    command_app,
    examples,
    read_config,
)
from thoughtgate.cli.output import counted, watch_report, write_report
from thoughtgate.cli.tables import table_lines
from thoughtgate.config.durations import render_duration
from thoughtgate.errors import ThoughtGateError, UsageError, visible
from thoughtgate.gate.open_governor import store_location
from thoughtgate.gate.state_directory import state_directory
from thoughtgate.policy.limits import Limit
from thoughtgate.status.limit_counts import describe_count, read_limit_counts, reset_limit
from thoughtgate.stores.open_database import StoreLocation

if TYPE_CHECKING:
    from thoughtgate.gate.config_files import Loaded

IN_MEMORY = "counted by each gate in its memory; restart the gate to reset it"

app = command_app(
    "Show how much of each limit is used, and reset limits.",
    examples("thoughtgate limits list", "thoughtgate limits reset searches"),
)


@app.command("list", epilog=examples("thoughtgate limits list", "thoughtgate limits list --watch"))
def list_limits(
    *, watch: WatchOption = False, config: ConfigOption = None, json_: JsonOption = False
) -> None:
    """List the limits of the config, with the counts that several gates or workers share."""
    loaded = read_config(config)
    location = store_location(loaded, state_directory(os.environ))
    watch_report(
        lambda: _limits(loaded, location),
        as_json=json_,
        watch=watch,
        nothing="The config has no limits; add some under limits: in the config.",
    )


def _limits(loaded: "Loaded", location: StoreLocation) -> tuple[Any, Iterator[str]]:
    """Return the limits as JSON and as lines of text."""
    counts = read_limit_counts(location) if loaded.policy.limits else []
    found: list[dict[str, Any]] = [
        {
            **_limit_object(limit),
            "counts": [_without_limit(one) for one in counts if one["limit"] == limit.id],
        }
        for limit in loaded.policy.limits
    ]
    unused = "not used yet" if location.is_shared else IN_MEMORY
    rows = [
        {"limit": limit.id, "allows": _words(limit), "used": used}
        for limit, one in zip(loaded.policy.limits, found, strict=True)
        for used in (list(map(describe_count, one["counts"])) or [unused])
    ]
    return found, table_lines(("limit", "allows", "used"), rows)


@app.command(epilog=examples("thoughtgate limits reset searches"))
def reset(
    ident: Annotated[str, Argument(metavar="ID", help="Id of the limit, as the list shows it.")],
    *,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Reset a limit at every gate that shares the store, within a second."""
    loaded = read_config(config)
    location = store_location(loaded, state_directory(os.environ))
    known = [limit.id for limit in loaded.policy.limits]
    if ident not in known:
        listed = ", ".join(known) or "none"
        raise UsageError(
            f"there is no limit {ident!r} in the config; it has: {listed}; see: thoughtgate limits list"
        )
    count = reset_limit(location, ident)
    if not count and not location.is_shared:
        raise ThoughtGateError(f"limit {ident} has no shared counts: it is {IN_MEMORY}")
    write_report(
        {"limit": ident, "counts": count},
        [f"Limit {visible(ident)} is reset."],
        as_json=json_,
    )


def _without_limit(count: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in count.items() if key != "limit"}


def _limit_object(limit: Limit) -> dict[str, Any]:
    return {
        "id": limit.id,
        "budget": limit.budget,
        "window_s": limit.window_s or None,
        "exact": limit.exact,
        "rate": {"calls": limit.rate.calls, "period_s": limit.rate.period_s}
        if limit.rate
        else None,
        "duplicate_s": limit.duplicate_s or None,
        "breaker": limit.breaker._asdict() if limit.breaker else None,
        "scope": limit.scope or None,
    }


def _words(limit: Limit) -> str:
    parts = []
    if limit.budget is not None:
        window = f" in {render_duration(limit.window_s)}" if limit.window_s else ""
        parts.append(f"budget {limit.budget:,}{window}")
    if limit.rate:
        parts.append(f"rate {limit.rate.calls:,} in {render_duration(limit.rate.period_s)}")
    if limit.duplicate_s:
        parts.append(f"no repeat within {render_duration(limit.duplicate_s)}")
    if limit.breaker:
        parts.append(f"breaker after {counted(limit.breaker.failures, 'failure')}")
    return ", ".join(parts) + (f", per {limit.scope}" if limit.scope else "")
