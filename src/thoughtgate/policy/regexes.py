"""Regular expressions from the config, with bounded running time on text from an agent.

Python's engine backtracks, so some expressions take exponential time on malicious text. Those
are refused when the config is loaded. For the others, the time grows polynomially with the
length of the text, and the length is limited so that one search takes a bounded number of steps.
"""

import re
import warnings
from collections.abc import Callable
from typing import Final

MAX_PATTERN: Final = 512
"""Maximum length of an expression; a longer one should be split into several rules."""

MAX_REPEATS: Final = 3
"""Maximum unbounded repeats per expression; with more, only very short texts could be searched."""

MAX_STEPS: Final = 5_000_000
"""Maximum steps of one search: some tens of milliseconds of CPU time."""

MAX_TEXT: Final = 65_536
"""Maximum length of a text for an expression without repeats."""

MIN_TEXT: Final = 16
"""An expression that could only search shorter texts is refused."""

_LARGE_COUNT: Final = 16
"""A counted repeat above this number is treated as unbounded."""

_SYMBOL: Final = re.compile(
    r"""\\[1-9] | \(\?P= | \(\?\#[^)]*\) | \\.  # back references; comments; escapes
      | \[\^?\]?(?:\\.|[^\]\\])*\]             # a set
      | \((?:\?(?:[aiLmsux-]+:|[:>=!]|<[=!]|P<\w+>))?  # a group opens
      | \)                                     # a group closes
      | (?:[*+?]|\{\d*,?\d*\})[+?]?            # a repeat
      | \|
      | .""",
    re.VERBOSE | re.DOTALL,
)


class Pattern:
    """An expression that is safe to run on malicious text."""

    __slots__ = ("_regex", "_runs", "_ways", "max_length", "pattern")

    pattern: str
    """The expression as written."""
    max_length: int
    """Maximum length of a text; for a longer one the result is undetermined."""

    def __init__(self, pattern: str) -> None:
        """Compile an expression.

        Raises:
            ValueError: it does not compile, or could take exponential time.
        """
        if len(pattern) > MAX_PATTERN:
            raise ValueError(f"an expression has at most {MAX_PATTERN} characters")
        plain = _compiled(pattern)
        if plain.flags & re.VERBOSE:
            raise ValueError("verbose expressions (?x) are not supported")
        self._regex = _compiled(_strict_ends(pattern))
        work = _measure(pattern)
        self.max_length = _longest_text(pattern, work)
        self._ways = work.ways
        self._runs = tuple(map(_run_of, _repeated_symbols(pattern)))
        self.pattern = pattern

    def steps(self, text: str) -> int:
        """Return how many steps ``replace`` may take for a text; finding out takes linear time.

        A search starts at every character, and a repeat goes on for as long as the characters that
        it matches do: for words, that is not far.
        """
        steps = self._ways * len(text) * (1 if len(text) <= self.max_length else 2)
        for run in self._runs:
            longest = len(text)
            if run is not None:
                longest = max((len(one[0]) for one in run.finditer(text)), default=0)
            steps *= 1 + min(longest, self.max_length)
        return steps

    def search(self, text: str) -> bool | None:
        """Tell whether the expression matches in the text; None if the text is too long."""
        if len(text) > self.max_length:
            return None
        return self._regex.search(text) is not None

    def replace(self, text: str, by: Callable[[str], str]) -> str:
        """Return the text with ``by(match)`` for every match; a long text is processed in pieces.

        Pieces overlap by half, so that every shorter match is found.
        """
        if len(text) <= self.max_length:
            return self._regex.sub(lambda match: match.group() and by(match.group()), text)
        spans: list[tuple[int, int]] = []
        for at in range(0, len(text), self.max_length // 2):
            piece = text[at : at + self.max_length]
            spans += [(at + one.start(), at + one.end()) for one in self._regex.finditer(piece)]
        merged: list[tuple[int, int]] = []
        for start, stop in sorted(span for span in spans if span[0] < span[1]):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
            else:
                merged.append((start, stop))
        parts, end = [], 0
        for start, stop in merged:
            parts += [text[end:start], by(text[start:stop])]
            end = stop
        return "".join([*parts, text[end:]])

    def __repr__(self) -> str:
        return f"Pattern({self.pattern!r})"


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            # Refuse what Python only warns about: its meaning will change in a later version.
            warnings.simplefilter("error")
            return re.compile(pattern)
    except (re.error, Warning, OverflowError, RecursionError) as error:
        raise ValueError(f"the expression does not compile: {error}") from None


def _strict_ends(pattern: str) -> str:
    """Make every ``$`` match only at the very end of the text.

    In Python it also matches before a final line break, where a server may read something else.
    """
    if re.search(r"\(\?[a-zA-Z]*m", pattern):  # multi-line mode, where ``$`` means every line end
        return pattern
    symbols = (match.group() for match in _SYMBOL.finditer(pattern))
    return "".join(r"\Z" if symbol == "$" else symbol for symbol in symbols)


class _Work:
    """How much backtracking a part of an expression can cause."""

    __slots__ = ("branches", "choices", "length", "repeats")

    def __init__(self) -> None:
        self.choices = 1
        """Product of the numbers of ways in which the bounded parts can match."""
        self.branches = 1
        """Alternatives at this level."""
        self.repeats = 0
        """Unbounded repeats."""
        self.length = 1
        """Steps of one match of the bounded repeats, one inside the other."""

    @property
    def ways(self) -> int:
        """Steps at each character, not counting unbounded repeats."""
        # A match of written-out symbols is at most as long as the expression; only repeats of
        # repeats can be longer.
        return max(self.choices * self.branches, self.length if self.length > MAX_PATTERN else 1)

    def add(self, inner: "_Work | None", low: int = 1, most: int = 1) -> None:
        """Add a repeated group, or a repeated single character (None).

        Raises:
            ValueError: together they could take exponential time.
        """
        ways = inner.choices * inner.branches if inner else 1
        unbounded = inner.repeats if inner else 0
        if (most > 1 and unbounded) or (most > _LARGE_COUNT and ways > 1):
            raise ValueError("a repeated group must not hold repeats or alternatives")
        length = (inner.length if inner else 1) * (most if low == most else min(most, _LARGE_COUNT))
        self.length = min(MAX_STEPS + 1, self.length + length)
        if most > _LARGE_COUNT and low == most:
            # One way to match, which takes as many steps at each character.
            self.choices = min(MAX_STEPS + 1, self.choices * most)
        elif most > _LARGE_COUNT:
            self.repeats += 1
        else:
            self.choices = min(
                MAX_STEPS + 1, self.choices * ways ** max(most, 1) * (most - low + 1)
            )
            self.repeats += unbounded


def _longest_text(pattern: str, work: _Work) -> int:
    """Return the maximum text length for which a search stays within the steps.

    Raises:
        ValueError: the expression could take exponential time, or needs too many steps.
    """
    if work.repeats > MAX_REPEATS:
        raise ValueError(f"at most {MAX_REPEATS} unbounded repeats (* + {{n,}}) in an expression")
    # An unanchored search starts again at every character: one more power of the length.
    anchored = pattern.startswith(("^", r"\A")) and work.branches == 1
    power = work.repeats + (not anchored)
    steps = MAX_STEPS / work.ways
    longest = int(steps ** (1 / power)) if power else int(steps)
    if longest < MIN_TEXT:
        raise ValueError("the expression has too many optional parts; split the rule")
    return min(MAX_TEXT, longest)


def _measure(pattern: str) -> _Work:
    """Parse an expression that compiles, and return how much backtracking it can cause."""
    levels = [_Work()]
    closed: _Work | None = None
    for match in _SYMBOL.finditer(pattern):
        symbol = match.group()
        if symbol.startswith("(?#"):
            continue
        times = _times(symbol)
        if times is not None:
            levels[-1].add(closed, *times)
            closed = None
            continue
        if closed is not None:
            levels[-1].add(closed)
            closed = None
        if symbol == ")":
            closed = levels.pop()
        elif symbol == "|":
            levels[-1].branches += 1
        elif _opens_group(symbol):
            levels.append(_Work())
    if closed is not None:
        levels[-1].add(closed)
    return levels[0]


def _opens_group(symbol: str) -> bool:
    if symbol == "(?P=" or re.fullmatch(r"\\[1-9]", symbol):
        raise ValueError("back references are not supported")
    if re.match(r"\(\?[a-zA-Z-]*x[a-zA-Z-]*:", symbol):
        raise ValueError("verbose expressions (?x) are not supported")
    return symbol[0] == "("


def _times(symbol: str) -> tuple[int, int] | None:
    """Return the minimum and maximum of a repeat; None for a symbol that is not a repeat."""
    if symbol[0] in "*+":
        return 0, _LARGE_COUNT + 1
    if symbol[0] == "?":
        return 0, 1
    if symbol[0] != "{" or not re.search(r"\d", symbol):
        return (0, _LARGE_COUNT + 1) if symbol == "{,}" else None
    low, comma, high = symbol.rstrip("+?").strip("{}").partition(",")
    if not comma:
        return int(low), int(low)
    return int(low or 0), int(high) if high else _LARGE_COUNT + 1 + int(low)


def _repeated_symbols(pattern: str) -> list[str]:
    """Return what each unbounded repeat repeats: a character or set; empty for a group."""
    found, before = [], ""
    # Escapes of several characters are several symbols here, so what is repeated is not known.
    is_known = re.search(r"\\[xuUN0]", pattern) is None
    for match in _SYMBOL.finditer(pattern):
        symbol = match.group()
        times = _times(symbol)
        if times is not None and times[1] > _LARGE_COUNT and times[0] != times[1]:
            found.append(before if is_known and before != ")" else "")
        if not symbol.startswith("(?#"):
            before = symbol
    return found


def _run_of(symbol: str) -> re.Pattern[str] | None:
    """Return an expression for the text that a repeat of a symbol can match, with any flags."""
    if not symbol:
        return None
    return _compiled(f"(?s)(?:(?i:{symbol})|(?a:{symbol})|(?ai:{symbol})|{symbol})+")
