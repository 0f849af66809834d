"""Instructions to a model in text that should only describe: a linear model over ``features``.

The features of a passage have weights, which ``tools/fit_instruction_weights.py`` fits to labelled
texts; passages whose sum is above zero have findings. Definitions have weights of their own: a
definition may say how its tool is used, a result has no reason to address the model.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Final, NamedTuple

from thoughtgate.policy.inspection import checks, instruction_weights
from thoughtgate.policy.inspection import lexicon as lex
from thoughtgate.policy.inspection.features import class_features, word_features
from thoughtgate.policy.inspection.finding import HARD, SOFT
from thoughtgate.policy.inspection.sentences import Sentence
from thoughtgate.policy.inspection.words import SHORT

DEFINITIONS: Final = "definitions"
CONTENTS: Final = "contents"
MODELS: Final = (DEFINITIONS, CONTENTS)
HARD_AT: Final = {DEFINITIONS: 0.75, CONTENTS: 0.65}
"""Sum of weights from which a passage is clear."""
IN_ARGUMENTS: Final = "#in arguments"
"""The feature that tells arguments from results, which have the same weights."""
BIAS: Final = "#bias"
"""The name under which weights have the weight of a passage without features."""
BRIEF: Final = 60
"""Characters below which a definition has too few words for a soft finding."""
TYPICAL: Final = 200
LEAST: Final = 40
_TABLES: Final = {
    DEFINITIONS: instruction_weights.DEFINITIONS,
    CONTENTS: instruction_weights.CONTENTS,
}
_SHARE: Final = 0.5
"""Share of the heaviest sentence's weight from which another one has a finding of its own."""

Weights = Mapping[str, float]


class Passage(NamedTuple):
    """Sentences that are judged together."""

    sentences: list[Sentence]
    kind: str

    def features(self) -> set[str]:
        """Return the features of all sentences together."""
        return set().union(*(features_of(one, self.kind) for one in self.sentences))


class Order(NamedTuple):
    """A sentence with instructions."""

    check: str
    tier: str
    sentence: Sentence


def features_of(sentence: Sentence, kind: str) -> set[str]:
    """Return the features of a sentence."""
    found = word_features(sentence.normal) | class_features(sentence.traits)
    if kind == checks.ARGUMENTS:
        found.add(IN_ARGUMENTS)
    return found


def passages_of(sentences: Iterable[Sentence], kind: str) -> Iterator[Passage]:
    """Yield neighbouring sentences together, as much as is read as a whole."""
    found: list[Sentence] = []
    size = 0
    for sentence in sentences:
        if found and size + len(sentence.text) > SHORT:
            yield Passage(found, kind)
            found, size = [], 0
        found.append(sentence)
        size += len(sentence.text)
    if found:
        yield Passage(found, kind)


def find_orders(sentences: Iterable[Sentence], kind: str) -> Iterator[Order]:
    """Yield the sentences with instructions, the heaviest of each check in a passage."""
    name = model_of(kind)
    weights = load_weights(name)
    passages = list(passages_of(sentences, kind))
    # Only a whole definition: the end of a long one would be a place to hide in.
    is_brief = (
        name == DEFINITIONS and sum(len(s.text) for p in passages for s in p.sentences) < BRIEF
    )
    for passage in passages:
        total = weigh(weights, passage.features())
        if total < (HARD_AT[name] if is_brief else 0.0):
            continue
        tier = HARD if total >= HARD_AT[name] else SOFT
        sums = [(weigh(weights, features_of(one, kind)), one) for one in passage.sentences]
        heaviest = max(own for own, _ in sums) - weights[BIAS]
        shown: set[str] = set()
        for own, one in sorted(sums, key=lambda pair: -pair[0]):
            check = _check_of(one.traits)
            if check not in shown and own - weights[BIAS] >= _SHARE * heaviest:
                shown.add(check)
                yield Order(check, tier, one)


def weigh(weights: Weights, features: Collection[str]) -> float:
    """Return the sum of the weights; that of honest text is below zero."""
    total = sum(weights.get(one, 0.0) for one in features)
    return weights[BIAS] + scale(len(features)) * total


def scale(count: int) -> float:
    """Return how much each of many features counts: less in a longer text."""
    return math.sqrt(TYPICAL / max(count, LEAST))


def model_of(kind: str) -> str:
    """Return which weights judge a kind of value."""
    return DEFINITIONS if kind == checks.DEFINITION else CONTENTS


@cache
def load_weights(name: str) -> Weights:
    """Return the weights of a model."""
    return parse_weights(_TABLES[name])


def parse_weights(table: str) -> Weights:
    """Return the weights of lines with a weight and its features, two spaces between them."""
    weights: dict[str, float] = {}
    for line in table.strip("\n").splitlines():
        weight, *features = line.split("  ")
        weights.update(dict.fromkeys(features, float(weight)))
    return weights


def _check_of(traits: frozenset[str]) -> str:
    """Return the check whose subject a sentence has."""
    return next((check for check, wanted in _CHECKS if traits & wanted), checks.BEHAVIOUR)


def _telling(*names: str) -> frozenset[str]:
    return frozenset(f"telling {name}" for name in names)


_CHECKS: Final = (
    (checks.OVERRIDE, _telling(lex.RESET, lex.ABOVE)),
    (checks.CONCEALED, _telling(lex.TAG)),
    (checks.ROLE, _telling(lex.MARKER, lex.TITLE, lex.ROLE)),
    (checks.SECRECY, frozenset({"silent"}) | _telling(lex.QUIET, lex.KEEP)),
    (checks.OVERRIDE, _telling(lex.IGNORE)),
    (checks.DATA, frozenset({"secret", "personal", "talk"}) | _telling(lex.PROMPT, lex.THEFT)),
    (checks.TOOLS, frozenset({"others", "divert", "discredit"})),
    (checks.CONSENT, frozenset({"consent"}) | _telling(lex.UNASKED, lex.AGREED)),
    (checks.ROLE, frozenset({"office", "rank", "self"})),
)
"""Which check a sentence belongs to, by the first class that it has."""

WHAT: Final = {
    checks.OVERRIDE: "tells the model to replace its instructions",
    checks.ROLE: "claims to speak as the system or gives the model a role",
    checks.SECRECY: "tells the model to keep something from the user",
    checks.DATA: "tells the model to collect or hand over data",
    checks.TOOLS: "tells the model how to use or avoid other tools",
    checks.CONSENT: "tells the model to act without asking",
    checks.BEHAVIOUR: "tells the model what to do",
    checks.CONCEALED: "hides instructions from people",
}
"""What each check says of a sentence."""
