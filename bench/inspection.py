"""The content checks alone: clean text of 10 KB and 1 MB, and text that calls for a closer look."""

import time
from collections.abc import Iterable
from typing import Final

from bench.figure import Figure

from thoughtgate.policy.inspection.inspect import inspect_result

SMALL: Final = 10_240
LARGE: Final = 1_048_576

_PROSE: Final = (
    "The committee met on Tuesday to discuss the budget for the coming year. Several members raised "
    "questions about travel costs, and the chair promised a written answer before the next meeting. "
    "The river had risen two feet overnight, and the ferry did not run.\n"
)
_LOG: Final = (
    "2026-11-18T02:14:07.123Z INFO worker[17] GET /api/v1/items/48211 200 12ms "
    "id=3f2504e0-4f89-41d3-9a0c-0305e82c3301\n"
)
_DOCS: Final = (
    "Set the token in the environment and call the tool with an absolute path. If the server "
    "refuses, check the rules and the password of the account at https://docs.example.org/a?b=c.\n"
)


def measure(*, quick: bool) -> Iterable[Figure]:
    """Measure the CPU time for clean text of several kinds; plain prose is held to the bars."""
    rounds = 5 if quick else 25
    inspect_result({"content": []})  # builds the automata
    small, large = _cost(_PROSE, SMALL, rounds), _cost(_PROSE, LARGE, rounds)
    yield Figure("10 KB of prose", small * 1e6, "µs", 200.0)
    yield Figure("1 MB of prose", large * 1e3, "ms", 20.0)
    yield Figure("1 MB per 10 KB", large / small, "times", 150.0, note="linear: about 102")
    yield Figure("10 KB of log", _cost(_LOG, SMALL, rounds) * 1e6, "µs")
    yield Figure("1 MB of log", _cost(_LOG, LARGE, rounds) * 1e3, "ms")
    yield Figure("10 KB of documentation", _cost(_DOCS, SMALL, rounds) * 1e6, "µs")
    yield Figure("1 MB of documentation", _cost(_DOCS, LARGE, rounds) * 1e3, "ms")


def _cost(line: str, size: int, rounds: int) -> float:
    text = (line * (size // len(line) + 1))[:size]
    value = {"content": [{"type": "text", "text": text}]}
    best = float("inf")
    for _ in range(rounds):
        began = time.process_time()
        inspect_result(value)
        best = min(best, time.process_time() - began)
    return best
