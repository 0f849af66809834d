"""``thoughtgate policy test``: check the policy against a file of expectations."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from typer import Argument, Exit

from thoughtgate.cli.options import ConfigOption, JsonOption, examples, read_config
from thoughtgate.cli.output import write_report
from thoughtgate.cli.policy.explain import METHODS
from thoughtgate.config.document import Document
from thoughtgate.config.parse import parse
from thoughtgate.errors import EXIT_CONFIG, EXIT_FAILURE, ConfigError, Problem
from thoughtgate.policy.call import APPROVE, DENY, FORWARD, PROMPT, RESOURCE, TOOL, Call, Verdict
from thoughtgate.policy.evaluation import evaluate
from thoughtgate.policy.facts import ESTABLISHED
from thoughtgate.policy.policy import Policy
from thoughtgate.record.call_rows import parse_time

TEST_EXAMPLES: Final = examples(
    "thoughtgate policy test expectations.yaml",
    "thoughtgate policy test expectations.yaml -c candidate.yaml --json",
)

_KEYS: Final = frozenset(
    {"name", "server", TOOL, RESOURCE, PROMPT, "arguments", "annotations", "principal", "expect"}
    | {"gate", "rule", "workflow", "kind", "scopes", "facts", "at"}
)
_ACTIONS: Final = (FORWARD, DENY, APPROVE)
_GATES: Final = ("visibility", "rules", "default", "cedar", "internal")
"""Gates that can decide here; limits and approvals are not evaluated."""
_EXAMPLE: Final = "tests: [{server: s, tool: t, expect: deny}]"


class ExpectationsError(ConfigError):
    """A file of expectations is invalid, which says nothing about the policy."""

    exit_code = EXIT_FAILURE


class Expectation(NamedTuple):
    """One call and its expected verdict."""

    name: str
    call: Call
    expected: dict[str, str]
    """``action`` and, if given, ``gate``, ``rule``, ``workflow`` and ``kind``."""
    line: int
    at: float = 0.0
    """When the call is made, for policies that depend on the time; 0 for now."""


class Result(NamedTuple):
    """The result of checking one expectation."""

    expectation: Expectation
    verdict: Verdict
    differs: tuple[str, ...]
    """The differences from the expected verdict, as text."""


def expectations_command(
    file: Annotated[Path, Argument(metavar="FILE", help="YAML file with the expectations.")],
    *,
    config: ConfigOption = None,
    json_: JsonOption = False,
) -> None:
    """Evaluate the calls in a file and compare the verdicts with the expected ones.

    The exit code is 0 if all verdicts are as expected, 1 if not, and 2 if the file is invalid.
    """
    loaded = read_config(config)
    expectations = load_expectations(file)
    results = [check(one, loaded.policy, time.time()) for one in expectations]
    write_report([_as_json(result) for result in results], _lines(file, results), as_json=json_)
    if any(result.differs for result in results):
        raise Exit(EXIT_CONFIG)


def _lines(file: Path, results: list[Result]) -> Iterator[str]:
    for result in results:
        yield f"{'FAIL' if result.differs else 'ok  '}  {result.expectation.name}"
        for text in result.differs:
            yield f"      {file}:{result.expectation.line}: {text}"
    passed = sum(not result.differs for result in results)
    yield f"{passed} of {len(results)} as expected"


def load_expectations(file: Path) -> list[Expectation]:
    """Read a file of expectations.

    Raises:
        ExpectationsError: it cannot be read or is invalid; every problem is listed.
    """
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ExpectationsError(
            [Problem("", f"cannot be read: {reason}; write one such as: {_EXAMPLE}", str(file))]
        ) from None
    hint = f"write expectations, such as '{_EXAMPLE}'"
    try:
        document = parse(text, file=str(file), hint=hint, example=_EXAMPLE)
    except ConfigError as error:
        raise ExpectationsError(error.problems) from None
    entries = document.data.get("tests")
    if not isinstance(entries, list) or not entries or document.data.keys() != {"tests"}:
        message = f"the file must have one key, tests, with a list such as '{_EXAMPLE}'"
        raise ExpectationsError([Problem("tests", message, str(file))])
    problems: list[Problem] = []
    found = [_read(entry, at, document, str(file), problems) for at, entry in enumerate(entries)]
    if problems:
        raise ExpectationsError(problems)
    return [one for one in found if one is not None]


def check(expectation: Expectation, policy: Policy, now: float) -> Result:
    """Evaluate one call and compare the verdict with the expected one."""
    verdict = evaluate(expectation.call, policy, expectation.at or now)
    differs = tuple(
        f"{name} is {getattr(verdict, name) or 'none'}, not {wanted}"
        + (f": {verdict.reason}" if name == "action" and verdict.reason else "")
        for name, wanted in expectation.expected.items()
        if getattr(verdict, name) != wanted
    )
    return Result(expectation, verdict, differs)


def _read(
    entry: Any, at: int, document: Document, file: str, problems: list[Problem]
) -> Expectation | None:
    line = document.lines.get(("tests", at), 0)
    found = list(_problems_of(entry))
    for member, message in found:
        key = f"tests[{at}].{member}" if member else f"tests[{at}]"
        problems.append(Problem(key, message, file, line))
    return None if found else _expectation(entry, line)


def _problems_of(entry: Any) -> Iterator[tuple[str, str]]:
    """Yield the problems of an entry: the key and what is wrong with it."""
    if not isinstance(entry, dict):
        yield "", "must be an object such as {server: s, tool: t, expect: deny}"
        return
    yield from _problems_of_types(entry)
    for name in sorted(map(str, entry.keys() - _KEYS)):
        yield name, f"unknown key; use one of {', '.join(sorted(_KEYS))}"
    if len(_kinds(entry)) != 1:
        yield "", "give exactly one of tool, resource and prompt"
    if entry.get("expect") not in _ACTIONS:
        yield "expect", f"must be one of {', '.join(_ACTIONS)}"
    # Other types than strings were already reported.
    gate = entry.get("gate", _GATES[0])
    if isinstance(gate, str) and gate not in _GATES:
        yield "gate", f"must be one of {', '.join(_GATES)}"


def _problems_of_types(entry: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("arguments", "annotations"):
        if not isinstance(entry.get(name, {}), dict):
            yield name, "must be an object"
    if not _are_texts(entry.get("scopes", [])):
        yield "scopes", "must be a list of strings"
    facts = entry.get("facts", [])
    if not _are_texts(facts) or not set(facts) <= set(ESTABLISHED):
        yield "facts", f"must be a list of {' and '.join(ESTABLISHED)}"
    if "at" in entry and _moment(entry["at"]) is None:
        yield "at", "must be a time in quotes, such as '2026-01-31T12:00:00Z'"
    for name in ("server", "name", "gate", "rule", "workflow", "kind", "principal"):
        if not isinstance(entry.get(name, ""), str):
            yield name, "must be a string"


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _moment(value: Any) -> float | None:
    return parse_time(value) if isinstance(value, str) else None


def _kinds(entry: dict[str, Any]) -> list[str]:
    return [kind for kind in METHODS if isinstance(entry.get(kind), str)]


def _expectation(entry: dict[str, Any], line: int) -> Expectation:
    (kind,) = _kinds(entry)
    call = Call(
        entry.get("server", ""),
        kind,
        entry[kind],
        entry.get("arguments", {}),
        method=METHODS[kind],
        annotations=entry.get("annotations"),
        principal=entry.get("principal", "local"),
        claims={"scope": " ".join(entry["scopes"])} if entry.get("scopes") else None,
        facts=frozenset(entry.get("facts", ())),
    )
    name = entry.get("name") or f"{kind} {call.name} of {call.server or 'any server'}"
    expected = {"action": entry["expect"]}
    checked = ("gate", "rule", "workflow", "kind")
    expected |= {name: entry[name] for name in checked if name in entry}
    return Expectation(name, call, expected, line, _moment(entry.get("at")) or 0.0)


def _as_json(result: Result) -> dict[str, Any]:
    return {
        "name": result.expectation.name,
        "passed": not result.differs,
        "line": result.expectation.line,
        "expected": result.expectation.expected,
        "verdict": result.verdict._asdict(),
        "differs": list(result.differs),
    }
