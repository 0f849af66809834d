"""Finding the words of the lexicon: whole words with their places, and telling words in long text."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from ahocorasick_rs import AhoCorasick, Implementation

from thoughtgate.policy.inspection import lexicon as lex
from thoughtgate.policy.inspection.normal import normalise

Span = tuple[int, int]

_ENDINGS: Final = frozenset({"", "s", "es", "ed", "d", "ing", "'s", "ly", "ting", "ted"})
_MIN_STEM: Final = 4
"""Shorter words take no endings: "us" is not "use"."""
_UNSPACED: Final = "\u2e80"
"""From here on, scripts write words without spaces, or with particles attached to them."""

_STRONG: Final = (
    *(lex.RESET, lex.MARKER, lex.TITLE, lex.KEEP, lex.QUIET, lex.UNASKED, lex.AGREED, lex.MODELS),
    *(lex.FILE, lex.PROMPT, lex.TAG, lex.HARM, lex.ROLE, lex.OTHERS, lex.NEW, lex.LATER),
    *(lex.THEFT, lex.DICTATE, lex.ASK, lex.OBEY, lex.MEMORY, lex.ABOVE, lex.MODEL),
)
"""Categories of which one word in a long text is worth a closer look."""

_NEGATIONS: Final = ("do not", "don't", "never", "without", "must not", "should not", "not")
_TELLING: Final = (
    *("tell", "mention", "inform", "notify", "reveal", "disclose", "show", "report", "let"),
    *("alert", "discuss", "share", "ask", "confirm", "display"),
)
_WEAK: Final = {
    "verb": lex.IGNORE,
    "rule": "instruction, prompt, guideline, directive, guardrail, rules, policies, restriction",
    "data": "password, credential, api key, api_key, secret, private key, access token, ssh key, environment variable, conversation, chat history, bank account, credit card, wallet, personal data",
    "model": "assistant, language model, chatgpt, claude, copilot, ai agent, llm",
    "order": "please, you must, you should, you need to, you are required, make sure, be sure to, mandatory, immediately",
    "send": "send, forward, upload, transmit, exfiltrat, email, mail, post it, attach, include, copy",
}
"""Words that are worth a closer look beside a word of certain other lines."""

_TOGETHER: Final = frozenset(
    frozenset(pair.split())
    for pair in (
        "verb rule",
        "verb model",
        "rule model",
        "model order",
        "model data",
        "model send",
        "data send",
        "data order",
        "rule order",
    )
)

NEAR: Final = 160
"""Characters between two weak words that are read together."""
AROUND: Final = 320
"""Characters before and after such a place that are read, too."""
SHORT: Final = 3000
"""Characters of a text that is always read as a whole."""


@cache
def _spelled(words: str) -> tuple[str, ...]:
    """Return the words of a list in every spelling; kept, because several automata need them."""
    listed = (word.strip() for word in words.split(","))
    return tuple(
        spelling
        for word in listed
        if word
        for choice in _expand(word)
        for spelling in _spellings(choice)
    )


_CHOICE: Final = re.compile(r"\{([^{}]*\|[^{}]*)\}")


def _expand(word: str) -> Iterator[str]:
    """Yield every choice of a word such as ``note {to|for} {ai|the model}``."""
    match = _CHOICE.search(word)
    if match is None:
        yield word
        return
    for choice in match[1].split("|"):
        yield from _expand(word[: match.start()] + choice + word[match.end() :])


def _spellings(word: str) -> Iterator[str]:
    """Yield a word as texts are read, and without its accents: people leave them out."""
    yield word
    if word.isascii():
        return
    if word != (read := normalise(word).text):
        yield read
    plain = "".join(
        one for one in unicodedata.normalize("NFD", word) if not unicodedata.combining(one)
    )
    if plain != word and plain.isascii():
        yield plain


class WordFinder:
    """The automaton of all words of a lexicon, with their categories."""

    def __init__(self, lexicon: Mapping[str, str]) -> None:
        """Build the automaton; ``lexicon`` has the words of each category."""
        self.patterns: list[str] = []
        self.open_ended: list[bool] = []
        self.categories: list[tuple[str, ...]] = []
        table: dict[str, set[str]] = {}
        for category, words in lexicon.items():
            for word in _spelled(words):
                table.setdefault(word, set()).add(category)
        for word, categories in table.items():
            self.patterns.append(word.removesuffix("*"))
            self.open_ended.append(word.endswith("*"))
            self.categories.append(tuple(sorted(categories)))
        self.automaton = AhoCorasick(self.patterns, implementation=Implementation.ContiguousNFA)

    def find(self, text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        """Yield the words of a text that ``normalise`` returned: start, end and categories."""
        hits = self.automaton.find_matches_as_indexes(text, overlapping=True)
        for index, start, end in sorted(hits, key=_by_start):
            if _is_whole(text, start, end, self.open_ended[index]):
                yield start, end, self.categories[index]


@cache
def _placed_words() -> WordFinder:
    return WordFinder({category: lex.WORDS[category] for category in lex.PLACED})


class Positions:
    """Where the words of the categories of ``lexicon.PLACED`` are in a text."""

    __slots__ = ("_known", "_places", "text")

    def __init__(self, text: str) -> None:
        """Find the words of a text that ``normalise`` returned."""
        self.text = text
        self._places: dict[str, list[Span]] = {category: [] for category in lex.PLACED}
        self._known: dict[tuple[str, ...], list[Span]] = {}
        for start, end, categories in _placed_words().find(text):
            for category in categories:
                self._places[category].append((start, end))

    def of(self, *categories: str) -> list[Span]:
        """Return the places of words of any of these categories, in order."""
        known = self._known.get(categories)
        if known is None:
            known = self._known[categories] = sorted(
                (span for one in categories for span in self._places[one]), key=_longest_first
            )
        return known

    def pairs(self, first: Iterable[Span], second: list[Span], gap: int) -> list[Span]:
        """Return spans from a first to the next second that follows within a gap."""
        if not second:
            return []
        starts = [start for start, _ in second]
        found = []
        for start, end in first:
            at = bisect_left(starts, end)
            if at < len(starts) and starts[at] - end <= gap and self._is_one_text(end, starts[at]):
                found.append((start, second[at][1]))
        return found

    def close(self, one: list[Span], other: list[Span], gap: int) -> list[Span]:
        """Return spans of two words within a gap, in either order."""
        return sorted({*self.pairs(one, other, gap), *self.pairs(other, one, gap)})

    def _is_one_text(self, start: int, end: int) -> bool:
        return _SENTENCE.search(self.text, start, end) is None


_SENTENCE: Final = re.compile(r"\n\n|[.!?]\s|。")
"""Where a sentence ends: words of two sentences are not read together."""


def _longest_first(span: Span) -> Span:
    return span[0], -span[1]


def _by_start(hit: tuple[int, int, int]) -> tuple[int, int]:
    return hit[1], hit[2]


def _is_whole(text: str, start: int, end: int, open_ended: bool) -> bool:
    """Tell whether a match is a word of its own, or one with a usual ending."""
    if text[start] >= _UNSPACED:
        return True
    first, last = text[start], text[end - 1]
    if start and first.isalnum() and (text[start - 1].isalnum() or text[start - 1] == "_"):
        return text[start - 1] >= _UNSPACED
    if open_ended or not last.isalnum() or end == len(text):
        return True
    if not (text[end].isalpha() or text[end] in "_'"):
        return not text[end].isdigit()
    stop = end
    while stop < len(text) and stop - end < 5 and (text[stop].isalpha() or text[stop] in "_'"):
        stop += 1
    ending = text[end:stop]
    return (end - start >= _MIN_STEM and ending in _ENDINGS) or ending[0] >= _UNSPACED


class _QuickLook:
    """The automaton of few, telling words."""

    def __init__(self) -> None:
        strong = {word for category in _STRONG for word in self._long(lex.WORDS[category])}
        strong |= {f"{no} {tell}" for no in _NEGATIONS for tell in _TELLING}
        self.classes: list[str] = []
        self.patterns: list[str] = []
        for word in sorted(strong):
            self._add(word, "")
        for name, words in _WEAK.items():
            for word in set(self._long(lex.WORDS.get(words, words))) - strong:
                self._add(word, name)

    def _add(self, word: str, name: str) -> None:
        self.patterns.append(word)
        self.classes.append(name)

    @staticmethod
    def _long(words: str) -> Iterator[str]:
        for spelling in _spelled(words):
            word = spelling.removesuffix("*")
            if len(word) > _MIN_STEM or word[0] >= _UNSPACED or not word.isalpha():
                yield word


@cache
def quick_words() -> tuple[list[str], list[str]]:
    """Return the telling words, and the class of each; strong words have an empty class."""
    look = _QuickLook()
    return look.patterns, look.classes


def regions(hits: Iterable[tuple[str, int]], length: int) -> list[Span]:
    """Return the parts of a text to read closely, from the class and place of each telling word."""
    if length <= SHORT:
        return [(0, length)]
    found: list[Span] = []
    last_class, last_at = "", -NEAR
    for name, at in hits:
        together = at - last_at < NEAR and frozenset((name, last_class)) in _TOGETHER
        if not name or together:
            start, end = max(0, min(at, last_at if name else at) - AROUND), at + AROUND
            if found and start <= found[-1][1]:
                found[-1] = (found[-1][0], end)
            else:
                found.append((start, end))
        if name:
            last_class, last_at = name, at
    return [(start, min(end, length)) for start, end in found]


def file_words() -> tuple[str, ...]:
    """Return the names of files that hold secrets."""
    return _spelled(lex.WORDS[lex.FILE])
