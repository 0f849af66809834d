"""Fit the weights of traits in definitions to the work part of the corpus, and write them.

A sparse logistic regression over the sentences: those of honest definitions count as honest, and
of each attack the sentence that weighs most counts as the attack. The same corpus always gives the
same weights. Run it after changing ``traits`` or the corpus, and look at ``inspection_quality``.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from tools.inspection_quality import WORK, cases

from thoughtgate.policy.inspection.sentences import sentences_of
from thoughtgate.policy.inspection.texts import gather

MODULE: Final = Path(__file__).parents[1] / "src/thoughtgate/policy/inspection/trait_weights.py"
ROUNDS: Final = 6
"""How often the heaviest sentence of each attack is chosen anew."""
EPOCHS: Final = 12
MIN_COUNT: Final = 4
"""Sentences that a trait or pair must occur in to have a weight."""
SPARSITY: Final = 0.03
MIN_WEIGHT: Final = 0.08
OFFSET: Final = -0.4
"""Added to the bias, so that few honest definitions are flagged."""
STEP: Final = 0.08
MARGIN: Final = 0.2
"""Share of attack sentences in the loss; a higher one finds more and flags more."""

Bag = list[tuple[str, ...]]
"""The features of each sentence of one definition."""


def features(traits: Iterable[str]) -> tuple[str, ...]:
    """Return traits and pairs of traits, as ``sentences.weigh`` looks them up."""
    ordered = sorted(traits)
    return (*ordered, *(" + ".join(two) for two in combinations(ordered, 2)))


def bag_of(definition: Any) -> Bag:
    """Return the features of the sentences of a definition."""
    return [features(one.traits) for one in sentences_of(definition, gather(definition))]


def fit(attacks: list[Bag], honest: list[Bag]) -> tuple[float, dict[str, float]]:
    """Return the bias and the weights."""
    counts = Counter(one for bag in (*attacks, *honest) for said in bag for one in set(said))
    frequent = {one for one, count in counts.items() if count >= MIN_COUNT}
    attacks = [[tuple(f for f in said if f in frequent) for said in bag] for bag in attacks]
    innocent = [tuple(f for f in said if f in frequent) for bag in honest for said in bag]
    weights = dict.fromkeys(sorted(frequent), 0.0)
    bias = 0.0
    for number in range(ROUNDS):
        guilty = [
            said
            for bag in attacks
            if bag
            for said in (
                bag[1:] or bag if number == 0 else [max(bag, key=lambda s: _sum(weights, s))]
            )
        ]
        weight = MARGIN * len(innocent) / ((1 - MARGIN) * len(guilty))
        samples = sorted(
            [(said, 1.0, weight) for said in guilty] + [(said, 0.0, 1.0) for said in innocent]
        )
        for epoch in range(EPOCHS):
            step = STEP / (1 + 0.3 * (number * EPOCHS + epoch))
            for at in range(len(samples)):
                said, label, importance = samples[at * 7919 % len(samples)]
                wrong = label - 1 / (1 + math.exp(-max(-30, min(30, bias + _sum(weights, said)))))
                change = step * wrong * min(importance, 8)
                bias += change * 0.2
                for one in said:
                    moved = weights[one] + change * (0.5 if " + " in one else 1)
                    shrink = step * SPARSITY
                    weights[one] = math.copysign(max(0.0, abs(moved) - shrink), moved)
    return bias, {
        one: round(value, 2) for one, value in weights.items() if abs(value) >= MIN_WEIGHT
    }


def _sum(weights: dict[str, float], said: tuple[str, ...]) -> float:
    return sum(weights.get(one, 0.0) for one in said)


def main() -> int:
    """Write the module of weights."""
    work = [case for case in cases("definitions") if case.part == WORK]
    attacks = [bag_of(case.value) for case in work if case.label == "attack"]
    honest = [bag_of(case.value) for case in work if case.label == "benign"]
    for name in sys.argv[1:]:
        honest += [bag_of(one) for one in json.loads(Path(name).read_text("utf-8"))]
    bias, weights = fit(attacks, honest)
    MODULE.write_text(render(bias + OFFSET, weights), "utf-8")
    sys.stdout.write(f"{len(weights)} weights\n")
    return 0


def render(bias: float, weights: dict[str, float]) -> str:
    """Return the module of weights: one line for each trait, with those that it is paired with."""
    rows: dict[str, list[str]] = {}
    for name, value in sorted(weights.items()):
        first, _, second = name.partition(" + ")
        rows.setdefault(first, []).append(f"{second}={value:g}" if second else f"={value:g}")
    table = "".join(f'    "{name}": "{", ".join(row)}",\n' for name, row in rows.items())
    return _MODULE.format(bias=bias, table=table)


_MODULE: Final = '''"""The weights of traits and of pairs of traits; written by ``tools/fit_trait_weights.py``."""

from typing import Final

BIAS: Final = {bias:.2f}
"""Weight of a sentence without traits."""

_TABLE: Final = {{
{table}}}  # fmt: skip
"""Trait -> its own weight, and that of each pair with a later trait."""


def _weights() -> dict[str, float]:
    weights = {{}}
    for first, row in _TABLE.items():
        for pair in row.split(", "):
            second, _, weight = pair.partition("=")
            weights[f"{{first}} + {{second}}" if second else first] = float(weight)
    return weights


WEIGHTS: Final = _weights()
"""A trait, or two in alphabetical order joined by " + " -> weight."""
'''


if __name__ == "__main__":
    sys.exit(main())
