"""``thoughtgate tools list`` and ``thoughtgate tools diff``: pins and changes, from the store."""

from collections.abc import Iterator
from contextlib import closing
from typing import Annotated, Any, Final

from typer import Argument

from thoughtgate.cli.options import ConfigOption, JsonOption, examples, find_store
from thoughtgate.cli.output import write_report
from thoughtgate.cli.tables import shown_time, table_lines
from thoughtgate.core.definitions.changes import compare, heaviest
from thoughtgate.core.definitions.difference import WordDifference
from thoughtgate.core.envelope import render_time
from thoughtgate.errors import UsageError, visible
from thoughtgate.policy.redaction import Redactor
from thoughtgate.stores.open_database import open_database
from thoughtgate.stores.pins import ACCEPTED, LIST_KIND, Pin, PinStore, server_of

LIST_EXAMPLES: Final = examples("thoughtgate tools list", "thoughtgate tools list github --json")
DIFF_EXAMPLES: Final = examples("thoughtgate tools diff", "thoughtgate tools diff github --json")

ServerArgument = Annotated[
    str, Argument(metavar="SERVER", help="The id of a server, or its key from 'tools list'.")
]
NamesArgument = Annotated[
    list[str] | None, Argument(metavar="NAME", help="Names of tools, prompts or resources.")
]


def list_command(
    server: ServerArgument = "",
    names: NamesArgument = None,
    *,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """List the pinned definitions, who accepted them and when, and those that are not accepted."""
    with closing(open_database(find_store(config))) as database:
        pins = find_pins(PinStore(database), server, names or ())
    report = [_told(pin) for pin in pins]
    write_report(report, _lines(report), as_json=json_)


def diff_command(
    server: ServerArgument = "",
    names: NamesArgument = None,
    *,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Show how definitions that are not accepted differ from those that were."""
    with closing(open_database(find_store(config))) as database:
        pins = find_pins(PinStore(database), server, names or ())
    doubted = [pin for pin in pins if pin.status != ACCEPTED]
    before = {(pin.server, *pin.key): pin for pin in pins if pin.status == ACCEPTED}
    words, masks = WordDifference(), Redactor()
    report, lines = [], []
    for pin in doubted:
        old = before.get((pin.server, *pin.key))
        definitions = (old.definition if old else None, pin.definition)
        changes = compare(*definitions)
        told = {"weight": heaviest(changes), "changes": [one.as_json() for one in changes]}
        report.append({**_told(pin), **told})
        lines += [f"{visible(server_of(pin.server))}  {pin.kind} {visible(pin.name)}  {pin.status}"]
        lines += [f"  {visible(masks.mask_text(line))}" for line in words.lines(*definitions)]
        lines += [
            f"  {one['tier']:<8} {one['check']}  {visible(one['what'])}" for one in pin.findings
        ]
    if not doubted:
        lines.append("Every definition is accepted.")
    write_report(report, lines, as_json=json_)


def find_pins(store: PinStore, server: str, names: tuple[str, ...] | list[str]) -> list[Pin]:
    """Return the pins of a server, or of all, with these names.

    Raises:
        UsageError: there are no such pins.
    """
    keys = [key for key in store.servers() if server in ("", key, server_of(key))]
    if server and not keys:
        raise UsageError(f"nothing is pinned for {server!r}; see: thoughtgate tools list")
    found = [pin for key in keys for pin in store.of_server(key) if pin.kind != LIST_KIND]
    for name in names:
        if not any(pin.name == name for pin in found):
            raise UsageError(f"{server} has nothing called {name!r}; see: thoughtgate tools list")
    return [pin for pin in found if not names or pin.name in names]


def _told(pin: Pin) -> dict[str, Any]:
    return {
        "server": server_of(pin.server),
        "key": pin.server,
        "kind": pin.kind,
        "name": pin.name,
        "status": pin.status,
        "digest": pin.digest,
        "at": render_time(pin.at),
        "by": pin.by,
        "findings": list(pin.findings),
    }


def _lines(report: list[dict[str, Any]]) -> Iterator[str]:
    if not report:
        yield "Nothing is pinned yet: what a server says is pinned when a gate first lists it."
    rows = [{**one, "server": one["key"], "at": shown_time(one["at"])} for one in report]
    yield from table_lines(("server", "kind", "name", "status", "at", "by"), rows)
