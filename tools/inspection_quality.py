"""How well the content checks tell attacks from honest content, on the project's own corpus.

The cases are split by a hash of their ids: two thirds to work with, one third held back. Look at
single cases of the first part only (``--show``). The weights of instructions are fitted to both
parts: ``fit_instruction_weights --measure`` tells how they do on texts they were not fitted to.
"""

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from thoughtgate.policy.inspection.finding import HARD, NONE, Finding, tier_of
from thoughtgate.policy.inspection.inspect import (
    inspect_arguments,
    inspect_definition,
    inspect_result,
)

CORPUS: Final = Path(__file__).parents[1] / "tests" / "corpus"
WORK: Final = "work"
HELD_BACK: Final = "held back"

INSPECTORS: Final[dict[str, Callable[[Any], tuple[Finding, ...]]]] = {
    "definitions": inspect_definition,
    "arguments": inspect_arguments,
    "results": inspect_result,
}
RECALL: Final = {"definitions": 0.90, "arguments": 0.85, "results": 0.85}
"""Share of attacks that must be found, in either tier."""
MAX_HELD: Final = 0.05
MAX_FLAGGED: Final = 0.15


class Case(NamedTuple):
    """One line of the corpus."""

    id: str
    label: str
    value: Any

    @property
    def part(self) -> str:
        """Whether the case is worked with or held back."""
        return HELD_BACK if hashlib.sha256(self.id.encode()).digest()[0] % 3 == 0 else WORK


class Quality(NamedTuple):
    """The figures of one kind and part."""

    attacks: int
    found: int
    benign: int
    held: int
    flagged: int

    @property
    def recall(self) -> float:
        """Share of attacks with a finding."""
        return self.found / self.attacks

    def __str__(self) -> str:
        held, flagged = self.held / self.benign, self.flagged / self.benign
        return (
            f"{self.found}/{self.attacks} = {self.recall:.2f}  "
            f"{self.held}/{self.benign} = {held:.2f}  {self.flagged}/{self.benign} = {flagged:.2f}"
        )

    def holds(self, kind: str) -> bool:
        """Tell whether the figures meet the bars."""
        held, flagged = self.held / self.benign, self.flagged / self.benign
        return self.recall >= RECALL[kind] and held <= MAX_HELD and flagged <= MAX_FLAGGED


def cases(kind: str) -> Iterator[Case]:
    """Read the cases of a kind."""
    for line in (CORPUS / f"{kind}.jsonl").read_text("utf-8").splitlines():
        one = json.loads(line)
        yield Case(one["id"], one["label"], one["value"])


def quality_of(kind: str, chosen: Iterable[Case]) -> Quality:
    """Inspect cases of a kind."""
    tiers = [(case.label, tier_of(INSPECTORS[kind](case.value))) for case in chosen]
    attacks = [tier for label, tier in tiers if label == "attack"]
    benign = [tier for label, tier in tiers if label == "benign"]
    return Quality(
        len(attacks),
        sum(tier != NONE for tier in attacks),
        len(benign),
        sum(tier == HARD for tier in benign),
        sum(tier != NONE for tier in benign),
    )


def show_wrong(kind: str) -> Iterator[str]:
    """Yield the cases of the work part that are judged wrongly."""
    for case in cases(kind):
        if case.part != WORK:
            continue
        findings = INSPECTORS[kind](case.value)
        tier = tier_of(findings)
        if (tier == NONE) == (case.label == "attack"):
            told = [(one.check, one.where) for one in findings[:3]]
            yield f"{case.id} {tier} {told} {json.dumps(case.value, ensure_ascii=False)[:160]}"


def main() -> int:
    """Print the figures; the exit code tells whether all bars hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--show", action="store_true", help="list the work cases judged wrongly")
    options = parser.parse_args()
    holds = True
    sys.stdout.write(f"{'kind':<12} {'part':<10} recall        held        flagged\n")
    for kind in INSPECTORS:
        if options.show:
            sys.stdout.writelines(f"  {line}\n" for line in show_wrong(kind))
        for part in (WORK, HELD_BACK):
            one = quality_of(kind, (case for case in cases(kind) if case.part == part))
            holds = holds and one.holds(kind)
            sys.stdout.write(
                f"{kind:<12} {part:<10} {one}{'' if one.holds(kind) else '  MISSED'}\n"
            )
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
