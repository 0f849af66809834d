"""What a check found, and where."""

from typing import Final, NamedTuple

HARD: Final = "hard"
"""A clear match: a definition with such a finding is held until a person accepts it."""
SOFT: Final = "soft"
"""A weak match: it is shown, and nothing is held because of it alone."""
NONE: Final = "none"
"""The tier of a value without findings."""


class Finding(NamedTuple):
    """One place at which a check matched."""

    check: str
    """Id of the check, such as ``hidden-characters``."""
    tier: str
    """``hard`` or ``soft``."""
    pointer: str
    """JSON pointer of the string or member that matched; empty for the whole value."""
    start: int
    """Span in characters of that string; 0 and 0 if it concerns the whole member."""
    end: int
    what: str
    """A short sentence for people; never contains the secret itself."""

    @property
    def where(self) -> str:
        """The place as one text: ``/description:12-40``."""
        return f"{self.pointer}:{self.start}-{self.end}" if self.end else self.pointer


def tier_of(findings: tuple[Finding, ...]) -> str:
    """Return the strictest tier of some findings: ``hard``, ``soft`` or ``none``."""
    tiers = {finding.tier for finding in findings}
    return HARD if HARD in tiers else SOFT if tiers else NONE
