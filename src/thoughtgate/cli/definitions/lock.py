"""``thoughtgate tools lock`` and ``tools check``: a lock file of definitions for a repository."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Final

from typer import Argument, Exit, Option

from thoughtgate.cli.definitions.offers import ServerOffer, chosen_servers, fetch_offers
from thoughtgate.cli.options import ConfigOption, JsonOption, examples, read_config
from thoughtgate.cli.output import write_report
from thoughtgate.core.definitions.changes import GONE, Change, compare, heaviest
from thoughtgate.core.definitions.difference import WordDifference
from thoughtgate.core.definitions.pinned import Definition, define
from thoughtgate.errors import UsageError, visible
from thoughtgate.gate.config_files import Loaded
from thoughtgate.gate.definitions.inspection import inspect, is_hard

LOCK_EXAMPLES: Final = examples("thoughtgate tools lock -c thoughtgate.yaml")
CHECK_EXAMPLES: Final = examples("thoughtgate tools check -c thoughtgate.yaml --json")

LOCK_FILE: Final = "thoughtgate-tools.lock.json"
MAX_LOCK: Final = 64 * 1024 * 1024
"""Maximum bytes of a lock file, far more than the definitions of any set of servers."""

EXIT_CHANGED: Final = 3
"""The definitions of a server differ from the lock file."""
EXIT_BLOCKED: Final = 4
"""A server could not be asked, or a definition has a hard finding."""

FileArgument = Annotated[str, Argument(metavar="LOCKFILE", help=f"Default: {LOCK_FILE}.")]


def lock_command(
    file: FileArgument = LOCK_FILE,
    *,
    config: ConfigOption = None,
    force: Annotated[bool, Option("--force", help="Lock definitions with hard findings.")] = False,
    json_: JsonOption = False,
) -> None:
    """Ask every server of a config what it offers, and write it to a file for the repository.

    The file is sorted and readable, so that a review shows what changed. Nothing is written if a
    server cannot be asked, or if a definition has a hard finding.
    """
    loaded = read_config(config)
    offers = _ask(loaded)
    blocked = [f"{one.server}: {one.failure}" for one in offers if one.failure]
    blocked += [] if force else _hard(offers, loaded)
    for line in blocked:
        sys.stderr.write(f"Error: {visible(line)}\n")
    if blocked:
        raise Exit(EXIT_BLOCKED)
    Path(file).write_text(lock_text(offers), "utf-8")
    count = sum(len(one.found) for one in offers)
    report = {"file": file, "servers": len(offers), "definitions": count}
    write_report(
        report, [f"Wrote {count} definitions of {len(offers)} servers to {file}."], as_json=json_
    )


def check_command(
    file: FileArgument = LOCK_FILE,
    *,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Compare what servers say today with a lock file.

    Exit code: 0 ready, 3 a definition changed, 4 blocked: a server could not be asked, or a
    definition has a hard finding.
    """
    locked = read_lock(Path(file))
    loaded = read_config(config)
    offers = _ask(loaded)
    report = [_compared(one, locked.get(one.server, {}), loaded) for one in offers]
    lines = [line for one in report for line in one.pop("lines")]
    missing = sorted(locked.keys() - {one.server for one in offers})
    lines += [f"{visible(name)}  is in {file}, but not in the config" for name in missing]
    blocked = any(one["status"] == "blocked" for one in report)
    changed = bool(missing) or any(one["status"] == "changed" for one in report)
    word = "blocked" if blocked else "changed" if changed else "ready"
    write_report({"status": word, "servers": report}, [*lines, word], as_json=json_)
    if blocked or changed:
        raise Exit(EXIT_BLOCKED if blocked else EXIT_CHANGED)


def lock_text(offers: list[ServerOffer]) -> str:
    """Return the text of a lock file."""
    servers: dict[str, dict[str, dict[str, Any]]] = {}
    for offer in offers:
        kinds = servers.setdefault(offer.server, {})
        for definition, _ in offer.found:
            kinds.setdefault(definition.kind, {})[definition.name] = definition.body
    whole = {"thoughtgate_tools": 1, "servers": servers}
    return json.dumps(whole, indent=2, sort_keys=True, ensure_ascii=True) + "\n"


def read_lock(path: Path) -> dict[str, dict[tuple[str, str], Definition]]:
    """Return the definitions in a lock file, by server.

    Raises:
        UsageError: it cannot be read, or is not a lock file.
    """
    try:
        with path.open("rb") as lock:
            # A longer file is cut off, so it is not valid JSON.
            servers = json.loads(lock.read(MAX_LOCK))["servers"]
        return {
            server: {
                (kind, name): define(kind, name, body)
                for kind, entries in kinds.items()
                for name, body in entries.items()
            }
            for server, kinds in servers.items()
        }
    except FileNotFoundError:
        raise UsageError(
            f"{path}: there is no such file; write one with: thoughtgate tools lock"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UsageError(
            f"{path} cannot be read as a lock file; write one with: thoughtgate tools lock"
        ) from None


def _ask(loaded: Loaded) -> list[ServerOffer]:
    servers = chosen_servers(loaded.settings)
    return fetch_offers(
        servers, loaded, lambda name: print(f"listed {visible(name)}", file=sys.stderr)
    )


def _hard(offers: list[ServerOffer], loaded: Loaded) -> list[str]:
    """Return what must not be locked: definitions that cannot be read, or have a hard finding."""
    found = []
    for offer in offers:
        for definition, entry in offer.found:
            findings = inspect(definition, entry, offer.server, loaded.policy.definitions, {})
            if is_hard(findings) or not definition.is_readable:
                checks = ", ".join(dict.fromkeys(one["check"] for one in findings)) or "unreadable"
                found.append(f"{offer.server}: {definition.kind} {definition.name}: {checks}")
    return found


def _compared(
    offer: ServerOffer, locked: dict[tuple[str, str], Definition], loaded: Loaded
) -> dict[str, Any]:
    server = visible(offer.server)
    if offer.failure:
        lines = [f"{server}  not listed: {visible(offer.failure)}"]
        told = {"server": offer.server, "status": "blocked", "failure": offer.failure}
        return {**told, "changes": [], "lines": lines}
    words, changes = WordDifference(), []
    lines = [visible(line) for line in _hard([offer], loaded)]
    status = "blocked" if lines else "ready"
    today = {(one.definition.kind, one.definition.name): one.definition for one in offer.found}
    for key in sorted(locked.keys() | today.keys()):
        old, new = locked.get(key), today.get(key)
        if old is not None and new is not None and old.digest == new.digest:
            continue
        found = (Change(GONE, ""),) if new is None else compare(old, new)
        # A hard finding weighs more than a change.
        status = status if status == "blocked" else "changed"
        told = {"kind": key[0], "name": key[1], "weight": heaviest(found)}
        changes.append({**told, "changes": [one.as_json() for one in found]})
        lines.append(f"{server}  {key[0]} {visible(key[1])}  {heaviest(found)}")
        shown = words.lines(old, new) if new is not None else ["the server no longer offers it"]
        lines += [f"  {visible(line)}" for line in shown]
    return {
        "server": offer.server,
        "status": status,
        "failure": "",
        "changes": changes,
        "lines": lines,
    }
