"""``thoughtgate`` with a trace of the modules that run: ``traced_command.py FILE BEGIN ARGUMENTS...``.

The trace starts after SIGUSR1, when the function BEGIN (``module:function``) is next called.
SIGUSR2 ends it and writes the names of the modules, in order of first use, to FILE as JSON.
Only the main thread is traced. Left out is what runs because time passes and what runs when a
module is imported.
"""

import json
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any, Final

import thoughtgate
from thoughtgate.cli.entry import main

STARTED: Final = ".started"
"""Suffix of the file that exists once the trace waits for its first function."""

_SOURCE: Final = str(Path(thoughtgate.__file__).parent)
_TIMERS: Final = frozenset({"_tick", "tick", "_look"})


class Trace:
    """The modules that have run, in order."""

    def __init__(self, file: Path, begin: str) -> None:
        module, _, function = begin.partition(":")
        self._begin = (f"{_SOURCE}/{module.replace('.', '/')}.py", function)
        self._file = file
        self._seen: dict[str, None] = {}

    def start(self, *_: object) -> None:
        """Wait for the first function."""
        sys.setprofile(self._profile)
        self._file.with_suffix(STARTED).touch()

    def stop(self, *_: object) -> None:
        """Write what has run."""
        sys.setprofile(None)
        names = [_module_name(path) for path in self._seen]
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(names), "utf-8")
        new.replace(self._file)

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        path = code.co_filename
        if event != "call" or path in self._seen or code.co_name == "<module>":
            return
        if not self._seen and (path, code.co_name) != self._begin:
            return
        if path.startswith(_SOURCE) and not _is_timer(frame):
            self._seen[path] = None


def _is_timer(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name in _TIMERS:
            return True
        frame = frame.f_back
    return False


def _module_name(path: str) -> str:
    return path.removeprefix(_SOURCE).removesuffix(".py").strip("/").replace("/", ".")


if __name__ == "__main__":
    trace = Trace(Path(sys.argv[1]), sys.argv[2])
    signal.signal(signal.SIGUSR1, trace.start)
    signal.signal(signal.SIGUSR2, trace.stop)
    sys.argv = ["thoughtgate", *sys.argv[3:]]
    sys.exit(main())
