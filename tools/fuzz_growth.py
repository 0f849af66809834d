"""Looking for inputs whose cost grows faster than their size.

Generators make texts of nested and repeated shapes at sizes n, 2n, 4n and 8n, and each goes through
every reader and check that a peer's bytes reach. A pair of shape and reader whose CPU time grows
clearly faster than the size is reported: whoever may send ten megabytes could stall everybody.

``count_steps`` measures the same in function calls instead of seconds, which is exact and
repeatable, but does not see what happens inside one call of a C function.
"""

import argparse
import contextlib
import gc
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple

from thoughtgate.config.parse_json import parse_json
from thoughtgate.config.parse_toml import parse_toml
from thoughtgate.config.parse_yaml import parse_yaml
from thoughtgate.core.events import AgentSent, ServerSent
from thoughtgate.core.session import Session
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.errors import ThoughtGateError
from thoughtgate.policy.conditions import judge_conditions, parse_conditions
from thoughtgate.policy.globs import Glob
from thoughtgate.policy.redaction import Redactor
from thoughtgate.policy.regexes import Pattern
from thoughtgate.transports.http_heads import MAX_HEAD
from thoughtgate.wire.batch import one_line, split_batch
from thoughtgate.wire.canonical import canonical_json
from thoughtgate.wire.content_length import FrameSplitter
from thoughtgate.wire.fast_frame import read_quickly
from thoughtgate.wire.frame import escape_separators, find_id, is_deeper_than, read_frame
from thoughtgate.wire.headers import decode_value, param_headers_of
from thoughtgate.wire.lines import LineSplitter
from thoughtgate.wire.message import Message
from thoughtgate.wire.readings import uri_readings
from thoughtgate.wire.sse import EventSplitter, parse_event

FACTORS: Final = (1, 2, 4, 8)

MAX_EXPONENT: Final = 1.4
"""Cost ~ size ** exponent; a linear one measures up to 1.2 on a busy machine, a square one 2."""

_NOTICED_S: Final = 0.02
"""CPU time below which a measurement says nothing."""

_CHUNK: Final = 1000
"""Bytes that a stream delivers at once."""

Shape = Callable[[int], bytes]
Reader = Callable[[bytes], Any]


def _repeat(piece: bytes, before: bytes = b"", after: bytes = b"") -> Shape:
    return lambda size: before + piece * (size // len(piece)) + after


def _pairs(opening: bytes, closing: bytes) -> Shape:
    def shape(size: int) -> bytes:
        count = size // (len(opening) + len(closing))
        return opening * count + closing * count

    return shape


_CALL: Final = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":'

SHAPES: Final[dict[str, Shape]] = {
    "open brackets": _repeat(b"["),
    "nested lists": _pairs(b"[", b"]"),
    "nested objects": _pairs(b'{"a":', b"}"),
    "flat lists": _repeat(b"[],", b"[", b"[]]"),
    "hills": _repeat(b"[" * 60 + b"]" * 60 + b",", b"[", b"[]]"),
    "quotes": _repeat(b'"'),
    "backslashes": _repeat(b"\\", b'"'),
    "escaped quotes": _repeat(b'\\"', b'["', b'"]'),
    "surrogates": _repeat(b"\\ud83d\\ude00", b'["', b'"]'),
    "separators": _repeat(b"\xe2\x80\xa8", b'["', b'"]'),
    "spaces": _repeat(b" "),
    "digits": _repeat(b"9"),
    "ids": _repeat(b'"id":1,', b"{"),
    "line ends": _repeat(b"\r\n"),
    "carriage returns": _repeat(b"\r"),
    "line feeds": _repeat(b"\n"),
    "short lines": _repeat(b"data: x\n"),
    "events": _repeat(b"data: {}\n\n"),
    "one long string": _repeat(b"a", _CALL + b'{"a":"', b'"}}}'),
    "many keys": lambda size: (
        _CALL + b"{" + b",".join(b'"k%d":1' % n for n in range(size // 12)) + b"}}}"
    ),
    "many values": _repeat(b"1,", _CALL + b'{"a":[', b"1]}}}"),
    "token starts": _repeat(b"sk-"),
    "jwt starts": _repeat(b"eyJ"),
    "dotted jwt": _repeat(b"eyJhbGciOi."),
    "key names": _repeat(b"token="),
    "quoted key names": _repeat(b'token="'),
    "begin key": _repeat(b"-----BEGIN PRIVATE KEY-----"),
    "url users": _repeat(b"://a:"),
    "at signs": _repeat(b"@"),
    "bearers": _repeat(b"bearer "),
    "flags": _repeat(b"--token "),
    "slashes": _repeat(b"/"),
    "dot segments": _repeat(b"/.."),
    "up and down": _repeat(b"/a/../"),
    "percents": _repeat(b"%25"),
    "list items": _repeat(b"- "),
    "yaml items": _repeat(b"- a\n"),
    "yaml flow": _pairs(b"[", b"]"),
    "yaml keys": lambda size: b"".join(b"k%d: 1\n" % n for n in range(size // 9)),
    "json keys": lambda size: b"{" + b",".join(b'"k%d":1' % n for n in range(size // 12)) + b"}",
    "toml keys": lambda size: b"".join(b"k%d = 1\n" % n for n in range(size // 11)),
    "toml tables": lambda size: b"".join(b"[t%d]\n" % n for n in range(size // 8)),
    "anchors": _repeat(b"&a *a "),
}
"""Texts of about a number of bytes."""


def _in_chunks(splitter: Callable[[], LineSplitter | FrameSplitter | EventSplitter]) -> Reader:
    def read(data: bytes) -> None:
        feed = splitter().feed
        for start in range(0, len(data), _CHUNK):
            feed(data[start : start + _CHUNK])

    return read


def _text(read: Callable[[str], Any]) -> Reader:
    return lambda data: read(data.decode("utf-8", "replace"))


def _body_of(data: bytes) -> Any:
    message = read_quickly(data)
    return message.body if isinstance(message, Message) else {"a": data.decode("utf-8", "replace")}


def _conditions(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for operator, operand in (
        ("glob", "*a*b"),
        ("under", "/tmp"),
        ("contains", "x"),
        ("in", ["x"]),
    ):
        judge_conditions(parse_conditions({"a": {operator: operand}}), {"a": text})


def _session(event: type[AgentSent] | type[ServerSent]) -> Reader:
    def read(data: bytes) -> None:
        session = Session(SessionSettings("s", "1"))
        for line in LineSplitter().feed(data + b"\n"):
            session.receive(event(line, 1.0))

    return read


def _mask_value(data: bytes) -> None:
    Redactor().mask_value(_body_of(data))


_REDACTOR: Final = Redactor(patterns=["x{1,20}y"])

READERS: Final[dict[str, Reader]] = {
    "frame": read_frame,
    "fast frame": read_quickly,
    "depth": lambda data: is_deeper_than(128, data),
    "id": find_id,
    "separators": escape_separators,
    "lines": _in_chunks(LineSplitter),
    "content length": _in_chunks(FrameSplitter),
    "events": _in_chunks(EventSplitter),
    "event": parse_event,
    "batch": split_batch,
    "one line": one_line,
    "session, agent": _session(AgentSent),
    "session, server": _session(ServerSent),
    "canonical": lambda data: canonical_json(_body_of(data)),
    "header value": lambda data: decode_value(data[:MAX_HEAD]),
    "schema": lambda data: param_headers_of(_body_of(data)),
    "mask text": _text(_REDACTOR.mask_text),
    "mask value": _mask_value,
    "glob": _text(Glob("*a*[bc]*d?").matches),
    "pattern": _text(Pattern("a{1,9}b").search),
    "uri": _text(uri_readings),
    "conditions": _conditions,
    "yaml": _text(lambda text: parse_yaml(text, "x.yaml")),
    "json": _text(lambda text: parse_json(text, "x.json")),
    "toml": _text(lambda text: parse_toml(text, "x.toml")),
}
"""Everything that reads or checks the bytes of a peer or of a file in a repository."""

SLOW: Final = frozenset({"yaml", "json", "toml"})
"""Readers of config files, which are far slower per byte, and read far smaller files."""


class Growth(NamedTuple):
    """How the cost of reading a shape grows with its size."""

    reader: str
    shape: str
    sizes: tuple[int, ...]
    costs: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """The steepest growth between neighbouring sizes that take long enough to be measured."""
        steps = zip(self.costs, self.costs[1:], strict=False)
        return max(
            (math.log2(after / before) for before, after in steps if before > 0 < after), default=0
        )


def measure(reader: str, shape: str, size: int, cost: Callable[[Reader, bytes], float]) -> Growth:
    """Measure the cost of reading a shape at growing sizes."""
    sizes = tuple(size * factor for factor in FACTORS)
    costs = tuple(cost(READERS[reader], SHAPES[shape](size)) for size in sizes)
    return Growth(reader, shape, sizes, costs)


def _run(read: Reader, data: bytes) -> None:
    # A refusal is as good as a result.
    with contextlib.suppress(ValueError, RecursionError, ThoughtGateError):
        read(data)


def cpu_seconds(read: Reader, data: bytes) -> float:
    """Return the CPU time of one reading; 0 if it is too short to compare."""
    best = math.inf
    gc.disable()
    try:
        for _ in range(3):
            began = time.process_time()
            _run(read, data)
            best = min(best, time.process_time() - began)
            if best > 1:
                break
    finally:
        gc.enable()
    return best if best >= _NOTICED_S else 0.0


def count_steps(read: Reader, data: bytes) -> float:
    """Return the number of function calls of one reading."""
    steps = 0

    def step(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal steps
        steps += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(step)
    try:
        _run(read, data)
    finally:
        sys.setprofile(before)
    return float(steps)


def find_offenders(readers: Iterable[str], size: int, seconds: float) -> Iterator[Growth]:
    """Yield the pairs of reader and shape that grow too fast, within about a time."""
    deadline = time.monotonic() + seconds
    for reader in readers:
        for shape in SHAPES:
            if time.monotonic() > deadline:
                sys.stderr.write(f"stopped after {seconds:g} s, at {reader}\n")
                return
            growth = measure(reader, shape, size // 20 if reader in SLOW else size, cpu_seconds)
            if growth.exponent > MAX_EXPONENT:
                # Again, because a busy machine also makes one measurement slow.
                growth = measure(reader, shape, growth.sizes[0], cpu_seconds)
            if growth.exponent > MAX_EXPONENT:
                yield growth


def main() -> int:
    """Report the offenders; the exit code tells whether there are any."""
    parser = argparse.ArgumentParser(description="Find inputs that cost more than their size.")
    parser.add_argument("--size", type=int, default=200_000, help="smallest text, in bytes")
    parser.add_argument("--reader", choices=READERS, action="append", help="default: all")
    parser.add_argument("--seconds", type=float, default=600, help="stop after this time")
    chosen = parser.parse_args()
    found, readers = 0, chosen.reader or list(READERS)
    for growth in find_offenders(readers, chosen.size, chosen.seconds):
        found += 1
        costs = ", ".join(f"{cost * 1000:.0f} ms" for cost in growth.costs)
        sys.stdout.write(
            f"{growth.reader}: {growth.shape}: size ** {growth.exponent:.1f} "
            f"({costs} for {growth.sizes[0]} to {growth.sizes[-1]} bytes)\n"
        )
    pairs = len(readers) * len(SHAPES)
    sys.stdout.write(f"{found} of {pairs} pairs of reader and shape grow faster than their size\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
