"""Fuzzing the frame reader: many broken frames in, and never two readings out.

Frames are made from valid ones by random changes and by joining pieces that have fooled
parsers before. For each frame the reader must not raise, must answer with a message or a
fault, soon, and for a message: other readers must read the same from the bytes that are sent on,
and no program that splits lines may find two in them. A seed makes a run repeatable.
"""

import argparse
import json
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

import orjson

from thoughtgate.errors import KINDS
from thoughtgate.wire.frame import read_frame
from thoughtgate.wire.message import NOTIFICATION, REQUEST, RESPONSE, Fault, Message

SLOW_S: Final = 5.0
"""A frame of some KiB is read in microseconds; one that takes seconds is an attack."""

SEEDS: Final = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}',
    b'{"jsonrpc":"2.0","id":"x","method":"resources/read","params":{"uri":"note:///a"}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hi \xe2\x80\xa8"}]}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}',
    b'{"id":2,"jsonrpc":"2.0","method":"ping"}',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
)

PIECES: Final = (
    b"\r",
    b"\r\n",
    b"\x00",
    b"\xff",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"\xe2\x80\xa9",
    b"\\u2028",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\\u0000",
    b'"id":1,',
    b'"ID":2,',
    b'"method":"tools/call",',
    b'"Method":"tools/call",',
    b'"jsonrpc":"2.0",',
    b'"params":{"name":"a","name":"b"},',
    b"NaN",
    b"Infinity",
    b"-0",
    b"1e400",
    b"1e-400",
    b"9" * 40,
    b"true",
    b"null",
    b"[" * 200,
    b"]" * 200,
    b'{"a":' * 150,
    b"}" * 150,
    b"\xef\xbb\xbf",
    b"/*x*/",
    b",",
    b'"',
    b"\\",
    b" \t ",
    b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"hidden"}}',
)


def _replace(chance: random.Random, frame: bytes) -> bytes:
    at = chance.randrange(len(frame) + 1)
    return frame[:at] + bytes([chance.randrange(256)]) + frame[at + 1 :]


def _insert(chance: random.Random, frame: bytes) -> bytes:
    at = chance.randrange(len(frame) + 1)
    return frame[:at] + chance.choice(PIECES) + frame[at:]


def _cut(chance: random.Random, frame: bytes) -> bytes:
    start, end = sorted(chance.randrange(len(frame) + 1) for _ in range(2))
    return frame[:start] + frame[end:]


def _double(chance: random.Random, frame: bytes) -> bytes:
    start, end = sorted(chance.randrange(len(frame) + 1) for _ in range(2))
    return frame[:end] + frame[start:]


def _cross(chance: random.Random, frame: bytes) -> bytes:
    other = chance.choice(SEEDS)
    return frame[: chance.randrange(len(frame) + 1)] + other[chance.randrange(len(other)) :]


def _member(chance: random.Random, frame: bytes) -> bytes:
    """Put a piece where a member begins: the place where duplicates are read differently."""
    return frame.replace(b"{", b"{" + chance.choice(PIECES), chance.randint(1, 2))


def _same(_: random.Random, frame: bytes) -> bytes:
    return frame


CHANGES: Final[tuple[Callable[[random.Random, bytes], bytes], ...]] = (
    _replace,
    _insert,
    _cut,
    _double,
    _cross,
    _member,
    _same,
)


def generate(seed: int, count: int) -> Iterator[bytes]:
    """Yield frames: a valid one after up to four changes, never with an LF inside."""
    chance = random.Random(seed)
    for _ in range(count):
        frame = chance.choice(SEEDS)
        for _ in range(chance.randint(0, 4)):
            frame = chance.choice(CHANGES)(chance, frame)
        yield frame.replace(b"\n", b" ")


def complaint_about(frame: bytes) -> str:
    """Return what the reader did wrong with a frame, or an empty text."""
    found = read_frame(frame)
    if isinstance(found, Fault):
        return "" if found.kind in KINDS and found.reason else f"a fault without words: {found}"
    return _complaint_about_message(found)


def _complaint_about_message(message: Message) -> str:
    text = message.raw.decode("utf-8")
    if len(text.splitlines()) != 1 or b"\n" in message.raw or b"\r" in message.raw:
        return "some reader finds two lines in what is sent on"
    if message.shape not in {REQUEST, RESPONSE, NOTIFICATION}:
        return f"no such shape: {message.shape}"
    if json.loads(text, object_pairs_hook=_no_doubles) != message.body:
        return "the bytes that are sent on are read differently"
    if not _orjson_agrees(message):
        return "a second parser reads the bytes differently"
    again = read_frame(message.raw)
    if not isinstance(again, Message) or again.body != message.body or again.raw != message.raw:
        return "reading what is sent on gives something else"
    return ""


def _no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _orjson_agrees(message: Message) -> bool:
    """Compare, but for integers beyond 64 bits, which orjson reads as floats."""
    return bool(_rounded(orjson.loads(message.raw)) == _rounded(message.body))


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_rounded(inner) for inner in value]
    is_wide = isinstance(value, int) and not -(2**63) <= value < 2**64
    return float(value) if is_wide else value


def _too_slow(*_: object) -> NoReturn:
    raise TimeoutError


def _complaint_in_time(frame: bytes) -> str:
    signal.setitimer(signal.ITIMER_REAL, SLOW_S)
    try:
        return complaint_about(frame)
    except TimeoutError:
        return f"reading it takes over {SLOW_S} s"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main() -> int:
    """Fuzz and report."""
    signal.signal(signal.SIGALRM, _too_slow)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000, help="how many frames")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000)
    options = parser.parse_args()
    print(f"fuzzing the frame reader with {options.frames} frames, seed {options.seed}")
    outcomes: Counter[str] = Counter()
    for frame in generate(options.seed, options.frames):
        complaint = _complaint_in_time(frame)
        if complaint:
            print(f"FAILED: {complaint}\n  frame: {frame!r}", file=sys.stderr)
            return 1
        found = read_frame(frame)
        outcomes[found.check if isinstance(found, Fault) else found.shape] += 1
    for outcome, count in outcomes.most_common():
        print(f"  {count:>8}  {outcome}")
    print("no frame had two readings, none was left without an answer")
    return 0


if __name__ == "__main__":
    sys.exit(main())
