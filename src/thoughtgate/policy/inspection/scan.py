"""All checks of one text: the first pass, the checks that its marks call for, and decoded text again."""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from thoughtgate.policy.inspection import checks, marks
from thoughtgate.policy.inspection.commands import find_paths, find_shell
from thoughtgate.policy.inspection.encoded import (
    Decoded,
    collapse,
    find_codes,
    find_encoded,
    undisguise,
    unleet,
)
from thoughtgate.policy.inspection.finding import HARD, SOFT
from thoughtgate.policy.inspection.hidden import find_hidden
from thoughtgate.policy.inspection.instruction_model import WHAT, find_orders
from thoughtgate.policy.inspection.links import judge_link, judge_metadata, judge_scheme
from thoughtgate.policy.inspection.marks import Hit, marks_for
from thoughtgate.policy.inspection.normal import Normal, normalise
from thoughtgate.policy.inspection.personal import find_personal
from thoughtgate.policy.inspection.secret_values import (
    find_bearer,
    find_jwt,
    find_named,
    find_private_key,
    find_token,
    find_url_password,
)
from thoughtgate.policy.inspection.sentences import sentences_in
from thoughtgate.policy.inspection.words import regions

MAX_DECODED: Final = 3
"""How often decoded text is decoded again."""

MAX_FOUND: Final = 400
"""Findings of one text that have a place; more of a check are one finding about the whole text."""


class Found(NamedTuple):
    """A finding in a text, before its place in the value is known."""

    check: str
    tier: str
    start: int
    end: int
    what: str


_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def scan_text(text: str, kind: str, depth: int = 0) -> list[Found]:
    """Return everything that the checks find in a text."""
    found: list[Found] = []
    if not text.isascii() and _SURROGATE.search(text):
        at = _SURROGATE.search(text)
        start = at.start() if at else 0
        found.append(
            Found(
                checks.UNREADABLE,
                HARD,
                start,
                start + 1,
                "half of a surrogate pair: not valid text",
            )
        )
        text = _SURROGATE.sub("\ufffd", text)
    scan = _Scan(text, kind, depth)
    for look in _LOOKS:
        try:
            found += look(scan)
        except Exception as error:  # noqa: BLE001  a check must not fail open: its failure is a finding
            what = f"a check failed: {type(error).__name__}"
            found.append(Found(checks.FAILED, HARD, 0, 0, what))
    # Each check is named: many findings of one must not hide those of another.
    rest = dict.fromkeys((one.check, one.tier) for one in found[MAX_FOUND:])
    more = [Found(check, tier, 0, 0, "more findings than can be listed") for check, tier in rest]
    return found[:MAX_FOUND] + more


class _Scan:
    """A text with what its first pass found."""

    __slots__ = ("depth", "hits", "kind", "normal", "text")

    def __init__(self, text: str, kind: str, depth: int) -> None:
        self.text = text
        self.kind = kind
        self.depth = depth
        self.normal: Normal = normalise(text)
        self.hits: dict[str, list[Hit]] = marks_for(kind).find(self.normal.text)

    def of(self, group: str) -> Iterator[Hit]:
        """Yield the marks of a group, at their places in the text itself."""
        for hit in self.hits.get(group, ()):
            if self.normal.offsets is None:
                yield hit
            else:
                yield Hit(hit.payload, *self.normal.original(hit.start, hit.end))


def _hidden(scan: _Scan) -> Iterator[Found]:
    for one in find_hidden(scan.text, scan.kind):
        yield Found(*one[:5])
        if one.message and scan.depth < MAX_DECODED:
            yield from _inner(
                scan, Decoded(one.start, one.end, one.message, "invisible characters")
            )
    for start, end in scan.normal.mixed:
        tier = HARD if scan.kind == checks.DEFINITION and end - start == len(scan.text) else SOFT
        yield Found(checks.SCRIPTS, tier, start, end, "a word with letters of two scripts")


def _secrets(scan: _Scan) -> Iterator[Found]:
    text = scan.text
    exact = [find_token(text, hit.start, hit.payload) for hit in scan.of(marks.TOKEN)]
    for group, find in _EXACT:
        exact += [find(text, hit.start) for hit in scan.of(group)]
    taken: list[tuple[int, int]] = []
    done = -1
    for found in sorted((one for one in exact if one), key=lambda one: (one.start, -one.end)):
        if found.start >= done:
            yield Found(*found)
            taken.append((found.start, found.end))
            done = found.end
    yield from _named_secrets(scan, taken)


_EXACT: Final = (
    (marks.JWT, find_jwt),
    (marks.KEY, find_private_key),
    (marks.URL, find_url_password),
)


def _named_secrets(scan: _Scan, taken: list[tuple[int, int]]) -> Iterator[Found]:
    """Yield the values that are named secret, except what is already known by its format."""
    named = [find_named(scan.text, hit.start, hit.end) for hit in scan.of(marks.NAMED)]
    named += [find_bearer(scan.text, hit.start) for hit in scan.of(marks.BEARER)]
    index, last = 0, -1
    for one in sorted((found for found in named if found), key=lambda found: found.start):
        while index < len(taken) and taken[index][1] <= one.start:
            index += 1
        overlaps = index < len(taken) and taken[index][0] < one.end
        if overlaps or one.start < last:
            continue
        last = one.end
        if scan.kind != checks.DEFINITION or one.tier == HARD:  # not defaults and examples
            yield Found(*one)


def _links(scan: _Scan) -> Iterator[Found]:
    for hit in scan.of(marks.URL):
        link = judge_link(scan.text, hit.start, scan.kind)
        if link:
            yield Found(*link)
    for hit in scan.of(marks.SCHEME):
        link = judge_scheme(scan.text, hit.start, scan.kind)
        if link:
            yield Found(*link)
    for hit in scan.of(marks.METADATA):
        link = judge_metadata(scan.text, hit.start, hit.end, scan.kind)
        if link:
            yield Found(*link)


def _commands(scan: _Scan) -> Iterator[Found]:
    places = [hit.start for hit in scan.of(marks.SHELL)]
    for command in find_shell(scan.text, places, scan.kind):
        yield Found(*command)
    paths = [hit.start for hit in scan.of(marks.PATH)]
    for command in find_paths(scan.text, paths, scan.kind):
        yield Found(*command)


def _personal(scan: _Scan) -> Iterator[Found]:
    if scan.kind != checks.DEFINITION:
        for one in find_personal(scan.text):
            yield Found(*one)


def _instructions(scan: _Scan) -> Iterator[Found]:
    if scan.kind == checks.DEFINITION and not scan.depth:
        return  # read sentence by sentence, each at its place in the definition
    text = scan.normal.text
    words = ((hit.payload, hit.start) for hit in scan.hits.get(marks.WORD, ()))
    kind = checks.RESULT if scan.depth else scan.kind  # what was decoded is no description
    for first, last in regions(words, len(text)):
        for check, tier, one in find_orders(sentences_in(text[first:last]), kind):
            start = first + one.start
            place = scan.normal.original(start, start + len(one.text))
            yield Found(check, tier, *place, WHAT[check])


def _encoded(scan: _Scan) -> Iterator[Found]:
    if scan.depth >= MAX_DECODED:
        return
    for decoded in (*find_encoded(scan.text), *find_codes(scan.text)):
        yield from _inner(scan, decoded)
    for hit in scan.of(marks.DISGUISE):
        yield from _inner(scan, undisguise(scan.normal.text, hit.start, hit.end, hit.payload))
        break  # the text around it is read at once; others are disguised in the same way
    for hit in scan.of(marks.LEET):
        yield from _inner(scan, unleet(scan.normal.text, hit.start, hit.end))
        break
    done = -1
    for hit in scan.hits.get(marks.SPACED, ()):
        if hit.start < done:
            continue
        spaced = collapse(scan.normal.text, hit.start)
        if spaced:
            done = spaced.end
            start, end = scan.normal.original(spaced.start, spaced.end)
            yield Found(checks.ENCODED, HARD, start, end, "words spelled letter by letter")


def _inner(scan: _Scan, decoded: Decoded) -> Iterator[Found]:
    """Yield what decoded text contains, at the place of the encoded one."""
    inner = [
        one
        for one in scan_text(decoded.text, scan.kind, scan.depth + 1)
        if one.check != checks.SCRIPTS
    ]
    if decoded.encoding in {"rot13", "reversed", "digits in place of letters"}:
        inner = [one for one in inner if one.check.startswith("instructions-")]
    for one in inner:
        yield Found(
            one.check, one.tier, decoded.start, decoded.end, f"{one.what} (in {decoded.encoding})"
        )
    if any(one.tier == HARD for one in inner):
        what = f"text in {decoded.encoding} that has findings"
        yield Found(checks.ENCODED, HARD, decoded.start, decoded.end, what)
    elif inner or (scan.kind == checks.DEFINITION and decoded.encoding in _ODD):
        yield Found(checks.ENCODED, SOFT, decoded.start, decoded.end, f"text in {decoded.encoding}")


_ODD: Final = frozenset(
    {"base64", "base32", "hexadecimal", "character codes", "binary", "escapes", "HTML entities"}
)

_LOOKS: Final[tuple[Callable[[_Scan], Iterator[Found]], ...]] = (
    _hidden,
    _secrets,
    _links,
    _commands,
    _personal,
    _encoded,
    _instructions,
)
