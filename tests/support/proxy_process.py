"""``thoughtgate proxy`` as a real process, in any of its four combinations."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from tests.support.waiting import PATIENCE_S, wait_for
from tests.support.warm_command import start_command

_LISTENING: Final = re.compile(r"(?:listening|serving) on (http://\S+)")


def environment(directory: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment in which the gate keeps its state in a directory."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(directory),
        "THOUGHTGATE_STATE_DIR": str(directory / "state"),
        **(extra or {}),
    }


def proxy_command(*arguments: str) -> list[str]:
    """Return the command line of a proxy."""
    return [sys.executable, "-m", "thoughtgate.cli.entry", "proxy", *arguments]


def serve_command(*arguments: str) -> list[str]:
    """Return the command line of ``serve``."""
    return [sys.executable, "-m", "thoughtgate.cli.entry", "serve", *arguments]


def sample_server(*flags: str) -> list[str]:
    """Return the command line of the sample server."""
    return [sys.executable, "-m", "thoughtgate.testing.sample_server", *flags]


class ProxyProcess:
    """A proxy that listens on a port."""

    def __init__(
        self,
        directory: Path,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str] | None = None,
        program: str = "",
        ahead_s: float = 0.0,
        command: Callable[..., list[str]] = proxy_command,
    ) -> None:
        """Start it, with a clock that is ``ahead_s`` ahead."""
        self.directory = directory
        words = [program, "proxy", *arguments] if program else command(*arguments)
        if ahead_s:
            skewed = [sys.executable, "-m", "tests.support.skewed_gate", str(ahead_s)]
            words = [*skewed, "proxy", *arguments]
        self.url = ""
        self._errors: list[str] = []
        env = environment(directory, environ)
        self.process = start_command(words, env=env, stdin=subprocess.DEVNULL)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._errors.append(line.decode("utf-8", "backslashreplace"))

    @property
    def stderr(self) -> str:
        """What the process has said so far."""
        return "".join(self._errors)

    def __enter__(self) -> Self:
        def listening() -> str:
            if self.process.poll() is not None:
                self.close()
                raise AssertionError(f"the proxy ended: {self.stderr}")
            found = _LISTENING.search(self.stderr)
            return found[1] if found else ""

        self.url = wait_for(listening, what="the listening proxy")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Make sure that it is gone."""
        if self.process.poll() is None:
            self.stop()
        self._reader.join(PATIENCE_S)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self.url.rpartition(":")[2].partition("/")[0])

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(30)

    def records(self, kind: str = "") -> list[dict[str, Any]]:
        """Return the events on record."""
        return read_records(self.directory, kind)


def read_records(directory: Path, kind: str = "") -> list[dict[str, Any]]:
    """Return the events that a gate has put on record."""
    path = directory / "state" / "audit.jsonl"
    lines = path.read_bytes().splitlines() if path.exists() else []
    events = [json.loads(line) for line in lines]
    return [one for one in events if not kind or one["type"] == kind]
