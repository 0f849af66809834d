"""Verification of the record in the background, and the result of the last one.

The work is done by ``thoughtgate audit verify`` in a separate process, because hashing a large
record must not slow down a gate that serves the console.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from thoughtgate.gate.clock import monotonic, now
from thoughtgate.gate.state_directory import read_private_file, write_private_file
from thoughtgate.process.own_command import own_command

FILE: Final = "record-verification.json"
"""The result of the last verification, in the state directory."""

MAX_S: Final = 900.0
"""How long a verification may take, which is enough for about ten gigabytes."""

MAX_FINDINGS: Final = 20
MAX_BYTES: Final = 64 * 1024
MAX_TEXT: Final = 300


class LastVerification(NamedTuple):
    """The result of a verification that a person started in the console."""

    at: float
    by: str
    took_s: float
    sound: bool
    lines: int
    findings: tuple[str, ...]
    """The faults, as far as a page shows them."""
    problem: str = ""
    """Why the record could not be verified; empty if it could."""


class RecordIntegrity:
    """Verifies one record; one verification at a time."""

    def __init__(
        self,
        state: str,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        command: Callable[[], list[str]] = own_command,
    ) -> None:
        """Verify with ``thoughtgate audit verify --json`` and these further arguments."""
        self._path = Path(state, FILE)
        self._arguments = [*arguments]
        self._environ = {**environ, "THOUGHTGATE_STATE_DIR": state}
        self._command = command
        self._lock = threading.Lock()
        self._began_at = 0.0

    @property
    def began_at(self) -> float:
        """When the verification that runs now began; 0 if none runs."""
        return self._began_at

    def begin(self, by: str) -> bool:
        """Start a verification; return False if one runs already."""
        with self._lock:
            if self._began_at:
                return False
            self._began_at = now()
        threading.Thread(target=self._run, args=(by,), daemon=True, name="verification").start()
        return True

    def last(self) -> LastVerification | None:
        """Return the last result; None if there is none that can be read."""
        try:
            told = json.loads(read_private_file(str(self._path), MAX_BYTES))
            found = LastVerification(**told)
            return found._replace(
                at=float(found.at), lines=int(found.lines), findings=tuple(map(str, found.findings))
            )
        except (OSError, ValueError, TypeError):
            return None

    def _run(self, by: str) -> None:
        begun = monotonic()
        try:
            found = self._verify(by)
        except (OSError, ValueError, TypeError, KeyError, subprocess.SubprocessError) as error:
            text = "the result of the verification cannot be read"
            if isinstance(error, OSError):
                text = str(error)
            elif isinstance(error, subprocess.SubprocessError):
                text = "it was not verified in time"
            found = LastVerification(
                now(), by, 0.0, sound=False, lines=0, findings=(), problem=text
            )
        try:
            took = round(monotonic() - begun, 1)
            write_private_file(str(self._path), json.dumps(found._replace(took_s=took)._asdict()))
        except OSError:
            pass  # The page continues to show the previous result.
        finally:
            self._began_at = 0.0

    def _verify(self, by: str) -> LastVerification:
        done = subprocess.run(
            [*self._command(), "audit", "verify", "--json", *self._arguments],
            env=self._environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=MAX_S,
            check=False,
        )
        if not done.stdout.strip():
            text = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            return LastVerification(
                now(), by, 0.0, sound=False, lines=0, findings=(), problem=text[:MAX_TEXT]
            )
        told = json.loads(done.stdout)
        records = [told, *told.get("writers", ())]
        faults = [_shown(one) for each in records for one in each["findings"] if one["fault"]]
        lines = sum(int(each.get("lines", 0)) for each in records)
        shown = tuple(faults[:MAX_FINDINGS])
        return LastVerification(now(), by, 0.0, bool(told["sound"]), lines, shown)


def _shown(finding: Mapping[str, Any]) -> str:
    where = f"{finding['file']}:{finding['line']}" if finding["line"] else finding["file"]
    return f"{where}: {finding['message']}"[:MAX_TEXT]
