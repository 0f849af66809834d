"""Parsing of Cedar policy files: annotations, and the line of a syntax error.

Cedar's parser reports an error without its position, so a file that does not parse is split into
its policies, and each is parsed alone.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from thoughtgate.errors import Problem

_TOKEN: Final = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|\s+|\w+|[<>=!]=|&&|\|\||::|.', re.DOTALL)
_LIKE_APPROVAL: Final = re.compile(r"ap{1,2}rov|ap{1,2}orv|ask|human", re.IGNORECASE)
"""Likely misspellings of ``@approval``, which Cedar would silently ignore."""
_UNEXPECTED: Final = re.compile(r"unexpected token `(.*)`", re.DOTALL)

MAX_DEPTH: Final = 100
"""Brackets and ``if`` in one another. Cedar reads them recursively: a thousand exhaust the stack
and end the process, which no exception handler sees."""

MAX_STEPS: Final = 3000
"""Operators of one policy: a chain of them is as deep as it is long."""

TOO_DEEP: Final = "a policy is nested too deeply or too long; split it into several policies"

_OPENING: Final = frozenset({"(", "[", "{", "if"})
_CLOSING: Final = frozenset({")", "]", "}"})
_OPERATORS: Final = frozenset({"||", "&&", "+", "-", "*", ".", "!", "["})


class CedarSource(NamedTuple):
    """One policy file."""

    file: str
    """The path that the operator specified."""
    text: str
    """Its content."""


class PolicyNote(NamedTuple):
    """The annotations of a policy that the gate uses."""

    id: str
    """Its ``@id``, or ``file:policyN`` by position."""
    workflow: str | None
    """Its ``@approval``: a workflow, empty for the default one; None when it has none."""


def read_sources(sources: Sequence[CedarSource]) -> tuple[dict[str, PolicyNote], list[Problem]]:
    """Parse all files; return notes by the id that Cedar gives a policy, and the problems.

    Cedar numbers the policies of the joined text, so the notes are numbered the same way.
    """
    notes: dict[str, PolicyNote] = {}
    problems: list[Problem] = []
    for source in sources:
        try:
            policies = _parse(source.text)
        except ValueError as error:
            problems.append(_locate(source, str(error)))
            continue
        problems += _complaints(source, policies)
        for number, policy in enumerate(policies.values()):
            annotations = policy.get("annotations") or {}
            named = annotations.get("id") or f"{source.file}:policy{number}"
            workflow = (annotations["approval"] or "") if "approval" in annotations else None
            notes[f"policy{len(notes)}"] = PolicyNote(named, workflow)
    return notes, problems


def _parse(text: str) -> dict[str, dict[str, Any]]:
    """Return each policy in Cedar's JSON form, in the order of the text."""
    import cedarpy  # Here, because it loads 16 MB that a config without Cedar does not need.

    _check_depth(text)
    try:
        read = json.loads(cedarpy.policies_to_json_str(text))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if read["templates"]:
        raise ValueError(
            "templates (?principal, ?resource) authorise nothing and are not supported"
        )
    policies = read["staticPolicies"]
    # By number: as text, ``policy10`` would come before ``policy2``.
    order = sorted(policies, key=lambda name: int(name.removeprefix("policy")))
    return {name: policies[name] for name in order}


def _check_depth(text: str) -> None:
    depth = steps = 0
    for match in _TOKEN.finditer(text):
        word = match.group()
        if word == ";":
            depth = steps = 0
        # An ``if`` has no end of its own, so it counts until the end of the policy.
        depth += (word in _OPENING) - (word in _CLOSING)
        steps += word in _OPERATORS
        if depth > MAX_DEPTH or steps > MAX_STEPS:
            raise ValueError(TOO_DEEP)


def _complaints(source: CedarSource, policies: dict[str, dict[str, Any]]) -> list[Problem]:
    """Return problems that Cedar accepts but that are rarely intended."""
    if not policies:  # it would deny everything sent to it
        return [Problem("cedar.policies", "the file contains no policy", source.file)]
    problems = []
    for number, policy in enumerate(policies.values()):
        for name in policy.get("annotations") or {}:
            if name == "approval" and policy["effect"] == "forbid":
                message = "a forbid asks nobody; put @approval before a permit"
            elif name != "approval" and _LIKE_APPROVAL.match(name):
                message = f"@{name} means nothing; did you mean @approval?"
            else:
                continue
            problems.append(Problem("cedar.policies", f"policy{number}: {message}", source.file))
    return problems


def _locate(source: CedarSource, message: str) -> Problem:
    """Return the first error with its line."""
    for start, fragment in _fragments(source.text):
        try:
            _parse(fragment)
        except ValueError as error:
            at = start + _offset(fragment, str(error))
            line = source.text.count("\n", 0, at) + 1
            return Problem("cedar.policies", str(error), source.file, line)
    return Problem("cedar.policies", message, source.file)


def _fragments(text: str) -> Iterator[tuple[int, str]]:
    """Split a text after each ``;`` that ends a policy; yield each part with its offset."""
    start: int | None = None
    for match in _TOKEN.finditer(text):
        word = match.group()
        if start is None and not word.isspace() and not word.startswith("//"):
            start = match.start()
        if word == ";" and start is not None:
            yield start, text[start : match.end()]
            start = None
    if start is not None:
        yield start, text[start:]


def _offset(fragment: str, message: str) -> int:
    """Return the offset of the token that the parser did not expect."""
    unexpected = _UNEXPECTED.fullmatch(message)
    if unexpected is None:
        return 0
    for match in _TOKEN.finditer(fragment):
        # The same token may be valid where it occurs first. Up to the wrong one, only the end is.
        if match.group() == unexpected[1] and _ends_too_early(fragment[: match.start()]):
            return match.start()
    return 0


def _ends_too_early(text: str) -> bool:
    """Tell whether the only error in a text is its unexpected end."""
    try:
        _parse(text)
    except ValueError as error:
        return str(error) == "unexpected end of input"
    return True
