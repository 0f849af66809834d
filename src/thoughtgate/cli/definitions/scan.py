"""``thoughtgate scan``: check what servers offer today, without calling a tool."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any, Final

from typer import Exit, Option

from thoughtgate.cli.definitions.offers import (
    Offered,
    ServerOffer,
    chosen_servers,
    fetch_offers,
    servers_of_agent,
)
from thoughtgate.cli.options import ConfigOption, JsonOption, command_app, examples, read_config
from thoughtgate.cli.output import counted, write_json, write_report
from thoughtgate.core.definitions.pinned import TOOL
from thoughtgate.errors import UsageError, visible
from thoughtgate.gate.definitions.inspection import HARD, inspect
from thoughtgate.policy.definitions import DefinitionPolicy
from thoughtgate.version import __version__

EXIT_FOUND: Final = 3
"""A hard finding that is not silenced."""
EXIT_BLOCKED: Final = 4
"""A server could not be asked."""

_LEVELS: Final = {HARD: "error"}
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"

app = command_app()


@app.command(
    epilog=examples(
        "thoughtgate scan -c thoughtgate.yaml",
        "thoughtgate scan --agent claude-code --sarif > findings.sarif",
    )
)
def scan_command(
    *,
    config: ConfigOption = None,
    agent: Annotated[
        str, Option(metavar="NAME", help="Look at the servers of an agent instead of a config.")
    ] = "",
    json_: JsonOption = False,
    sarif: Annotated[bool, Option("--sarif", help="Print SARIF 2.1.0 on stdout.")] = False,
) -> None:
    """Start or contact each server, list what it offers, and run the definition checks.

    No tool is called. The exit code is 0 if there are no hard findings, 3 if there are, and 4 if a
    server could not be asked.
    """
    if json_ and sarif:
        raise UsageError("--json and --sarif exclude each other")
    loaded = read_config(config)
    servers = servers_of_agent(agent) if agent else chosen_servers(loaded.settings)
    if not servers:
        sys.stderr.write(
            "There are no servers to look at; add one with 'thoughtgate servers add', or name an agent with --agent.\n"
        )
    offers = fetch_offers(
        servers, loaded, lambda name: print(f"listed {visible(name)}", file=sys.stderr)
    )
    report = [_examined(one, offers, loaded.policy.definitions) for one in offers]
    if sarif:
        write_json(as_sarif(report))
    else:
        write_report(report, _lines(report), as_json=json_)
    # First: a server that was not checked may have any finding.
    if any(one["failure"] for one in report):
        raise Exit(EXIT_BLOCKED)
    if any(is_counted(found) for one in report for found in one["findings"]):
        raise Exit(EXIT_FOUND)


def is_counted(found: dict[str, Any]) -> bool:
    """Tell whether a finding makes the command fail."""
    return found["tier"] == HARD and "silenced" not in found


def _examined(
    offer: ServerOffer, offers: list[ServerOffer], policy: DefinitionPolicy
) -> dict[str, Any]:
    neighbours = {
        other.server: [one.definition.name for one in other.found if one.definition.kind == TOOL]
        for other in offers
        if other.server != offer.server
    }

    def findings(offered: Offered) -> Iterator[dict[str, Any]]:
        definition, entry = offered
        for found in inspect(definition, entry, offer.server, policy, neighbours):
            yield {"kind": definition.kind, "name": definition.name, **found}

    return {
        "server": offer.server,
        "failure": offer.failure,
        "definitions": len(offer.found),
        "findings": [found for offered in offer.found for found in findings(offered)],
    }


def _lines(report: list[dict[str, Any]]) -> Iterator[str]:
    for one in report:
        server = visible(one["server"])
        if one["failure"]:
            yield f"{server}  not listed: {visible(one['failure'])}"
            continue
        found = one["findings"]
        yield f"{server}  {counted(one['definitions'], 'definition')}, {counted(len(found), 'finding')}"
        for each in found:
            name = f"{each['kind']} {visible(each['name'])}"
            why = f"  (silenced: {visible(each['silenced'])})" if "silenced" in each else ""
            yield f"  {each['tier']:<4}  {each['check']}  {name}  {visible(each['where'])}{why}"
            yield f"        {visible(each['what'])}"


def as_sarif(report: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a report in SARIF 2.1.0, the format of code scanners."""
    from thoughtgate.policy.inspection.checks import CHECKS

    results = []
    for one in report:
        for found in one["findings"]:
            where = f"{one['server']}/{found['kind']}/{found['name']}{found['where']}"
            result: dict[str, Any] = {
                "ruleId": found["check"],
                "level": _LEVELS.get(found["tier"], "note"),
                "message": {"text": f"{where}: {found['what']}"},
                "locations": [{"logicalLocations": [{"fullyQualifiedName": where}]}],
            }
            if "silenced" in found:
                reason = found["silenced"]
                result["suppressions"] = [{"kind": "external", "justification": reason}]
            results.append(result)
    rules = [
        {"id": name, "shortDescription": {"text": check.title}} for name, check in CHECKS.items()
    ]
    driver = {"name": "thoughtgate", "version": __version__, "rules": rules}
    failed = [
        {"level": "error", "message": {"text": f"{one['server']}: {one['failure']}"}}
        for one in report
        if one["failure"]
    ]
    invocation = {
        "executionSuccessful": not failed,
        "toolExecutionNotifications": failed,
    }
    run = {"tool": {"driver": driver}, "invocations": [invocation], "results": results}
    return {"$schema": _SARIF, "version": "2.1.0", "runs": [run]}
