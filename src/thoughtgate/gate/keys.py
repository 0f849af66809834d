"""The key that seals session ids and prompt states, stored in the state directory."""

import contextlib
import os
from pathlib import Path
from typing import Final

KEY_FILE: Final = "session-key"

_KEY_BYTES: Final = 32
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW


def load_key(state: str) -> bytes:
    """Return the sealing key from the state directory; a temporary one if it cannot be stored."""
    path = Path(state, KEY_FILE)
    made = os.urandom(_KEY_BYTES)
    try:
        temporary = Path(state, f"{KEY_FILE}.{os.getpid()}")
        with os.fdopen(os.open(temporary, _NEW_FILE, 0o600), "wb") as file:
            file.write(made)
        # A hard link fails if the file exists, so workers that start at once agree on one key.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(temporary)
        temporary.unlink()
        kept = path.read_bytes()
    except OSError:
        return made
    return kept if len(kept) == _KEY_BYTES else made
