"""Verifying a record: does each line follow from the one before it, and if not, why not.

Pure: lines come in with their places, findings go out. A line that does not follow was
edited, or a neighbour of it was removed, moved or copied; sequence numbers and the other
lines' chains tell which. Lines that were cut off while their writer went on leave a chain
that fits; the writer's numbers tell of them. What a killed writer left behind is told apart from tampering by
the line that the next writer closed it off with.
"""

import hashlib
import json
import re
from typing import Any, Final, NamedTuple

import orjson

from thoughtgate.core.envelope import CONTRACT, GENESIS, expected_chain, stated_chain
from thoughtgate.core.evidence import (
    CHECKPOINT,
    RECORD_GAP,
    RECORD_OPENED,
    RECORD_REPAIRED,
    is_signed,
)
from thoughtgate.core.record_events import RUN_END, RUN_START

EDITED: Final = "edited"
REMOVED: Final = "removed"
MOVED: Final = "moved"
FOREIGN: Final = "foreign"
TORN: Final = "torn"
REPAIRED: Final = "repaired"
VERSION: Final = "version"
SIGNATURE: Final = "signature"
UNSIGNED: Final = "unsigned"
TRUNCATED: Final = "truncated"
GAP: Final = "gap"
BEGINS: Final = "begins"
OPEN_RUN: Final = "open_run"
BEING_WRITTEN: Final = "being_written"
CURRENT_GONE: Final = "current_gone"
NO_ANCHOR: Final = "anchor"

NOTES: Final = frozenset({REPAIRED, GAP, BEGINS, OPEN_RUN, BEING_WRITTEN, CURRENT_GONE})
"""Findings that the record itself, or its living writer, accounts for; all others are faults."""

MAX_FINDINGS: Final = 10_000
"""A file that is broken throughout is told to be so by then."""

_CHAIN: Final = re.compile(rf"[0-9a-f]{{{len(GENESIS)}}}")
"""What is longer or shorter could be made to begin in the middle of a line."""

_TIME_LENGTH: Final = len("2026-01-31T12:00:00.000Z")

_UNLESS_EDITED: Final = ", unless its number was edited"
"""Said of a line after which its writer wrote no other that would tell."""

NOT_UTF8: Final = "not UTF-8"
HALF_PAIR: Final = "half of a surrogate pair in an id"
NO_OBJECT: Final = "not a JSON object"
TOO_LONG: Final = "longer than any line of the record"


class Line(NamedTuple):
    """One line of a record and where it stands."""

    file: str
    number: int
    """One-based, within its file."""
    data: bytes
    """Without its line end."""
    ended: bool = True
    """False for a last line without a line end."""
    left_out: int = 0
    """Bytes at its end that were not read: no line of the record is so long."""

    @property
    def size(self) -> int:
        """How many bytes of its file it takes, with its line end."""
        return len(self.data) + self.left_out + self.ended


class Finding(NamedTuple):
    """Something to know about one place in the record."""

    kind: str
    file: str
    line: int
    """Zero for a finding about no line, such as one about an empty record."""
    message: str

    @property
    def is_fault(self) -> bool:
        """Tell a fault from a note."""
        return self.kind not in NOTES


class Verification(NamedTuple):
    """What came of verifying."""

    findings: tuple[Finding, ...]
    lines: int
    """Sealed lines seen."""
    runs: int
    checkpoints: int
    head: str
    """The last line's chain: keep it elsewhere, and ``--anchor`` finds a cut-off tail later."""

    @property
    def is_sound(self) -> bool:
        """No fault was found."""
        return not any(finding.is_fault for finding in self.findings)


class _Suspect(NamedTuple):
    """A line that does not follow, and has another number than its writer's next."""

    finding: int
    """Where among the findings it is."""
    due: int
    seq: int


class Verifier:
    """Takes the lines of a record in their order."""

    def __init__(
        self, key: bytes = b"", anchor: str = "", *, file: str = "", being_written: bool = False
    ) -> None:
        """Check signatures with a key, and that a line states the anchor.

        ``file`` is named where no line can be; ``being_written`` says that a living writer
        accounts for an open end.
        """
        self._key = key
        self._anchor = anchor
        self._being_written = being_written
        self._findings: list[Finding] = []
        self._chain = GENESIS
        self._instead = ""
        """What the last line should have stated, when it stated something else."""
        self._lines = 0
        self._checkpoints = 0
        self._after_checkpoint = 0
        self._first_unsigned = Line("", 0, b"")
        self._checkpoint = Line("", 0, b"")
        self._checkpoint_at = ""
        self._closed = False
        self._file = ""
        self._last = Line(file, 0, b"")
        self._sequences: dict[tuple[str, str], int] = {}
        self._suspects: dict[tuple[str, str], _Suspect] = {}
        """Lines whose number, if it is their own, says why they do not follow."""
        self._due: dict[tuple[str, str], tuple[int, int]] = {}
        """The number that each writer's next line has, and the part of the record it holds in."""
        self._part = 0
        """Counts the places after which any number may come: that lines are missing is said there."""
        self._open_runs: dict[str, Line] = {}
        self._runs: set[str] = set()
        self._skipped: list[Line] = []
        self._skipped_hash = hashlib.sha256()

    def feed(self, line: Line) -> None:
        """Look at the next line."""
        whole = line.data.startswith(b"{") and not line.left_out
        sealed = stated_chain(line.data) if whole else None
        event = parse_event(line.data) if sealed is not None else None
        if sealed is None or event is None:
            self._skip(line)
            return
        covered, stated = sealed
        self._last = line
        self._lines += 1
        if line.file != self._file:
            self._file = line.file
            anew = expected_chain(covered, GENESIS) == stated
            self._enter(line, event, follows_genesis=anew)
        before, expected = self._chain, expected_chain(covered, self._chain)
        if expected != stated and self._instead:
            # The line before had only its chain edited; this one still follows from the true one.
            instead = expected_chain(covered, self._instead)
            if instead == stated:
                before, expected = self._instead, instead
        if self._skipped:
            self._account_for_skipped(event, follows=expected == stated)
        self._settle(event)
        if expected != stated:
            self._suspect(line, event)
        else:
            self._check_number(line, event)
            self._check_origin(line, event, before)
        self._instead = "" if expected == stated else expected
        self._chain = stated
        if stated == self._anchor:
            self._anchor = ""
        self._learn(line, event)
        if not line.ended:
            self._find(line, TORN, "the last line has no line end: its writer was killed")

    def finish(self) -> Verification:
        """There are no more lines."""
        for skipped in self._skipped:
            if skipped.ended:
                self._find(skipped, FOREIGN, f"this is not a line of the record{_aside(skipped)}")
            else:
                self._find(skipped, TORN, "the last line is cut short: its writer was killed")
        if self._key:
            self._check_end()
        for run, line in self._open_runs.items():
            self._find(
                line, OPEN_RUN, f"run {run} has no end: it goes on, was killed, or its tail is gone"
            )
        if self._anchor:
            self._find(self._last, NO_ANCHOR, "no line states the anchor's chain: the tail is gone")
        return Verification(
            tuple(self._findings), self._lines, len(self._runs), self._checkpoints, self._chain
        )

    def _find(self, line: Line, kind: str, message: str) -> None:
        if len(self._findings) < MAX_FINDINGS:
            # What a line states may hold half of a surrogate pair, which no output takes.
            told = message.encode("utf-8", "backslashreplace").decode()
            self._findings.append(Finding(kind, line.file, line.number, told))

    def _skip(self, line: Line) -> None:
        if self._skipped:
            self._skipped_hash.update(b"\n")
        self._skipped_hash.update(line.data)
        self._skipped.append(line)

    def _enter(self, line: Line, event: dict[str, Any], *, follows_genesis: bool) -> None:
        """A file begins: with the first line of all, or with the chain of the file before it."""
        if event.get("type") != RECORD_OPENED:
            if self._lines > 1 and follows_genesis:
                self._find(
                    line,
                    REMOVED,
                    "this file begins anew: what led here from the one before it is gone",
                )
                self._chain, self._instead = GENESIS, ""
                self._part += 1
            return
        said = _member(event, "record")
        previous = said.get("previous_chain")
        if type(previous) is not str or not _CHAIN.fullmatch(previous) or previous == self._chain:
            return
        if self._lines == 1:
            text = (
                f"the record begins here: {said.get('previous_file')} and older files are not kept"
            )
            self._find(line, BEGINS, text)
        else:
            self._find(line, REMOVED, "what stood between this file and the one before it is gone")
        self._chain, self._instead = previous, ""
        self._part += 1

    def _account_for_skipped(self, event: dict[str, Any], *, follows: bool) -> None:
        said = _member(event, "record")
        is_torn = said.get("torn_sha256") == self._skipped_hash.hexdigest()
        is_torn = is_torn and not any(line.left_out for line in self._skipped)
        if event.get("type") == RECORD_REPAIRED and follows and is_torn:
            self._find(
                self._skipped[0], REPAIRED, "a killed writer's line, closed off by the next writer"
            )
        else:
            for line in self._skipped:
                text = f"this is not a line of the record{_aside(line)}: edited, cut or put in"
                self._find(line, FOREIGN, text)
        self._skipped = []
        self._skipped_hash = hashlib.sha256()

    def _suspect(self, line: Line, event: dict[str, Any]) -> None:
        """Find a line that does not follow; its writer's next one may tell more."""
        stream, seq = _place(event)
        due = self._sequences.get(stream, 0) + 1
        if seq != due and len(self._findings) < MAX_FINDINGS:
            self._suspects[stream] = _Suspect(len(self._findings), due, seq)
        self._find(line, *self._reason(event))
        self._part += 1

    def _settle(self, event: dict[str, Any]) -> None:
        """Tell by its writer's next line whether the number of a line that did not follow is its own."""
        stream, seq = _place(event)
        suspect = self._suspects.pop(stream, None)
        if suspect is None:
            return
        found = self._findings[suspect.finding]
        if seq == suspect.due + 1:
            text = f"this line is not what was written: number {suspect.due} stood here, not {suspect.seq}"
            self._findings[suspect.finding] = found._replace(kind=EDITED, message=text)
            self._sequences[stream] = suspect.due
        elif seq == suspect.seq + 1:
            settled = found.message.removesuffix(_UNLESS_EDITED)
            self._findings[suspect.finding] = found._replace(message=settled)

    def _reason(self, event: dict[str, Any]) -> tuple[str, str]:
        """Say why a line may not follow, going by its place in its run."""
        stream, seq = _place(event)
        last = self._sequences.get(stream, 0)
        if seq > last + 1:
            return (
                REMOVED,
                f"{seq - last - 1} or more lines before this one are gone (run {stream[0]})"
                + _UNLESS_EDITED,
            )
        if 0 < seq <= last:
            text = f"this line stood earlier, or is a copy (run {stream[0]}, sequence {seq})"
            return MOVED, text + _UNLESS_EDITED
        return EDITED, "this line, or what stood right before it, is not what was written"

    def _check_number(self, line: Line, event: dict[str, Any]) -> None:
        """Find what a chain that fits does not tell: each writer counts its lines."""
        stream, seq = _place(event)
        if not seq:
            return
        part, due = self._due.get(stream, (0, 1))
        self._due[stream] = self._part, seq + 1
        if part != self._part or seq == due:
            return
        if seq > due:
            gone = f"{_counted(seq - due, 'line')} of run {stream[0]} before this one"
            text = f"{gone} {'is' if seq - due == 1 else 'are'} gone: cut off while its gate ran"
            self._find(line, REMOVED, text)
        else:
            self._find(line, MOVED, f"number {seq} of run {stream[0]} was there before")

    def _check_origin(self, line: Line, event: dict[str, Any], before: str) -> None:
        """Find a checkpoint of other lines than those before it, or of nobody who wrote one."""
        if event.get("type") != CHECKPOINT:
            return
        stream, _ = _place(event)
        if _member(event, "checkpoint").get("covers") != before:
            text = "the checkpoint is for other lines than those before it: they were rewritten"
            self._find(line, SIGNATURE, f"{text}, or it was moved here")
        elif not self._part and stream not in self._sequences:
            text = f"the checkpoint is none of run {stream[0]}, which wrote nothing before it"
            self._find(line, SIGNATURE, text)

    def _learn(self, line: Line, event: dict[str, Any]) -> None:
        stream, seq = _place(event)
        self._sequences[stream] = max(seq, self._sequences.get(stream, 0))
        kind = event.get("type")
        self._runs.add(stream[0])
        if kind == RUN_START:
            self._open_runs[stream[0]] = line
        elif kind == RUN_END:
            self._open_runs.pop(stream[0], None)
        elif kind == RECORD_GAP:
            self._find(line, *_gap(_member(event, "record")))
        if str(event.get("v")).partition(".")[0] != CONTRACT.partition(".")[0]:
            self._find(line, VERSION, f"contract {event.get('v')!s:.20} is not known here")
        if kind == CHECKPOINT:
            self._checkpoint, self._checkpoint_at = line, str(event.get("ts"))[:_TIME_LENGTH]
            self._check_signature(line, _member(event, "checkpoint"))
        elif not (self._closed and kind == RECORD_OPENED and line.number == 1):
            # A closing checkpoint that fills its file is followed by a new file's first line.
            if not self._after_checkpoint:
                self._first_unsigned = line
            self._after_checkpoint += 1
            self._closed = False

    def _check_signature(self, line: Line, said: dict[str, Any]) -> None:
        self._checkpoints += 1
        self._after_checkpoint = 0
        self._closed = said.get("closing") is True
        if self._key and not is_signed(self._key, said):
            self._find(line, SIGNATURE, "the checkpoint is not signed with this key")

    def _check_end(self) -> None:
        if not self._checkpoints:
            self._find(self._last, UNSIGNED, "the record has no checkpoint, though there is a key")
        elif not self._closed:
            kind = BEING_WRITTEN if self._being_written else TRUNCATED
            self._find(self._last, kind, self._open_end())

    def _open_end(self) -> str:
        """Say what stands after the last checkpoint, and what that may mean."""
        place = f"the last checkpoint ({self._named(self._checkpoint)}, {self._checkpoint_at})"
        open_lines = self._after_checkpoint
        lines = _counted(open_lines, "line")
        if self._being_written:
            yet = f"{lines} after {place} {'is' if open_lines == 1 else 'are'} not signed yet"
            whole = f"every line up to {place} is signed"
            return f"{yet if open_lines else whole}: the record is being written here"
        unsigned = f"from {self._named(self._first_unsigned)} on nothing is signed ({lines})"
        return (
            f"{unsigned if open_lines else 'nothing follows'} after {place}, and none closes the "
            "record: its writer was killed or its tail is gone, unless an anchor, or a run that "
            "goes on elsewhere, explains it"
        )

    def _named(self, line: Line) -> str:
        """Name a line, with its file where that is not the last one."""
        return f"line {line.number}" + (f" of {line.file}" if line.file != self._last.file else "")


def parse_event(data: bytes) -> dict[str, Any] | None:
    """Read one line as a JSON object in UTF-8 whose ids are text; None when it is none."""
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError:
        event, _ = _parse_oddity(data)
    return event if type(event) is dict else None


def unreadable(data: bytes) -> str:
    """Say why a line that ``parse_event`` does not read is none."""
    _, fault = _parse_oddity(data)
    return fault or NO_OBJECT


def _parse_oddity(data: bytes) -> tuple[Any, str]:
    """Read what orjson does not, such as a lone surrogate in an argument; or say why not."""
    try:
        event = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None, NOT_UTF8
    except (ValueError, RecursionError):
        return None, NO_OBJECT
    if type(event) is dict and not all(map(_is_text, _ids(event))):
        return None, HALF_PAIR
    return event, ""


def _ids(event: dict[str, Any]) -> tuple[Any, ...]:
    """Return what tells a line from others; the gate writes no lone surrogate there."""
    writer = _member(event, "source").get("shim_id")
    call = _member(event, "call").get("call_id")
    return event.get("v"), event.get("type"), event.get("run_id"), writer, call


def _is_text(value: Any) -> bool:
    """Tell whether UTF-8 can hold a value as it would be printed."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def _aside(line: Line) -> str:
    """Return the reason that a line cannot be read, where it is not plain to see."""
    if line.left_out:
        return f" ({TOO_LONG})"
    fault = "" if parse_event(line.data) is not None else unreadable(line.data)
    return f" ({fault})" if fault in {NOT_UTF8, HALF_PAIR} else ""


def _gap(said: dict[str, Any]) -> tuple[str, str]:
    """Say what a writer states to be missing: what it could not write, or what was cut off."""
    cut = said.get("cut_bytes")
    if cut is None:
        return GAP, f"{_counted(said.get('lost'), 'event')} could not be written here"
    return REMOVED, f"{cut} or more bytes before this line were cut off: its writer saw it"


def _counted(number: Any, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _member(event: dict[str, Any], name: str) -> dict[str, Any]:
    said = event.get(name)
    return said if type(said) is dict else {}


def _place(event: dict[str, Any]) -> tuple[tuple[str, str], int]:
    """Return whose line it is (a run may have several writers), and its number there."""
    seq = event.get("seq")
    writer = _member(event, "source").get("shim_id")
    stream = (str(event.get("run_id"))[:200], str(writer)[:200])
    return stream, seq if type(seq) is int else 0
