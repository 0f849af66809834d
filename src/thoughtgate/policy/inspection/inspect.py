"""The content checks: what they find in definitions, arguments and results.

Pure: values in, findings out. A check that raises is itself a finding, because its answer is
not known.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from thoughtgate.policy.inspection import checks
from thoughtgate.policy.inspection.definitions import (
    find_elicited_secrets,
    find_schema,
    find_shadowing,
)
from thoughtgate.policy.inspection.finding import HARD, Finding
from thoughtgate.policy.inspection.instruction_model import WHAT, find_orders
from thoughtgate.policy.inspection.replacement import replace_findings
from thoughtgate.policy.inspection.scan import scan_text
from thoughtgate.policy.inspection.secret_values import is_secret_name, judge_member
from thoughtgate.policy.inspection.sentences import find_disguised, sentences_of_definition
from thoughtgate.policy.inspection.texts import Texts, gather

_NO_NEIGHBOURS: Final[Mapping[str, Collection[str]]] = MappingProxyType({})

MAX_FINDINGS: Final = 200
"""Findings of one value that are listed one by one, the strictest first."""

_MORE: Final = "more findings than can be listed"


def inspect_definition(
    entry: Mapping[str, Any],
    *,
    kind: str = "tool",
    server: str = "",
    neighbours: Mapping[str, Collection[str]] = _NO_NEIGHBOURS,
) -> tuple[Finding, ...]:
    """Inspect what a server says of a tool, prompt, resource or of itself.

    ``kind`` is ``tool``, ``prompt``, ``resource`` or ``server`` (name, title, instructions);
    ``neighbours`` has the ids of the other servers with the names of their tools.
    """

    def more(texts: Texts) -> Iterator[Finding]:
        yield from find_schema(entry)
        sentences = list(sentences_of_definition(entry, texts))
        yield from find_disguised(sentences)
        for check, tier, one in find_orders(sentences, checks.DEFINITION):
            end = one.start + len(one.text)
            yield Finding(check, tier, one.pointer, one.start, end, WHAT[check])
        if kind == "tool":
            others = {id_: names for id_, names in neighbours.items() if id_ != server}
            yield from find_shadowing(entry, texts.joined, others)

    return _inspect(entry, checks.DEFINITION, more)


def inspect_arguments(value: Any) -> tuple[Finding, ...]:
    """Inspect the arguments of a call."""
    return _inspect(value, checks.ARGUMENTS, _named_members)


def inspect_result(value: Any) -> tuple[Finding, ...]:
    """Inspect the result of a call, of reading a resource or of getting a prompt."""
    return _inspect(value, checks.RESULT, _named_members)


def inspect_elicitation(params: Any) -> tuple[Finding, ...]:
    """Inspect what a server asks the user for."""

    def more(texts: Texts) -> Iterator[Finding]:
        yield from _named_members(texts)
        if isinstance(params, Mapping):
            yield from find_elicited_secrets(params)

    return _inspect(params, checks.RESULT, more)


def without_findings(value: Any, findings: Iterable[Finding]) -> Any:
    """Return a copy with a typed placeholder in place of each span; the structure stays valid."""
    return replace_findings(value, findings)


def _inspect(value: Any, kind: str, more: Any) -> tuple[Finding, ...]:
    found: list[Finding] = []
    try:
        texts = gather(value)
        for problem in texts.problems:
            what = f"not inspected completely: {problem}"
            found.append(Finding(checks.UNREADABLE, HARD, "", 0, 0, what))
        for one in scan_text(texts.joined, kind):
            place = texts.place(one.start, one.end) if one.end else ("", 0, 0)
            found.append(Finding(one.check, one.tier, *place, one.what))
        found += more(texts)
    except Exception as error:  # noqa: BLE001  a check must not fail open: its failure is a finding
        what = f"a check failed: {type(error).__name__}"
        found.append(Finding(checks.FAILED, HARD, "", 0, 0, what))
    return _settled(found)


def _settled(found: list[Finding]) -> tuple[Finding, ...]:
    """Return each finding once, the strictest first.

    If there are too many, each check of the others has one finding that concerns the whole value:
    otherwise a server could hide what must be held behind a lot of what is only redacted.
    """
    if not found:
        return ()
    unique: dict[tuple[str, str, int], Finding] = {}
    for one in sorted(found, key=lambda one: one.tier != HARD):
        unique.setdefault((one.check, one.pointer, one.start), one)
    settled = tuple(unique.values())
    rest = dict.fromkeys((one.check, one.tier) for one in settled[MAX_FINDINGS:])
    more = (Finding(check, tier, "", 0, 0, _MORE) for check, tier in rest)
    return (*settled[:MAX_FINDINGS], *more)


_VALUES: Final = frozenset({"value", "val", "content", "data"})
_NAMES: Final = frozenset({"name", "key", "variable", "var", "env", "label"})


def _name_of(texts: Texts, index: int) -> str:
    """Return what a value is called: by its member, or by the "name" beside its "value"."""
    key = texts.keys[index] or ""
    if key.lower() in _VALUES:
        for beside in (*range(index - 1, index - 4, -1), *range(index + 1, index + 4)):
            is_there = 0 <= beside < len(texts.keys)
            if is_there and (texts.keys[beside] or "").lower() in _NAMES:
                return texts.joined[slice(*texts.span(beside))][:_MAX_NAME]
    return key


_MAX_NAME: Final = 100


def _named_members(texts: Texts) -> Iterator[Finding]:
    """Yield the values whose member is named like a secret."""
    for index, key in enumerate(texts.keys):
        key = _name_of(texts, index) if key and key.lower() in _VALUES else key  # noqa: PLW2901
        if not key or not is_secret_name(key):
            continue
        start, end = texts.span(index)
        tier = judge_member(key, texts.joined[start:end])
        if tier:
            what = "the value of a member that is named secret"
            yield Finding(checks.SECRET_VALUE, tier, *texts.place(start, end), what)
