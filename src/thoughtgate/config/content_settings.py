"""The settings for the contents of calls and results; each key is declared as in ``settings``."""

from dataclasses import dataclass
from typing import Annotated

from thoughtgate.config.key_types import ONE_OR_MORE, Checked, Section

_TIERS = ("hard", "soft")


def known_check(value: str) -> None:
    """Refuse a text that is neither a check, a tier, nor a glob that matches a check.

    Raises:
        ValueError: no check has this name.
    """
    from thoughtgate.policy.globs import Glob
    from thoughtgate.policy.inspection.checks import CHECKS  # only for configs that name one

    if value in _TIERS or any(map(Glob(value).matches, CHECKS)):
        return
    import difflib

    close = difflib.get_close_matches(value, [*CHECKS, *_TIERS], n=3)
    if close:
        raise ValueError(f"no check has this name; did you mean {' or '.join(close)}?")
    raise ValueError(f"no check has this name; the checks are {', '.join(sorted(CHECKS))}")


CheckNames = Annotated[tuple[Annotated[str, Checked(known_check, minLength=1)], ...], ONE_OR_MORE]


@dataclass(frozen=True, slots=True)
class ResultSettings(Section):
    """What happens to results in which the content checks find something.

    Each list has ids of checks, globs of them, or the tiers ``hard`` and ``soft``. If several lists
    name a check, the strictest counts: ``block``, then ``hold``, ``redact``, ``annotate`` and
    ``record``.
    """

    record: CheckNames = ()
    """The result passes at once and unchanged. It is inspected afterwards; what is found goes to the
    record and, once per server and check, to the operator."""
    annotate: CheckNames = ()
    """The result passes with a note to the agent that it is data, not instructions."""
    redact: CheckNames = ()
    """Placeholders such as ``[removed: secret-token]`` replace what was found."""
    hold: CheckNames = ()
    """The result waits until a person releases or refuses it, in the ``default`` workflow."""
    block: CheckNames = ()
    """The agent gets an error in place of the result."""


@dataclass(frozen=True, slots=True)
class ArgumentSettings(Section):
    """What happens to calls in whose arguments the content checks find something."""

    block_secrets: bool = False
    """Deny calls whose arguments, or whose resource URI, contain secrets."""
    record: CheckNames = ()
    """The call is not delayed. Its arguments are inspected afterwards, and what is found goes to the
    record and to the operator: ids of checks, globs of them, or the tiers ``hard`` and ``soft``."""
