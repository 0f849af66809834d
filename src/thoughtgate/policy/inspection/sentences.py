"""The sentences of a value, with the classes of words that stand in each.

A poisoned description begins with what the tool does and goes on with what the model shall do. So
a sentence of a definition also says where it stands, and which of its classes the name or the
first sentence has as well: those are what the tool is about.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from thoughtgate.policy.inspection import checks
from thoughtgate.policy.inspection.definitions import parameters_of
from thoughtgate.policy.inspection.features import telling_classes, trait_finder
from thoughtgate.policy.inspection.finding import SOFT, Finding
from thoughtgate.policy.inspection.normal import normalise
from thoughtgate.policy.inspection.texts import Texts, render_pointer

MAX_SENTENCES: Final = 400
"""Sentences of a definition that are read; more is a manual, which the other checks read."""
MAX_SENTENCE: Final = 600
"""Characters that are read as one sentence."""
_MIN_SENTENCE: Final = 12

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
    """A sentence with its place."""

    text: str
    pointer: str
    start: int
    normal: str
    """The sentence in one spelling."""
    traits: frozenset[str]
    """The classes of its words, and where it stands."""


def sentences_in(text: str) -> Iterator[Sentence]:
    """Yield the sentences of a normalised text."""
    for start, said in _split(text):
        yield Sentence(said, "", start, said, _traits(said, frozenset(), {}))


def sentences_of_definition(entry: Mapping[str, Any], texts: Texts) -> Iterator[Sentence]:
    """Yield the sentences of a definition, with the traits that each has."""
    name, described = entry.get("name"), entry.get("description")
    called = name.lower() if isinstance(name, str) else ""
    names = {one.lower(): "own parameter" for _, one, _ in parameters_of(entry)}
    names[called] = "own name"
    first = _SENTENCE.split(described.strip(), maxsplit=1)[0] if isinstance(described, str) else ""
    head = normalise(f"{re.sub(r'[_-]', ' ', called)}. {first}").text
    topic = frozenset(trait for _, _, traits in trait_finder().find(head) for trait in traits)
    left = MAX_SENTENCES
    for index, key in enumerate(texts.keys):
        pointer = render_pointer(texts.paths[index])
        if key in _NO_PROSE or pointer == "/name":
            continue
        for start, said in _split(texts.joined[slice(*texts.span(index))]):
            is_first = pointer == "/description" and start == 0
            spoken = said if " " in said else said.replace("_", " ")  # a name can be a sentence
            normal = normalise(spoken).text
            traits = _traits(normal, frozenset() if is_first else topic, names)
            place = "first" if is_first else _place(pointer, key)
            yield Sentence(said, pointer, start, normal, traits | {place})
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


def find_disguised(sentences: Iterable[Sentence]) -> Iterator[Finding]:
    """Yield the first sentence that is spelled so that people and filters do not read it."""
    for one in sentences:
        if _SPELLED.search(one.text) or len(_LEET.findall(one.text)) >= _MANY_LEET:
            what = "words spelled letter by letter, or with digits in place of letters"
            end = one.start + len(one.text)
            yield Finding(checks.ENCODED, SOFT, one.pointer, one.start, end, what)
            return


def _place(pointer: str, key: str) -> str:
    if pointer.startswith("/outputSchema"):
        return "in output"
    if pointer.startswith(("/inputSchema", "/arguments")):
        return "in parameter" if key in _PROSE else "in value"
    return "in text" if key in _PROSE else "in label"


def _traits(text: str, topic: frozenset[str], names: Mapping[str, str]) -> frozenset[str]:
    """Return the traits of a normalised sentence."""
    found = telling_classes(text)
    denial = -_DENIAL - 1
    for start, end, traits in trait_finder().find(text):
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


_NO_PROSE: Final = frozenset({"required", "type", "format", "$schema", "$ref", "pattern"})
