"""Sentences of a definition that speak to the model about something other than the tool.

A poisoned description begins with what the tool does and goes on with what the model shall do.
Each sentence is weighed by the traits that stand in it, alone and in pairs: who is addressed, what
is asked for, about what, and with which excuse or secrecy. A trait that the name or the first
sentence has as well is what the tool is about, and weighs less. All findings are soft.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations
from typing import Any, Final, NamedTuple

from thoughtgate.policy.inspection import checks
from thoughtgate.policy.inspection.definitions import parameters_of
from thoughtgate.policy.inspection.finding import SOFT, Finding
from thoughtgate.policy.inspection.normal import normalise
from thoughtgate.policy.inspection.texts import Texts, render_pointer
from thoughtgate.policy.inspection.trait_weights import BIAS, WEIGHTS
from thoughtgate.policy.inspection.traits import TRAITS
from thoughtgate.policy.inspection.words import WordFinder

MAX_SENTENCES: Final = 400
"""Sentences of a definition that are read; more is a manual, which the other checks read."""
MAX_SENTENCE: Final = 600
"""Characters that are read as one sentence."""
_MIN_SENTENCE: Final = 12
DOUBTFUL: Final = -1.5
"""Weight of the heaviest sentence below which clear words alone do not hold a definition."""

_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+|(?<=[。！？；])")
_ADDRESS: Final = re.compile(
    r"\b[a-z]{2,10}://[^\s)\"'>]+|\b[\w.+-]{1,40}@[\w-]{1,40}\.[a-z]{2,10}"
)
_IDENTIFIER: Final = re.compile(r"\b[a-z][a-z0-9]{1,20}(?:_[a-z0-9]{1,20}){1,5}\b")
_QUOTED: Final = re.compile(r"[`'\"]([\w.-]{1,40})[`'\"]")
_SPELLED: Final = re.compile(r"(?<!\w)(?:[^\W\d_][ .*|/+~\u00b7-]{1,3}){9}[^\W\d_](?!\w)")
_LEET: Final = re.compile(r"\b[A-Za-z]*[013457][A-Za-z]{1,20}\b")
_MANY_LEET: Final = 4
"""Words with a digit in place of a letter; names such as h264 or i18n are fewer."""
_DENIAL: Final = 24
"""Characters between a negation and the verb that it denies."""
_DENIABLE: Final = ("give", "take", "use", "harm", "obey", "say")
_SUBJECTS: Final = frozenset(
    {"model", "user", "take", "give", "use", "obey", "harm", "secret", "personal", "talk", "self"}
    | {"others", "consent", "say", "office", "thing"}
)
"""Traits that can be what a tool is about."""
_PROSE: Final = frozenset({"description", "instructions"})


class Sentence(NamedTuple):
    """A sentence with its place and its traits."""

    text: str
    pointer: str
    start: int
    traits: frozenset[str]


@cache
def _finder() -> WordFinder:
    return WordFinder(TRAITS)


def weigh_sentences(entry: Mapping[str, Any], texts: Texts) -> list[tuple[float, Sentence]]:
    """Return the sentences of a definition, each with its weight."""
    return [(weigh(one.traits), one) for one in sentences_of(entry, texts)]


def find_asides(weighed: Iterable[tuple[float, Sentence]]) -> Iterator[Finding]:
    """Yield the sentences that weigh too much, the heaviest of each check."""
    best: dict[str, tuple[float, Sentence]] = {}
    for weight, one in weighed:
        disguised = _SPELLED.search(one.text) or len(_LEET.findall(one.text)) >= _MANY_LEET
        check = checks.ENCODED if disguised else _check_of(one.traits) if weight >= 0 else ""
        if check and (check not in best or weight > best[check][0]):
            best[check] = weight, one
    for check, (_, one) in best.items():
        start, end = one.start, one.start + len(one.text)
        yield Finding(check, SOFT, one.pointer, start, end, _WHAT[check])


def join_findings(
    found: tuple[Finding, ...], weighed: list[tuple[float, Sentence]]
) -> tuple[Finding, ...]:
    """Return the findings of other checks together with those of the sentences.

    A sentence in which instructions were found has no second finding. If no sentence weighs
    enough, hard findings of instructions are soft: their words are there, but little else.
    """
    instructions = [one for one in found if one.check.startswith("instructions-")]
    if instructions and max((weight for weight, _ in weighed), default=0.0) < DOUBTFUL:
        found = tuple(one._replace(tier=SOFT) if one in instructions else one for one in found)
        found = tuple(sorted(found, key=lambda one: one.tier == SOFT))
    asides = (
        one
        for one in find_asides(weighed)
        if not any(
            other.pointer == one.pointer and other.start < one.end and one.start < other.end
            for other in instructions
        )
    )
    return (*found, *asides)


def weigh(traits: Collection[str]) -> float:
    """Return the sum of the weights of traits and of their pairs; honest ones stay below 0."""
    weights = WEIGHTS
    total = BIAS + sum(weights.get(one, 0.0) for one in traits)
    return total + sum(weights.get(" + ".join(two), 0.0) for two in combinations(sorted(traits), 2))


def sentences_of(entry: Mapping[str, Any], texts: Texts) -> Iterator[Sentence]:
    """Yield the sentences of a definition, with the traits that each has."""
    name, described = entry.get("name"), entry.get("description")
    called = name.lower() if isinstance(name, str) else ""
    names = {one.lower(): "own parameter" for _, one, _ in parameters_of(entry)}
    names[called] = "own name"
    first = _SENTENCE.split(described.strip(), maxsplit=1)[0] if isinstance(described, str) else ""
    head = normalise(f"{re.sub(r'[_-]', ' ', called)}. {first}").text
    topic = frozenset(trait for _, _, traits in _finder().find(head) for trait in traits)
    left = MAX_SENTENCES
    for index, key in enumerate(texts.keys):
        pointer = render_pointer(texts.paths[index])
        if key in _NO_PROSE or pointer == "/name":
            continue
        for start, said in _split(texts.joined[slice(*texts.span(index))]):
            is_first = pointer == "/description" and start == 0
            spoken = said if " " in said else said.replace("_", " ")  # a name can be a sentence
            traits = _traits(normalise(spoken).text, frozenset() if is_first else topic, names)
            place = "first" if is_first else _place(pointer, key)
            yield Sentence(said, pointer, start, traits | {place})
            left -= 1
            if not left:
                return


def _split(text: str) -> Iterator[tuple[int, str]]:
    start = 0
    for match in (*_SENTENCE.finditer(text), None):
        end = match.start() if match else len(text)
        for at in range(start, end, MAX_SENTENCE):
            said = text[at : min(end, at + MAX_SENTENCE)]
            if len(said) >= _MIN_SENTENCE or not said.isascii():
                yield at, said
        start = match.end() if match else end


def _place(pointer: str, key: str) -> str:
    if pointer.startswith("/outputSchema"):
        return "in output"
    if pointer.startswith(("/inputSchema", "/arguments")):
        return "in parameter" if key in _PROSE else "in value"
    return "in text" if key in _PROSE else "in label"


def _traits(text: str, topic: frozenset[str], names: Mapping[str, str]) -> frozenset[str]:
    """Return the traits of a normalised sentence."""
    found: set[str] = set()
    denial = -_DENIAL - 1
    for start, end, traits in _finder().find(text):
        for trait in traits:
            if trait == "no":
                denial = end
            denied = trait in _DENIABLE and start - denial <= _DENIAL
            known = trait in topic and trait in _SUBJECTS
            found.add(f"not {trait}" if denied else f"known {trait}" if known else trait)
    if _ADDRESS.search(text):
        found.add("address")
    for match in _IDENTIFIER.finditer(text):
        found.add(names.get(match.group(), "identifier"))
    for match in _QUOTED.finditer(text):
        found.add(names.get(match[1], "quoted"))
    return frozenset(found)


def _check_of(traits: frozenset[str]) -> str:
    """Return the check whose subject a sentence has."""
    for check, wanted in _CHECKS:
        if traits & wanted:
            return check
    return checks.BEHAVIOUR


_NO_PROSE: Final = frozenset({"required", "type", "format", "$schema", "$ref", "pattern"})
_CHECKS: Final = (
    (checks.SECRECY, frozenset({"silent"})),
    (checks.DATA, frozenset({"secret", "personal", "talk"})),
    (checks.TOOLS, frozenset({"others", "divert", "discredit"})),
    (checks.CONSENT, frozenset({"consent"})),
    (checks.ROLE, frozenset({"office", "rank", "self"})),
)
"""Which check a sentence belongs to, by the first trait that it has."""
_WHAT: Final = {
    checks.ENCODED: "words spelled letter by letter, or with digits in place of letters",
    checks.SECRECY: "says what people need not hear",
    checks.DATA: "speaks of private things that the tool is not about",
    checks.TOOLS: "says what becomes of the calls of other tools",
    checks.CONSENT: "makes light of confirmations or permissions",
    checks.ROLE: "claims authority over the model or its instructions",
    checks.BEHAVIOUR: "tells the model to do what the tool is not about",
}
