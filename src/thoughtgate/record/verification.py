"""Verification of a record's hash chain: each line must continue the chain of the one before.

If a line does not, it was edited, or a line next to it was removed, moved or copied; sequence
numbers and the chains of other lines show which. If lines are cut off while their writer
continues, the chain stays valid, but the writer's sequence numbers have a gap. The repair line of
the next writer distinguishes the unfinished line of a killed writer from tampering.
"""

import hashlib
import json
import re
from typing import Any, Final, NamedTuple

import orjson

from thoughtgate.core.envelope import CONTRACT, GENESIS, expected_chain, stated_chain
from thoughtgate.core.record_events import RUN_END, RUN_START
from thoughtgate.record.call_rows import member
from thoughtgate.record.evidence import (
    CHECKPOINT,
    RECORD_GAP,
    RECORD_OPENED,
    RECORD_REPAIRED,
    is_signed,
)
from thoughtgate.stores.record_heads import RecordHead

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
MISSING: Final = "missing"
FORKED: Final = "forked"
REPLACED: Final = "replaced"
NOT_STORED: Final = "not_stored"
NOT_COMPARED: Final = "not_compared"

NOTES: Final = frozenset(
    {REPAIRED, GAP, BEGINS, OPEN_RUN, BEING_WRITTEN, CURRENT_GONE, NOT_STORED, NOT_COMPARED}
)
"""Findings that the record itself, or its running writer, explains; all others are faults."""

MAX_FINDINGS: Final = 10_000
"""Maximum number of findings; by then it is clear that the whole file is broken."""

_CHAIN: Final = re.compile(rf"[0-9a-f]{{{len(GENESIS)}}}")
"""The exact length is required, because otherwise a forged value could match inside a line."""

_TIME_LENGTH: Final = len("2026-01-31T12:00:00.000Z")

_UNLESS_EDITED: Final = ", unless its number was edited"
"""Appended if the writer wrote no later line that could confirm the number."""

NOT_UTF8: Final = "not UTF-8"
HALF_PAIR: Final = "half of a surrogate pair in an id"
NO_OBJECT: Final = "not a JSON object"
TOO_LONG: Final = "longer than any line of the record"


class RecordLine(NamedTuple):
    """One line of a record and its position."""

    file: str
    number: int
    """Counted from 1 within its file."""
    data: bytes
    """Without the newline."""
    ended: bool = True
    """False for a last line without a newline."""
    left_out: int = 0
    """Bytes at the end that were not read, because no line of the record is so long."""

    @property
    def size(self) -> int:
        """Its size in the file, including the newline."""
        return len(self.data) + self.left_out + self.ended


class RecordFinding(NamedTuple):
    """A fault or a note about one position in the record."""

    kind: str
    file: str
    line: int
    """0 for a finding about the whole record."""
    message: str

    @property
    def is_fault(self) -> bool:
        """Whether this is a fault rather than a note."""
        return self.kind not in NOTES


class Verification(NamedTuple):
    """The result of verifying a record."""

    findings: tuple[RecordFinding, ...]
    lines: int
    """Number of lines with a chain."""
    runs: int
    checkpoints: int
    head: str
    """The chain of the last line; stored elsewhere, it lets ``--anchor`` detect truncation."""
    traffic_lines: int = 0
    """How many of the lines are traffic, which has its own chain."""
    traffic_head: str = ""
    """The last chain of that traffic; empty if there is none."""

    @property
    def is_sound(self) -> bool:
        """Whether no fault was found."""
        return not any(finding.is_fault for finding in self.findings)


class _Suspect(NamedTuple):
    """A line that breaks the chain and does not have its writer's next number."""

    finding: int
    """Index of the finding about it."""
    due: int
    seq: int


class Verifier:
    """Verifies the lines of a record, which are fed to it in order."""

    def __init__(
        self,
        key: bytes = b"",
        anchor: str = "",
        *,
        file: str = "",
        being_written: bool = False,
        head: RecordHead | None = None,
    ) -> None:
        """Check signatures with ``key``, and that some line has the chain ``anchor``.

        ``head`` is the last line that a gate is known to have written.
        ``file`` is reported in findings without a line; with ``being_written``, a running writer
        explains a missing end.
        """
        self._key = key
        self._anchor = anchor
        self._head = head
        self._begins_after_head = False
        self._being_written = being_written
        self._findings: list[RecordFinding] = []
        self._chain = GENESIS
        self._instead = ""
        """The chain that the last line should have had, if it had a different one."""
        self._lines = 0
        self._checkpoints = 0
        self._after_checkpoint = 0
        self._first_unsigned = RecordLine("", 0, b"")
        self._checkpoint = RecordLine("", 0, b"")
        self._checkpoint_at = ""
        self._closed = False
        self._file = ""
        self._last = RecordLine(file, 0, b"")
        self._sequences: dict[tuple[str, str], int] = {}
        self._suspects: dict[tuple[str, str], _Suspect] = {}
        """Lines whose number, if it is genuine, explains why the chain breaks there."""
        self._due: dict[tuple[str, str], tuple[int, int]] = {}
        """The next number of each writer, and the part of the record where it applies."""
        self._part = 0
        """Incremented where missing lines were already reported: any number may follow there."""
        self._open_runs: dict[str, RecordLine] = {}
        self.runs: set[str] = set()
        """The runs that have a line."""
        self._skipped: list[RecordLine] = []
        self._skipped_hash = hashlib.sha256()

    def feed(self, line: RecordLine) -> None:
        """Verify the next line."""
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
            # Only the chain of the previous line was edited; this line continues the true one.
            instead = expected_chain(covered, self._instead)
            if instead == stated:
                before, expected = self._instead, instead
        if self._skipped:
            self._account_for_skipped(event, follows=expected == stated)
        # Before this line's own number is checked: settling may correct the previous number.
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
        if self._head is not None and stated == self._head.chain:
            self._head = None
        self._learn(line, event)
        if not line.ended:
            self._find(line, TORN, "the last line has no line end: its writer was killed")

    def continue_from(self, line: RecordLine, chain: str, note: str) -> None:
        """Start in the middle of a record, after the line with a chain; ``note`` says why."""
        self._find(line, BEGINS, note)
        self._chain, self._instead = chain, ""
        self._file = line.file
        self._part += 1

    def finish(self) -> Verification:
        """Return the result, after the last line."""
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
        if self._head is not None:
            self._find(self._last, MISSING, self._missing_lines(self._head))
        return Verification(
            tuple(self._findings), self._lines, len(self.runs), self._checkpoints, self._chain
        )

    def _missing_lines(self, head: RecordHead) -> str:
        """Describe lines that a gate wrote and that are not in the record."""
        if self._begins_after_head:
            return (
                f"a gate wrote this record up to number {head.seq} of run {head.run_id} in file "
                f"{head.number}, and the record begins with a later file: it was replaced, or was "
                "written for long by gates that could not use this state directory"
            )
        count = head.seq - self._sequences.get((head.run_id, head.writer), 0)
        if count <= 0:
            return (
                f"the line with number {head.seq} of run {head.run_id} is not what was written: "
                "the record was rewritten"
            )
        lines = f"{_counted(count, 'line')} or more {'is' if count == 1 else 'are'}"
        after = f" after line {self._last.number}" if self._last.number else ""
        return (
            f"{lines} missing{after}: a gate wrote this file up to byte {head.size}, number "
            f"{head.seq} of run {head.run_id}; what follows was cut off, or the machine lost power"
        )

    def _find(self, line: RecordLine, kind: str, message: str) -> None:
        if len(self._findings) < MAX_FINDINGS:
            # The message may quote a lone surrogate, which cannot be encoded for output.
            told = message.encode("utf-8", "backslashreplace").decode()
            self._findings.append(RecordFinding(kind, line.file, line.number, told))

    def _skip(self, line: RecordLine) -> None:
        if self._skipped:
            self._skipped_hash.update(b"\n")
        self._skipped_hash.update(line.data)
        self._skipped.append(line)

    def _enter(self, line: RecordLine, event: dict[str, Any], *, follows_genesis: bool) -> None:
        """Start a file: its first line continues the chain of the previous file."""
        if event.get("type") != RECORD_OPENED:
            if self._lines > 1 and follows_genesis:
                self._find(
                    line,
                    REMOVED,
                    "this file starts a new chain: the link to the previous file is missing",
                )
                self._chain, self._instead = GENESIS, ""
                self._part += 1
            return
        said = member(event, "record")
        number = said.get("file")
        if self._lines == 1 and self._head is not None and type(number) is int:
            # A gate stores its head every second, long before its file may be removed. An opening
            # line alone explains nothing: whoever replaces the record can write one.
            self._begins_after_head = number > self._head.number
        previous = said.get("previous_chain")
        if type(previous) is not str or not _CHAIN.fullmatch(previous) or previous == self._chain:
            return
        if self._lines == 1:
            text = (
                f"the record begins here: {said.get('previous_file')} and older files are not kept"
            )
            self._find(line, BEGINS, text)
        else:
            self._find(line, REMOVED, "lines between this file and the previous one are missing")
        self._chain, self._instead = previous, ""
        self._part += 1

    def _account_for_skipped(self, event: dict[str, Any], *, follows: bool) -> None:
        said = member(event, "record")
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

    def _suspect(self, line: RecordLine, event: dict[str, Any]) -> None:
        """Report a line that breaks the chain; its writer's next line may tell more."""
        stream, seq = _place(event)
        due = self._sequences.get(stream, 0) + 1
        if seq != due and len(self._findings) < MAX_FINDINGS:
            self._suspects[stream] = _Suspect(len(self._findings), due, seq)
        self._find(line, *self._reason(event))
        self._part += 1

    def _settle(self, event: dict[str, Any]) -> None:
        """Use a writer's next line to decide whether the number of a suspect line was edited."""
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
        """Return why a line may break the chain, judging by its number in its run."""
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

    def _check_number(self, line: RecordLine, event: dict[str, Any]) -> None:
        """Find gaps that a valid chain does not show, using each writer's line numbers."""
        stream, seq = _place(event)
        if not seq:
            return
        part, due = self._due.get(stream, (0, 1))
        self._due[stream] = self._part, seq + 1
        # Lines that are missing were already reported, or this is the first line of its writer.
        if part != self._part or seq == due:
            return
        if seq > due:
            gone = f"{_counted(seq - due, 'line')} of run {stream[0]} before this one"
            text = f"{gone} {'is' if seq - due == 1 else 'are'} gone: cut off while its gate ran"
            self._find(line, REMOVED, text)
        else:
            self._find(line, MOVED, f"number {seq} of run {stream[0]} was there before")

    def _check_origin(self, line: RecordLine, event: dict[str, Any], before: str) -> None:
        """Find a checkpoint that covers other lines, or comes from a run that wrote none."""
        if event.get("type") != CHECKPOINT:
            return
        stream, _ = _place(event)
        if member(event, "checkpoint").get("covers") != before:
            text = "the checkpoint is for other lines than those before it: they were rewritten"
            self._find(line, SIGNATURE, f"{text}, or it was moved here")
        elif not self._part and stream not in self._sequences:
            text = f"the checkpoint is not from run {stream[0]}, which wrote nothing before it"
            self._find(line, SIGNATURE, text)

    def _learn(self, line: RecordLine, event: dict[str, Any]) -> None:
        stream, seq = _place(event)
        # A copied or moved line must not lower the number: later lines would look like new gaps.
        self._sequences[stream] = max(seq, self._sequences.get(stream, 0))
        kind = event.get("type")
        self.runs.add(stream[0])
        if kind == RUN_START:
            self._open_runs[stream[0]] = line
        elif kind == RUN_END:
            self._open_runs.pop(stream[0], None)
        elif kind == RECORD_GAP:
            self._find(line, *_gap(member(event, "record")))
        if str(event.get("v")).partition(".")[0] != CONTRACT.partition(".")[0]:
            self._find(line, VERSION, f"contract {event.get('v')!s:.20} is not known here")
        if kind == CHECKPOINT:
            self._checkpoint, self._checkpoint_at = line, str(event.get("ts"))[:_TIME_LENGTH]
            self._check_signature(line, member(event, "checkpoint"))
        elif not (self._closed and kind == RECORD_OPENED and line.number == 1):
            # A closing checkpoint may trigger a rotation; the opening line after it is no gap.
            if not self._after_checkpoint:
                self._first_unsigned = line
            self._after_checkpoint += 1
            self._closed = False

    def _check_signature(self, line: RecordLine, said: dict[str, Any]) -> None:
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
        """Describe the lines after the last checkpoint, and what they may mean."""
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

    def _named(self, line: RecordLine) -> str:
        """Return the position of a line, with its file unless that is the last one."""
        return f"line {line.number}" + (f" of {line.file}" if line.file != self._last.file else "")


def parse_event(data: bytes) -> dict[str, Any] | None:
    """Parse a line as a JSON object in UTF-8 with valid ids; None if it is not one."""
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError:
        event, _ = _parse_oddity(data)
    return event if type(event) is dict else None


def unreadable(data: bytes) -> str:
    """Return why ``parse_event`` rejected a line."""
    _, fault = _parse_oddity(data)
    return fault or NO_OBJECT


def _parse_oddity(data: bytes) -> tuple[Any, str]:
    """Parse what orjson rejects, such as a lone surrogate in an argument; or return why not."""
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
    """Return the ids in an event; the gate never writes a lone surrogate there."""
    writer = member(event, "source").get("shim_id")
    call = member(event, "call").get("call_id")
    return event.get("v"), event.get("type"), event.get("run_id"), writer, call


def _is_text(value: Any) -> bool:
    """Tell whether the text of a value can be encoded as UTF-8."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def _aside(line: RecordLine) -> str:
    """Return, in brackets, why a line cannot be read, unless that is obvious."""
    if line.left_out:
        return f" ({TOO_LONG})"
    fault = "" if parse_event(line.data) is not None else unreadable(line.data)
    return f" ({fault})" if fault in {NOT_UTF8, HALF_PAIR} else ""


def _gap(said: dict[str, Any]) -> tuple[str, str]:
    """Describe the loss that a writer recorded: failed writes, or lines that were cut off."""
    cut = said.get("cut_bytes")
    if cut is None:
        return GAP, f"{_counted(said.get('lost'), 'event')} could not be written here"
    return REMOVED, f"{cut} or more bytes before this line were cut off: its writer saw it"


def _counted(number: Any, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _place(event: dict[str, Any]) -> tuple[tuple[str, str], int]:
    """Return the run and writer of a line (a run may have several), and its number there."""
    seq = event.get("seq")
    writer = member(event, "source").get("shim_id")
    stream = (str(event.get("run_id"))[:200], str(writer)[:200])
    return stream, seq if type(seq) is int else 0
