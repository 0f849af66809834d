"""Writing events to the record as chained lines, in a file or on a stream.

If writing fails, the writer tries again without previews. If that fails too, the caller gets an
error (``refuse``), or the loss is recorded as soon as writing works again (``continue``).
``record.file`` handles the file itself.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from thoughtgate.core.envelope import Envelope, seal, seal_all
from thoughtgate.core.record_events import Record
from thoughtgate.errors import RecordError
from thoughtgate.record.evidence import (
    CUT_BEFORE,
    checkpoint,
    record_cut,
    record_gap,
    record_opened,
    record_repaired,
)
from thoughtgate.record.file import RecordFile, Tail
from thoughtgate.record.head_keeper import HeadKeeper
from thoughtgate.record.stream import STREAMS, RecordStream, is_stream
from thoughtgate.stores.record_heads import RecordHead, head_name
from thoughtgate.wire.unchecked import unchecked

REFUSE: Final = "refuse"

ROTATE_BYTES: Final = 64 * 1024 * 1024
"""Size at which a file is rotated: about 100,000 events, still quick to verify and copy."""
KEEP: Final = 10
"""How many rotated files are kept."""
CHECKPOINT_EVERY: Final = 1000
"""Lines between signed checkpoints; an attacker can truncate at most this many unnoticed."""
CHECKPOINT_S: Final = 60.0
"""Seconds after which the next batch adds a checkpoint, however few lines there were."""


class RecordWriter:
    """Writes one run's events. Not for use by several threads at once."""

    def __init__(
        self,
        path: Path | str,
        envelope: Envelope,
        *,
        on_failure: str = REFUSE,
        rotate_bytes: int = ROTATE_BYTES,
        keep: int = KEEP,
        keep_bytes: int = 0,
        retain_s: float = 0.0,
        may_remove: Callable[[Path, int], bool] = lambda _path, _number: True,
        fsync: bool = False,
        sign_key: bytes = b"",
        checkpoint_every: int = CHECKPOINT_EVERY,
        heads: HeadKeeper | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Write to a file or a stream; ``say`` reports failures and recovery to the operator.

        ``heads`` stores how far a file was written; with it, the path must be a regular file.
        """
        self._heads = heads
        self._name = head_name(Path(path)) if heads is not None else ""
        self.envelope = envelope
        self.lost = 0
        """Events that could not be written and are not yet recorded as lost."""
        self._reason = ""
        self._cut = 0
        """Bytes that were missing at the last append."""
        self._on_failure = on_failure
        self.refuses: Callable[[], bool] = lambda: on_failure == REFUSE
        """Tells whether calls are refused while writing fails, for the message to the operator."""
        self._say = say
        self._sign_key = sign_key
        self._checkpoint_every = checkpoint_every
        self._unsigned = 0
        self._signed_at: float | None = None
        """Time of this writer's last checkpoint."""
        self._last_at = 0.0
        self._sink: RecordFile | RecordStream
        if str(path) in STREAMS or (heads is None and is_stream(str(path))):
            self._sink = RecordStream(str(path))
        else:
            self._sink = RecordFile(
                Path(path),
                self._open_line,
                rotate_bytes=rotate_bytes,
                keep=keep,
                keep_bytes=keep_bytes,
                retain_s=retain_s,
                may_remove=lambda file, number: (
                    (heads is None or heads.may_remove(self._name, number))
                    and may_remove(file, number)
                ),
                fsync=fsync,
                take_back=self._take_back,
                on_append=self._note_head,
            )

    def write(self, records: Sequence[Record]) -> None:
        """Write a batch of events before returning, all of them or none.

        Raises:
            RecordError: nothing was written, and ``on_failure`` is ``refuse``.
        """
        if not records:
            return
        try:
            self._append(records)
        except RecordError:
            try:
                self._append([_without_previews(record) for record in records])
            except RecordError as error:
                if not self.lost:
                    what = "refused" if self.refuses() else "still forwarded"
                    self._say(f"{error}; calls are {what}")
                self.lost += len(records)
                self._reason = str(error)
                if self._on_failure == REFUSE:
                    raise

    def close(self) -> None:
        """Sign the end if there is a key, and close. All events must already be written."""
        if self._heads is not None:
            # A short run may end before its first comparison with what earlier ones had written.
            self._heads.save()
        is_cut = self._heads is not None and self._heads.missing(self._name) > 0
        # A writer that wrote nothing has nothing to sign.
        if self._last_at and (self._sign_key or is_cut):
            try:
                self._append((), closing=bool(self._sign_key))
            except RecordError as error:
                self._reason = str(error)
        self._sink.close()

    def _append(self, records: Sequence[Record], *, closing: bool = False) -> None:
        seq, unsigned, signed_at = self.envelope.seq, self._unsigned, self._signed_at
        heads = self._heads
        before = heads.missing(self._name) if heads is not None else 0
        self._cut = before
        try:
            self._sink.append(partial(self._lines, records, before, closing))
        except RecordError:
            # Nothing was written: if the numbers were used up, a reader would report a gap.
            self.envelope.seq, self._unsigned, self._signed_at = seq, unsigned, signed_at
            raise
        if self.lost:
            missing = "1 event is" if self.lost == 1 else f"{self.lost} events are"
            self._say(f"the record goes on; {missing} missing and named as lost in it")
            self.lost = 0
        if heads is not None and before:
            heads.reported(self._name)
        if self._cut:
            cut = self._cut
            self._say(f"{cut} or more bytes were cut off the record's end; it goes on and says so")

    def _note_head(self, number: int, size: int, chain: str) -> None:
        if self._heads is not None:
            run, envelope = self.envelope.run, self.envelope
            head = (self._name, number, size, chain, run.run_id, run.shim_id, envelope.seq)
            self._heads.note(unchecked(RecordHead, head))

    def _lines(
        self, records: Sequence[Record], before: int, closing: bool, tail: Tail
    ) -> tuple[bytes, str]:
        """Return the lines to append after a tail; ``before`` counts bytes that earlier gates lost."""
        wrap = self.envelope.wrap
        at = records[0].at if records else self._last_at
        if tail.gone or before:
            self._cut = gone = tail.gone or before
            cut = record_cut(at, gone) if tail.gone else record_cut(at, before, CUT_BEFORE)
            records = [cut, *records]
        lines = []
        if tail.torn is not None:
            lines.append(wrap(record_repaired(at, tail.torn)))
        if self.lost:
            lines.append(wrap(record_gap(at, self.lost, self._reason)))
        # After the lines about a repair and a loss: those describe what happened before this batch.
        lines += self.envelope.wrap_all(records, orjson.dumps)
        self._last_at = records[-1].at if records else at
        data, chain = seal_all(lines, tail.chain)
        if self._sign_key:
            self._unsigned += len(lines)
            if closing or self._is_due():
                signed, chain = self._sign(chain, closing=closing)
                data += signed
        return (b"\n" + data if tail.needs_newline else data), chain

    def _sign(self, chain: str, *, closing: bool) -> tuple[bytes, str]:
        self._unsigned, self._signed_at = 0, self._last_at
        record = checkpoint(self._last_at, self._sign_key, chain, closing=closing)
        return seal(self.envelope.wrap(record), chain)

    def _is_due(self) -> bool:
        """Tell whether this batch needs a checkpoint; a writer's first batch always does."""
        if self._signed_at is None or self._unsigned >= self._checkpoint_every:
            return True
        # abs(), so that setting the clock back does not delay the next checkpoint.
        return abs(self._last_at - self._signed_at) >= CHECKPOINT_S

    def _open_line(self, number: int, previous_file: str, chain: str) -> tuple[bytes, str]:
        record = record_opened(
            self._last_at, number=number, previous_file=previous_file, previous_chain=chain
        )
        return seal(self.envelope.wrap(record), chain)

    def _take_back(self) -> None:
        # ``_open_line`` used a number for a line that was not written.
        self.envelope.seq -= 1


def _without_previews(record: Record) -> Record:
    """Return the event without its previews: a smaller line may still fit on the disk."""
    body: dict[str, Any] = dict(record.body)
    call = body.get("call")
    if type(call) is dict and "preview" in call:
        body["call"] = {**call, "preview": {"truncated": True}}
    return record._replace(body=body)
