"""The record about itself: lines that keep its chain provable across files, faults and keys.

A record that is rotated, that lost a line to a full disk or whose last writer was killed
says so in a line of its own. ``record.verification`` reads these lines, the writer in
``stores`` asks for them; this module knows neither files nor time.
"""

import hashlib
import hmac
from typing import Any, Final, NamedTuple

from thoughtgate.core.record_events import Record

RECORD_OPENED: Final = "record_opened"
"""The first line of a file that continues another."""
RECORD_REPAIRED: Final = "record_repaired"
"""What stands between this line and the last sealed one is no line of the record."""
RECORD_GAP: Final = "record_gap"
"""Events could not be written, or were cut off after they were, and are lost."""
CHECKPOINT: Final = "checkpoint"
"""Whoever holds the key has seen the record as it is up to here."""

ALGORITHM: Final = "hmac-sha256"

CUT_OFF: Final = "the end of the record was cut off while its gate was running"


class Torn(NamedTuple):
    """Bytes after the last sealed line: a killed writer's, or somebody else's."""

    size: int
    digest: str
    """SHA-256 over the bytes, without a line end that was added to close them off."""


def torn_bytes(data: bytes) -> Torn:
    """Describe what stands after the last sealed line."""
    kept = data.removesuffix(b"\n")
    return Torn(len(kept), hashlib.sha256(kept).hexdigest())


def record_opened(at: float, *, number: int, previous_file: str, previous_chain: str) -> Record:
    """A new file goes on where the one before it ended."""
    body = {
        "record": {
            "file": number,
            "previous_file": previous_file,
            "previous_chain": previous_chain,
        }
    }
    return Record(RECORD_OPENED, at, "", "0", body)


def record_repaired(at: float, torn: Torn) -> Record:
    """The bytes before this line are not part of the record, and the chain goes on without them."""
    body = {"record": {"torn_bytes": torn.size, "torn_sha256": torn.digest}}
    return Record(RECORD_REPAIRED, at, "", "0", body)


def record_gap(at: float, lost: int, reason: str) -> Record:
    """Events were lost because they could not be written."""
    return Record(RECORD_GAP, at, "", "0", {"record": {"lost": lost, "reason": reason}})


def record_cut(at: float, size: int) -> Record:
    """Bytes that the writer had put at the record's end are gone."""
    body = {"lost": 0, "reason": CUT_OFF, "cut_bytes": size}
    return Record(RECORD_GAP, at, "", "0", {"record": body})


def checkpoint(at: float, key: bytes, chain: str, *, closing: bool) -> Record:
    """Vouch with a key for every line up to the one that states ``chain``."""
    body = {
        "checkpoint": {
            "algorithm": ALGORITHM,
            "key_id": key_id(key),
            "covers": chain,
            "closing": closing,
            "signature": sign(key, chain, closing=closing),
        }
    }
    return Record(CHECKPOINT, at, "", "0", body)


def key_id(key: bytes) -> str:
    """Return a name for a key that does not tell the key."""
    return hmac.new(key, b"thoughtgate key id", hashlib.sha256).hexdigest()[:16]


def sign(key: bytes, chain: str, *, closing: bool) -> str:
    """Return the signature of a checkpoint."""
    text = f"thoughtgate checkpoint {chain} {'closing' if closing else 'open'}"
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def is_signed(key: bytes, body: dict[str, Any]) -> bool:
    """Tell whether a checkpoint's signature is the key's own, of the lines it says that it covers.

    Whether these are the lines before it, the chain tells.
    """
    said, chain = body.get("signature"), body.get("covers")
    if body.get("algorithm") != ALGORITHM or body.get("key_id") != key_id(key):
        return False
    if type(said) is not str or type(chain) is not str or not said.isascii():
        return False
    return hmac.compare_digest(said, sign(key, chain, closing=body.get("closing") is True))
