"""``thoughtgate audit tail``: show the newest events of the record and follow it."""

import json
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from typer import Option

from thoughtgate.cli.audit.query import (
    DecisionOption,
    RunOption,
    ServerOption,
    ToolOption,
    upper_choice,
)
from thoughtgate.cli.audit.source import find_place, require_record, warn_of_faults
from thoughtgate.cli.options import ConfigOption, JsonOption, RecordOption, examples, require_choice
from thoughtgate.cli.output import is_without_colour
from thoughtgate.cli.tables import shown_time
from thoughtgate.core.record_events import MESSAGE, TOOLS_LIST
from thoughtgate.errors import UsageError, visible
from thoughtgate.policy.globs import Glob
from thoughtgate.record.call_rows import event_time, member, number, text
from thoughtgate.record.contract import EVENTS
from thoughtgate.record.file import traffic_path
from thoughtgate.record.follower import Follower
from thoughtgate.record.ledger import MAX_FAULTS
from thoughtgate.record.ledger_queries import DECISIONS
from thoughtgate.record.reader import read_entry, read_lines
from thoughtgate.record.shared_ledger import shared_ledger
from thoughtgate.record.shared_reader import SharedFollower, newest_events
from thoughtgate.record.verification import RecordLine
from thoughtgate.stores.open_database import StoreLocation

TAIL_EXAMPLES: Final = examples(
    "thoughtgate audit tail -f",
    "thoughtgate audit tail -f --server github --decision block",
    "thoughtgate audit tail -n 100 --all --json",
)

TYPES: Final = tuple(event.name for event in EVENTS)

_POLL_S: Final = 0.2
"""How often a followed file is read: fast enough for a person, cheap enough for the CPU."""

_SHARED_POLL_S: Final = 0.5
"""The same for a shared ledger, which gates fill twice per second."""

_COLOURS: Final = {"ALLOW": 32, "OK": 32, "HOLD": 33, "BLOCK": 31, "THROTTLE": 35, "ERROR": 31, "frame_refused": 31, "request_failed": 31, "record_gap": 31, "agent_auth_rejected": 31}  # fmt: skip


def tail_command(
    *,
    follow: Annotated[bool, Option("-f", "--follow", help="Keep printing new events.")] = False,
    lines: Annotated[
        int,
        Option(
            "-n", "--lines", metavar="N", min=0, help="Number of existing events to show first."
        ),
    ] = 20,
    every: Annotated[bool, Option("--all", help="Include messages that no gate checks.")] = False,
    run: RunOption = "",
    server: ServerOption = "",
    tool: ToolOption = "",
    decision: DecisionOption = "",
    kind: Annotated[str, Option("--type", metavar="TYPE", help="Only events of this type.")] = "",
    record: RecordOption = None,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Show the newest events of the record; with -f, keep printing new ones."""
    if kind:
        require_choice("--type", kind, TYPES)
    place = find_place(record, config)
    globs = {"run_id": run, "server_name": server}
    wanted = EventFilter(
        {name: _glob(pattern) for name, pattern in globs.items() if pattern},
        _glob(tool) if tool else None,
        upper_choice("--decision", decision, DECISIONS),
        kind,
        every=every or kind == MESSAGE,
    )
    coloured = sys.stdout.isatty() and not json_ and not is_without_colour()
    events = (
        shared_events(place.store, wanted, lines, follow=follow)
        if place.store is not None
        else events_of(place.record, wanted, lines, follow=follow)
    )
    for event in events:
        line = json.dumps(event) if json_ else render_event(event, coloured=coloured)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


def _glob(pattern: str) -> Glob:
    """Compile a pattern in which only ``*`` and ``?`` are wildcards, as in the other commands."""
    try:
        return Glob(pattern.replace("[", "[[]"))
    except ValueError as error:
        raise UsageError(str(error)) from error


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Selects the events to show; empty fields select all."""

    globs: dict[str, Glob]
    """Patterns for members of the event."""
    tool: Glob | None
    decision: str
    kind: str
    every: bool
    """Whether to show messages that no gate checks."""

    def accepts(self, event: dict[str, Any]) -> bool:
        """Return whether to show an event."""
        if not self.every and event.get("type") == MESSAGE:
            return False
        if self.kind and event.get("type") != self.kind:
            return False
        if not all(glob.matches(text(event, name) or "") for name, glob in self.globs.items()):
            return False
        if self.tool and not self.tool.matches(text(member(event, "call"), "tool_name") or ""):
            return False
        return not self.decision or member(event, "decision").get("action") == self.decision


def events_of(
    path: Path, wanted: EventFilter, count: int, *, follow: bool
) -> Iterator[dict[str, Any]]:
    """Yield the last events of the record and, when following, new ones.

    Lines that are not events, and a file that does not exist yet, are reported on stderr.

    Raises:
        StoreError: there is no such record, or it has lines but none of them is an event.
    """
    if follow and not path.is_file():
        sys.stderr.write(f"Waiting for {path} to be created.\n")
    files = [] if follow else require_record(path)
    current = path if follow or path in files else files[-1]
    readers = [Follower(current), Follower(traffic_path(path))]
    newest = [
        *_newest(readers[0], wanted, count, older=None if current == path else files[:-1]),
        *_newest(readers[1], wanted, count),
    ]
    newest.sort(key=event_time)
    yield from newest[len(newest) - min(count, len(newest)) :]
    while follow:
        news = [event for one in readers for event in _accepted(one.lines(), wanted)]
        yield from sorted(news, key=event_time)
        time.sleep(_POLL_S)


def shared_events(
    store: StoreLocation, wanted: EventFilter, count: int, *, follow: bool
) -> Iterator[dict[str, Any]]:
    """Yield the last events of all gates that share a store and, when following, new ones.

    Raises:
        StoreError: the store cannot be reached.
    """
    with shared_ledger(store) as ledger:
        # Opened before the newest events are read: an event in between may appear twice, but
        # none is lost.
        follower = SharedFollower(ledger)
        yield from newest_events(ledger, wanted.accepts, count)
        while follow:
            yield from _accepted_by_time(follower, wanted)
            time.sleep(_SHARED_POLL_S)


def _accepted_by_time(follower: SharedFollower, wanted: EventFilter) -> list[dict[str, Any]]:
    return sorted(_accepted(follower.lines(), wanted), key=event_time)


def _newest(
    reader: Follower, wanted: EventFilter, count: int, *, older: list[Path] | None = None
) -> deque[dict[str, Any]]:
    """Return the last events of one chain; ``older`` are its files before the current one."""
    newest = deque(_accepted(reader.lines(), wanted), maxlen=count)
    # Listed only now, because the current file may have been rotated while it was read.
    for file in reversed(reader.older() if older is None else older):
        if len(newest) == count:
            break
        before = deque(_accepted(read_lines(file), wanted), maxlen=count - len(newest))
        newest.extendleft(reversed(before))
    return newest


def _accepted(lines: Iterable[RecordLine], wanted: EventFilter) -> Iterator[dict[str, Any]]:
    faults = list[tuple[str, int, str]]()
    for line in lines:
        if not line.data:
            continue
        entry = read_entry(line)
        if entry.fault:
            if len(faults) < MAX_FAULTS:
                faults.append((line.file, line.number, entry.fault))
        elif wanted.accepts(entry.event):
            yield entry.event
    warn_of_faults(faults)


def render_event(event: dict[str, Any], *, coloured: bool = False) -> str:
    """Return an event as one readable line."""
    kind = text(event, "type") or "-"
    word, rest = _words(kind, event)
    colour = _COLOURS.get(word, _COLOURS.get(kind))
    shown = f"\x1b[{colour}m{word:<9}\x1b[0m" if coloured and colour else f"{word:<9}"
    when = shown_time(event_time(event))
    server = visible(text(event, "server_name") or "-")
    return f"{when}  {kind:<18}  {shown}  {server:<12}  {visible(rest)}".rstrip()


def _words(kind: str, event: dict[str, Any]) -> tuple[str, str]:
    call, decision, approval = (member(event, name) for name in ("call", "decision", "approval"))
    tool = text(call, "tool_name") or ""
    if decision:
        why = text(member(decision, "explain"), "summary") or ""
        observed = " (observed)" if decision.get("enforced") is False else ""
        rule = text(decision, "rule_id") or text(decision, "gate") or ""
        because = f"{rule}: {why}" if rule and why else why or (f"by {rule}" if rule else "")
        return text(decision, "action") or "-", f"{tool}{observed}  {because}"
    if approval:
        by = text(approval, "decided_by")
        who = f"by {by}" if by else f"workflow {text(approval, 'workflow') or '-'}"
        return text(approval, "outcome") or "asked", f"{tool}  {who}"
    if "status" in event:
        status, error = text(event, "status") or "-", text(member(event, "error"), "kind") or ""
        return status, f"{tool}  {event.get('latency_ms')} ms  {error}"
    if call:
        return "", f"{tool}  {text(member(call, 'preview'), 'args_preview') or ''}"
    return _other_words(kind, event)


def _other_words(kind: str, event: dict[str, Any]) -> tuple[str, str]:
    run = member(event, "run")
    if run:
        return text(run, "status") or text(run, "mode") or "", f"run {event.get('run_id')}"
    if kind == TOOLS_LIST:
        return "", _list_words(member(event, "list"))
    body = next((member(event, name) for name in _BODIES if name in event), {})
    return "", "  ".join(f"{name} {_fact(value)}" for name, value in body.items())


def _list_words(facts: dict[str, Any]) -> str:
    """Return how much of a list was shown, and which names were hidden."""
    offered, returned = (number(facts, name) or 0 for name in ("offered", "returned"))
    names = facts.get("hidden")
    hidden = [_fact(name) for name in names] if type(names) is list else []
    verb = "would hide" if facts.get("enforced") is False else "hidden"
    left_out = f"; {verb}: {', '.join(hidden[:_SHOWN_NAMES])}" if hidden else ""
    more = f" and {len(hidden) - _SHOWN_NAMES} more" if len(hidden) > _SHOWN_NAMES else ""
    return f"{text(facts, 'method') or 'list'}  {returned} of {offered} shown{left_out}{more}"


def _fact(value: Any, *, within: bool = False) -> str:
    """Return a value of an event as text; values nested more than one level deep are left out."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict | list) and within:
        return "…"
    if isinstance(value, dict):
        facts = (f"{name} {_fact(inner, within=True)}" for name, inner in value.items())
        return ", ".join(facts) or "none"
    if isinstance(value, list):
        return ", ".join(_fact(inner, within=True) for inner in value) or "none"
    return "none" if value is None else str(value)


_BODIES: Final = ("list", "message", "frame", "agent", "server", "policy", "record", "checkpoint")
_SHOWN_NAMES: Final = 5
