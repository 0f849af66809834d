"""Time and new ids for the drivers; the pure packages receive both as arguments.

Kept small because every shim loads it.
"""

import os
import time
from typing import Final

now: Final = time.time
"""Seconds since the epoch."""

monotonic: Final = time.monotonic
"""Seconds on a clock that is never set, for timeouts."""


def new_id() -> str:
    """Return a new UUID, version 7: unique everywhere, and sortable by time."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    # RFC 9562, 5.7: 48 bits of time; the version in bits 76 to 79, the variant in 62 and 63.
    value = milliseconds << 80 | random
    value = value & ~(0xF << 76) | (7 << 76)
    value = value & ~(0x3 << 62) | (2 << 62)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
