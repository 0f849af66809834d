"""Regular expressions from a config, run over text from an agent, within a known amount of work.

Python's engine goes back over what it has read, so some expressions take exponential
time on text made for it. Those are refused when the config is loaded. For the rest
the work grows as a power of the text's length, and the length is bounded so that one
search stays within a fixed number of steps.
"""

import re
import warnings
from typing import Final

MAX_PATTERN: Final = 512
"""Longest accepted expression; a longer one is a list of cases and belongs in several rules."""

MAX_REPEATS: Final = 3
"""Unbounded repeats in one expression; with more, only very short texts could be searched."""

MAX_STEPS: Final = 5_000_000
"""Steps one search may need at worst: some tens of milliseconds of CPU."""

MAX_TEXT: Final = 65_536
"""Longest text searched by an expression without repeats."""

_LARGE_COUNT: Final = 16
"""A counted repeat above this is reckoned as unbounded."""

_TOKEN: Final = re.compile(
    r"""\\[1-9] | \(\?P= | \\.                 # back references; escapes
      | \[\^?\]?(?:\\.|[^\]\\])*\]             # a set
      | \((?:\?(?:[aiLmsux-]+:|[:>=!]|<[=!]|P<\w+>))?  # a group opens
      | \)                                     # a group closes
      | (?:[*+?]|\{\d*,?\d*\})[+?]?            # a repeat
      | \|
      | .""",
    re.VERBOSE | re.DOTALL,
)


class Pattern:
    """One expression that is safe to run over hostile text."""

    __slots__ = ("_regex", "max_length", "pattern")

    pattern: str
    """The expression as written."""
    max_length: int
    """Longest text that is searched; for a longer one the answer is unknown."""

    def __init__(self, pattern: str) -> None:
        """Compile an expression.

        Raises:
            ValueError: it does not compile, or could take exponential time.
        """
        if len(pattern) > MAX_PATTERN:
            raise ValueError(f"an expression has at most {MAX_PATTERN} characters")
        # A final "$" also fits before a line break at the end, which lets a text pass for another.
        ends = re.search(r"(?<!\\)(?:\\\\)*\$\Z", pattern)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter(
                    "error"
                )  # what Python only warns of will mean something else one day
                self._regex = re.compile(pattern[:-1] + r"\Z" if ends else pattern)
        except (re.error, Warning, OverflowError, RecursionError) as error:
            raise ValueError(f"the expression does not compile: {error}") from None
        repeats = _count_repeats(pattern)
        if repeats > MAX_REPEATS:
            raise ValueError(
                f"at most {MAX_REPEATS} unbounded repeats (* + {{n,}}) in an expression"
            )
        # An unanchored search starts anew at every character: one more power of the length.
        power = repeats + (not pattern.startswith(("^", r"\A")))
        self.max_length = min(MAX_TEXT, int(MAX_STEPS ** (1 / power))) if power else MAX_TEXT
        self.pattern = pattern

    def search(self, text: str) -> bool | None:
        """Tell whether the expression fits somewhere in the text; None when the text is too long."""
        if len(text) > self.max_length:
            return None
        return self._regex.search(text) is not None

    def replace(self, text: str, by: str) -> str:
        """Return the text with every match replaced; a long text is taken piece by piece."""
        pieces = range(0, len(text), self.max_length)
        return "".join(
            self._regex.sub(lambda _: by, text[at : at + self.max_length]) for at in pieces
        )

    def __repr__(self) -> str:
        return f"Pattern({self.pattern!r})"


def _count_repeats(pattern: str) -> int:
    """Count unbounded repeats; refuse back references and repeats of what itself can vary.

    Raises:
        ValueError: the expression could take exponential time.
    """
    varies = [False]  # for each open group: does it hold a repeat or an alternative?
    closed_varies = False
    repeats = 0
    for match in _TOKEN.finditer(pattern):
        symbol = match.group()
        if symbol == "(?P=" or re.fullmatch(r"\\[1-9]", symbol):
            raise ValueError("back references are not supported")
        if symbol == ")":
            closed_varies = varies.pop()
            varies[-1] = varies[-1] or closed_varies
            continue
        if symbol[0] == "(":
            varies.append(False)
        elif symbol == "|":
            varies[-1] = True
        elif (most := _most_times(symbol)) is not None:
            if closed_varies and most > 1:
                raise ValueError("a repeated group must not hold repeats or alternatives")
            varies[-1] = varies[-1] or not _is_fixed(symbol)
            repeats += most > _LARGE_COUNT and not _is_fixed(symbol)
        closed_varies = False
    return repeats


def _most_times(symbol: str) -> int | None:
    """Return how often a repeat may run, reckoned; None for a symbol that is no repeat."""
    if symbol[0] in "*+":
        return _LARGE_COUNT + 1
    if symbol[0] == "?":
        return 1
    if symbol[0] != "{" or len(symbol) == 1:
        return None
    low, comma, high = symbol.rstrip("+?").strip("{}").partition(",")
    if comma and not high:
        return _LARGE_COUNT + 1
    return int(high or low or 0)


def _is_fixed(symbol: str) -> bool:
    return symbol[0] == "{" and "," not in symbol
