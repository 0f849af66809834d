"""Settling a gate's memory once it is loaded, before it serves."""

import gc
from typing import Final

COLLECT_AFTER: Final = (20_000, 20, 50)
"""A call leaves some dozens of objects behind, nearly all of which end with it."""


def settle_memory() -> None:
    """Keep the collector from looking at what was loaded at the start, again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)
