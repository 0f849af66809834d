"""Desktop notifications about approval requests: the person at this desktop learns that a call waits.

Requests cannot be answered here. A separate thread starts the desktop's notification program,
without a shell and with each text as a separate argument. Other users of the machine can read those
arguments, so they contain no secret and none of the call's arguments.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from thoughtgate.channels.answer_places import AnswerPlaces, subject
from thoughtgate.core.approval import Approval

NAME: Final = "desktop"

DIRECTORIES: Final = ("/usr/bin", "/usr/local/bin", "/run/current-system/sw/bin")
"""Where the program is looked for; not in ``PATH``, which the agent sets if it starts the gate."""

PAUSE_S: Final = 10.0
"""Shortest time between two notifications; calls held in between are in the next one."""

GIVE_UP_S: Final = 10.0
"""How long the program may take; a notification service that hangs must not block the thread."""

STOP_WITHIN_S: Final = 1.0

_PASSED_ON: Final = (
    "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "HOME",
    "LANG",
)
"""All that the program needs from the gate's environment, the rest of which may contain secrets."""

_SCRIPT: Final = (
    "on run argv",
    "display notification (item 2 of argv) with title (item 1 of argv)",
    "end run",
)
"""AppleScript that reads its texts from the arguments; as part of the script they could be code."""


def find_program(environ: Mapping[str, str], platform: str = sys.platform) -> str:
    """Return the path of the notification program; empty without a desktop session of this user."""
    # The person is at another machine, where a notification on this one would not be seen.
    if any(environ.get(name) for name in ("SSH_CONNECTION", "SSH_TTY")):
        return ""
    name = "osascript" if platform == "darwin" else "notify-send"
    has_session = _has_console() if platform == "darwin" else _has_bus(environ)
    found = (f"{directory}/{name}" for directory in DIRECTORIES)
    return next((path for path in found if os.access(path, os.X_OK)), "") if has_session else ""


def command_line(program: str, title: str, body: str) -> list[str]:
    """Return the command that shows a notification."""
    if program.endswith("osascript"):
        script = (part for line in _SCRIPT for part in ("-e", line))
        return [program, *script, title, body]
    # Notification services may read the body as markup, but not the title.
    safe = body.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return [program, "--app-name=ThoughtGate", "--urgency=normal", "--", title, safe]


class DesktopNotifications:
    """A channel that only notifies; its thread starts with the first request."""

    name = NAME

    def __init__(
        self,
        program: str,
        environ: Mapping[str, str],
        places: AnswerPlaces,
        say: Callable[[str], None],
        *,
        pause_s: float = PAUSE_S,
    ) -> None:
        """``program`` comes from ``find_program``; ``say`` reports its first failure."""
        self._program = program
        self._environ = {name: environ[name] for name in _PASSED_ON if name in environ}
        self._places = places
        self._say = say
        self._pause_s = pause_s
        self._lock = threading.Lock()
        self._untold: dict[str, Approval] = {}
        """Requests that are open and in no notification yet."""
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def show_request(self, approval: Approval) -> None:
        """Queue a request for the next notification."""
        with self._lock:
            self._untold[approval.id] = approval
        self._wake.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)
            self._thread.start()

    def show_outcome(self, approval: Approval) -> None:
        """Leave out a request that was answered before its notification."""
        with self._lock:
            self._untold.pop(approval.id, None)

    def stop(self) -> None:
        """End the thread; a notification program that is running ends by itself."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(STOP_WITHIN_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            # Cleared before the requests are read, so that no later request is missed.
            self._wake.clear()
            with self._lock:
                fresh, self._untold = list(self._untold.values()), {}
            if not fresh or self._stopping.is_set():
                continue
            if fault := self._show(*self._texts(fresh)):
                self._say(f"desktop notifications are off until the next start: {fault}")
                return
            self._stopping.wait(self._pause_s)

    def _texts(self, fresh: list[Approval]) -> tuple[str, str]:
        where = self._places.where(fresh[0])
        if len(fresh) == 1:
            return "ThoughtGate: a call waits for you", f"{subject(fresh[0])}\n{where}"
        more = f"{subject(fresh[0])} and {len(fresh) - 1} more"
        return f"ThoughtGate: {len(fresh)} calls wait for you", f"{more}\n{where}"

    def _show(self, title: str, body: str) -> str:
        """Show a notification; return what went wrong."""
        try:
            ended = subprocess.run(
                command_line(self._program, title, body),
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=GIVE_UP_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{self._program} did not end within {GIVE_UP_S:.0f} seconds"
        except OSError as error:
            return f"{self._program}: {error.strerror}"
        return f"{self._program} exited with {ended.returncode}" if ended.returncode else ""


def _has_bus(environ: Mapping[str, str]) -> bool:
    has_screen = bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))
    runtime = environ.get("XDG_RUNTIME_DIR")
    has_bus = bool(environ.get("DBUS_SESSION_BUS_ADDRESS")) or (
        bool(runtime) and Path(str(runtime), "bus").is_socket()
    )
    return has_screen and has_bus


def _has_console() -> bool:
    """Tell whether the graphical session of this Mac is this user's, who then owns the console."""
    try:
        return Path("/dev/console").stat().st_uid == os.getuid()
    except OSError:
        return False
