"""Lines in which the record describes itself, so that its chain stays verifiable.

Such a line is written after a rotation, after lines were lost to a full disk, after a writer
was killed, and for each checkpoint. ``record.writer`` writes these lines and
``record.verification`` reads them; this module accesses neither files nor the clock.
"""

import hashlib
import hmac
from typing import Any, Final, NamedTuple

from thoughtgate.core.record_events import Record

RECORD_OPENED: Final = "record_opened"
"""The first line of a file that continues another."""
RECORD_REPAIRED: Final = "record_repaired"
"""The bytes between this line and the last valid one are not part of the record."""
RECORD_GAP: Final = "record_gap"
"""Events are lost: they could not be written, or were cut off afterwards."""
CHECKPOINT: Final = "checkpoint"
"""The holder of the key confirms the record up to this line."""

ALGORITHM: Final = "hmac-sha256"

CUT_OFF: Final = "the end of the record was cut off while its gate was running"
CUT_BEFORE: Final = "the record did not contain everything that gates had written to it before"


class Torn(NamedTuple):
    """Bytes after the last valid line, from a writer that was killed or from a third party."""

    size: int
    digest: str
    """SHA-256 of the bytes, without the newline that was added to terminate them."""


def torn_bytes(data: bytes) -> Torn:
    """Describe the bytes after the last valid line."""
    # The newline comes from the next writer, not from the one that was killed.
    kept = data.removesuffix(b"\n")
    return Torn(len(kept), hashlib.sha256(kept).hexdigest())


def record_opened(at: float, *, number: int, previous_file: str, previous_chain: str) -> Record:
    """Return the first line of a file that continues another."""
    body = {"file": number, "previous_file": previous_file, "previous_chain": previous_chain}
    return _line(RECORD_OPENED, at, "record", body)


def record_repaired(at: float, torn: Torn) -> Record:
    """Return the line that excludes the bytes before it from the record and its chain."""
    body = {"torn_bytes": torn.size, "torn_sha256": torn.digest}
    return _line(RECORD_REPAIRED, at, "record", body)


def record_gap(at: float, lost: int, reason: str) -> Record:
    """Return the line that states how many events could not be written."""
    return _line(RECORD_GAP, at, "record", {"lost": lost, "reason": reason})


def record_cut(at: float, size: int, reason: str = CUT_OFF) -> Record:
    """Return the line that states that bytes were removed after a writer appended them."""
    return _line(RECORD_GAP, at, "record", {"lost": 0, "reason": reason, "cut_bytes": size})


def checkpoint(at: float, key: bytes, chain: str, *, closing: bool) -> Record:
    """Return a checkpoint that signs every line up to the one with ``chain``."""
    body = {
        "algorithm": ALGORITHM,
        "key_id": key_id(key),
        "covers": chain,
        "closing": closing,
        "signature": sign(key, chain, closing=closing),
    }
    return _line(CHECKPOINT, at, "checkpoint", body)


def _line(kind: str, at: float, name: str, body: dict[str, Any]) -> Record:
    # Such a line belongs to no server and no session.
    return Record(kind, at, "", "0", {name: body})


def key_id(key: bytes) -> str:
    """Return an identifier for a key that does not reveal the key."""
    return hmac.new(key, b"thoughtgate key id", hashlib.sha256).hexdigest()[:16]


def sign(key: bytes, chain: str, *, closing: bool) -> str:
    """Return the signature of a checkpoint."""
    # ``closing`` is signed too: or else a record could be cut off after any checkpoint, and that
    # checkpoint be declared the end of its run.
    text = f"thoughtgate checkpoint {chain} {'closing' if closing else 'open'}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def is_signed(key: bytes, body: dict[str, Any]) -> bool:
    """Tell whether a checkpoint was signed with this key, for the chain that it names.

    Whether that chain belongs to the lines before it is checked by the verifier.
    """
    said, chain = body.get("signature"), body.get("covers")
    if body.get("algorithm") != ALGORITHM or body.get("key_id") != key_id(key):
        return False
    # compare_digest raises TypeError for text that is not ASCII.
    if type(said) is not str or type(chain) is not str or not said.isascii():
        return False
    return hmac.compare_digest(said, sign(key, chain, closing=body.get("closing") is True))
