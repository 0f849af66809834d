"""Fit the weights by which instructions to a model are found, and write them.

A linear support vector machine over the features of each text, without any library. The same
corpus always gives the same weights. Cases with several authors are told apart by their ids, so
``--measure`` can leave out one author at a time, fit the rest and inspect what was left out: the
figures for texts that nobody had in mind.
"""

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools.inspection_quality import HELD_BACK, INSPECTORS, Case, cases, quality_of

from thoughtgate.policy.inspection import checks, instruction_model
from thoughtgate.policy.inspection.finding import HARD
from thoughtgate.policy.inspection.instruction_model import (
    BIAS,
    CONTENTS,
    DEFINITIONS,
    MODELS,
    features_of,
    scale,
    weigh,
)
from thoughtgate.policy.inspection.normal import normalise
from thoughtgate.policy.inspection.sentences import sentences_in, sentences_of_definition
from thoughtgate.policy.inspection.texts import gather

MODULE: Final = Path(instruction_model.__file__).with_name("instruction_weights.py")
KINDS: Final = {
    "definitions": (DEFINITIONS, checks.DEFINITION),
    "arguments": (CONTENTS, checks.ARGUMENTS),
    "results": (CONTENTS, checks.RESULT),
}
"""Kind of the corpus -> the model that judges it, and how the inspector calls the kind."""
AUTHORS: Final = ("w1", "w2", "w3", "w4", "w5", "w6")
"""Independent authors: the beginning of the ids of their cases."""

MIN_COUNT: Final = 3
"""Texts that a feature must occur in."""
MAX_FEATURES: Final = 2500
"""Features that are kept, the most important ones."""
COST: Final = {DEFINITIONS: 0.01, CONTENTS: 0.02}
EPOCHS: Final = 40
INDEPENDENT: Final = 3.0
"""How much more a case of an independent author counts than one of the project's own."""
DIRECT: Final = "-direct-"
"""In the ids of short contents that say nothing else."""
PLAIN: Final = 6.0
"""How much such a content counts: quotations in news and advisories must not outweigh it."""
ARGUMENTS: Final = 0.5
SERVERS: Final = 0.5
"""How much cases of arguments, and definitions of real servers, count."""
OFFSET: Final = {DEFINITIONS: 0.12, CONTENTS: 0.08}
"""Added to the bias: a higher one finds more and flags more."""
BIAS_SIZE: Final = 3.0
"""How freely the bias moves, compared with a weight."""
STEP: Final = 0.002
"""What weights are rounded to, so that more features share a line."""
PART: Final = 3
"""Sentences of the heaviest part of a longer text, which counts as a text, too."""
PARTS: Final = 1
"""How much such a part counts."""
_OTHER_MATTERS: Final = ("secret-", "personal-", "shell-", "sensitive-", "link-", "terminal-")
"""How the checks begin whose attacks need no instructions."""

Weights = dict[str, float]


class Sample(NamedTuple):
    """A text, or a part of one."""

    sentences: tuple[frozenset[str], ...]
    """The features of each sentence."""
    is_attack: bool
    weight: float
    case: Case | None

    @property
    def features(self) -> frozenset[str]:
        """The features of all sentences together."""
        return frozenset[str]().union(*self.sentences)

    def heaviest_part(self, weights: Weights) -> "Sample":
        """Return the neighbouring sentences that weigh most."""
        parts = [
            self._replace(sentences=self.sentences[at : at + PART], weight=self.weight * PARTS)
            for at in range(len(self.sentences) - PART + 1)
        ]
        return max(parts, key=lambda one: weigh(weights, one.features))


def samples_of(model: str) -> Iterator[Sample]:
    """Yield the cases that a model is fitted to."""
    for kind, (name, called) in KINDS.items():
        if name != model:
            continue
        for case in cases(kind):
            weight = INDEPENDENT if author_of(case) else 1.0
            weight = PLAIN if DIRECT in case.id else weight
            weight *= ARGUMENTS if kind == "arguments" else 1.0
            attack = case.label == "attack"
            if attack and kind != "definitions" and _is_other_matter(kind, case.value):
                continue
            yield Sample(_features(called, case.value), attack, weight, case)


def _features(kind: str, value: Any) -> tuple[frozenset[str], ...]:
    texts = gather(value)
    sentences = (
        sentences_of_definition(value, texts)
        if kind == checks.DEFINITION
        else sentences_in(normalise(texts.joined).text)
    )
    return tuple(frozenset(features_of(one, kind)) for one in sentences)


def _is_other_matter(kind: str, value: Any) -> bool:
    """Tell whether a content is an attack without instructions: a secret, a path, a command."""
    return any(
        one.check.startswith(_OTHER_MATTERS) and (one.tier == HARD or kind == "arguments")
        for one in INSPECTORS[kind](value)
    )


def author_of(case: Case) -> str:
    """Return the independent author of a case; empty for the project's own."""
    author = case.id.partition("-")[0]
    return author if author in AUTHORS else ""


def fit(samples: list[Sample], cost: float) -> Weights:
    """Return the weights of the most important features."""
    counts = Counter(one for sample in samples for one in sample.features)
    frequent = {one for one, count in counts.items() if count >= MIN_COUNT}
    weights = _solve(samples, frequent, cost)
    longer = [sample for sample in samples if len(sample.sentences) > PART]
    samples = samples + [sample.heaviest_part(weights) for sample in longer]
    kept = sorted(frequent, key=lambda one: (-abs(weights[one]) * math.sqrt(counts[one]), one))
    return _solve(samples, set(kept[:MAX_FEATURES]), cost)


def _solve(samples: list[Sample], names: set[str], cost: float) -> Weights:
    """Return the weights of a support vector machine, found by dual coordinate descent."""
    ordered = sorted(names)
    index = {name: at for at, name in enumerate(ordered)}
    rows = [sorted(index[one] for one in sample.features & names) for sample in samples]
    scales = [scale(len(sample.features)) for sample in samples]
    signs = [1.0 if sample.is_attack else -1.0 for sample in samples]
    slack = [1 / (2 * cost * sample.weight) for sample in samples]
    norms = [BIAS_SIZE**2 + len(row) * size * size for row, size in zip(rows, scales, strict=True)]
    alphas = [0.0] * len(rows)
    weights = [0.0] * len(ordered)
    bias = 0.0
    for _ in range(EPOCHS):
        for step in range(len(rows)):
            at = step * 7919 % len(rows)
            row, sign, size = rows[at], signs[at], scales[at]
            total = bias + size * sum([weights[one] for one in row])
            gradient = sign * total - 1 + slack[at] * alphas[at]
            alpha = max(0.0, alphas[at] - gradient / (norms[at] + slack[at]))
            change = (alpha - alphas[at]) * sign
            if change:
                alphas[at] = alpha
                bias += change * BIAS_SIZE**2
                change *= size
                for one in row:
                    weights[one] += change
    return {BIAS: bias, **dict(zip(ordered, weights, strict=True))}


def render(weights: Weights, model: str) -> str:
    """Return the table of weights: a line for each weight, with its features."""
    rows: dict[float, list[str]] = {}
    for name, weight in sorted(weights.items()):
        shifted = round(round((weight + OFFSET[model] * (name == BIAS)) / STEP) * STEP, 3)
        if shifted or name == BIAS:
            rows.setdefault(shifted, []).append(name)
    return "".join(f"{weight:g}  {'  '.join(names)}\n" for weight, names in sorted(rows.items()))


_MODULE: Final = '''"""The weights of features, of definitions and contents; written by ``tools/fit_instruction_weights.py``.

Each line has a weight and the features that have it, two spaces between them.
"""

from typing import Final

DEFINITIONS: Final = """
{definitions}"""

CONTENTS: Final = """
{contents}"""
'''


def measure(model: str, samples: list[Sample], group: str) -> None:
    """Print how well the cases of a group are judged by weights fitted to all others."""

    def left_out(case: Case) -> bool:
        return group in {author_of(case), case.part}

    kept = [one for one in samples if one.case is None or not left_out(one.case)]
    text = render(fit(kept, COST[model]), model)
    known, instruction_model.load_weights = instruction_model.load_weights, _loaded(text)
    try:
        for kind, (name, _) in KINDS.items():
            out = [case for case in cases(kind) if name == model and left_out(case)]
            if out:
                sys.stdout.write(f"{kind:<12} {group:<10} {quality_of(kind, out)}\n")
    finally:
        instruction_model.load_weights = known


def _loaded(text: str) -> Any:
    weights = instruction_model.parse_weights(text)
    return lambda _: weights


def main() -> int:
    """Write the weights, or measure how well others would do."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--measure", action="store_true", help="leave out an author at a time")
    parser.add_argument("servers", nargs="*", type=Path, help="JSON lists of real definitions")
    options = parser.parse_args()
    tables: dict[str, str] = {}
    for model in MODELS:
        samples = list(samples_of(model))
        if model == DEFINITIONS:
            samples += _of_servers(options.servers)
        if options.measure:
            for group in (*AUTHORS, HELD_BACK):
                measure(model, samples, group)
        else:
            tables[model] = render(fit(samples, COST[model]), model)
    if tables:
        MODULE.write_text(_MODULE.format_map(tables), "utf-8")
    return 0


def _of_servers(paths: Iterable[Path]) -> Iterator[Sample]:
    for path in paths:
        for one in json.loads(path.read_text("utf-8")):
            yield Sample(_features(checks.DEFINITION, one), False, SERVERS, None)


if __name__ == "__main__":
    sys.exit(main())
