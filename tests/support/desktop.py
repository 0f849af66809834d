"""A desktop to notify: a private D-Bus session bus with a notification service that records.

The bus is the real ``dbus-daemon``, and the program under test the real ``notify-send``; the
service is a few lines, because a real one needs a screen.
"""

import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import PATIENCE_S, ending, within

SERVICE = "org.freedesktop.Notifications"

MISSING = "notify-send and dbus-daemon are needed: make notifications (apt-get with root)"

needs_desktop = pytest.mark.skipif(
    not Path("/usr/bin/notify-send").exists()
    or shutil.which("dbus-daemon") is None
    or find_spec("jeepney") is None,
    reason=MISSING,
)


class Desktop:
    """A session bus with a notification service."""

    def __init__(self, address: str) -> None:
        self.environ = {"DBUS_SESSION_BUS_ADDRESS": address, "DISPLAY": ":7"}
        """What a process of this desktop session has in its environment."""
        self.shown: list[tuple[str, str, str]] = []
        """Program, title and body of each notification."""
        from jeepney.bus_messages import message_bus  # type: ignore[import-untyped]
        from jeepney.io.blocking import open_dbus_connection  # type: ignore[import-untyped]

        self._bus = open_dbus_connection(bus=address)
        self._bus.send_and_get_reply(message_bus.RequestName(SERVICE), timeout=10)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until the service has noticed that the bus is gone."""
        self._thread.join(PATIENCE_S)

    def _serve(self) -> None:
        while True:
            try:
                message = self._bus.receive()
            except (OSError, EOFError):
                self._bus.close()
                return
            if message.header.message_type.name == "method_call":
                self._bus.send(self._answer(message))

    def _answer(self, message: Any) -> Any:
        from jeepney import (  # type: ignore[import-untyped]
            HeaderFields,
            new_error,
            new_method_return,
        )

        member = message.header.fields[HeaderFields.member]
        if member == "GetServerInformation":
            return new_method_return(message, "ssss", ("recorder", "tests", "1", "1.2"))
        if member == "GetCapabilities":
            return new_method_return(message, "as", (["body"],))
        if member == "Notify":
            program, _, _, title, body, *_ = message.body
            self.shown.append((program, title, body))
            return new_method_return(message, "u", (len(self.shown),))
        return new_error(message, "org.freedesktop.DBus.Error.UnknownMethod")


@contextmanager
def session_bus(folder: Path) -> Iterator[str]:
    """Run a session bus in a directory; yield its address."""
    path = folder / "bus"
    command = ["dbus-daemon", "--session", "--nofork", f"--address=unix:path={path}"]
    with ending(
        subprocess.Popen(
            [*command, "--print-address"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
    ) as daemon:
        try:
            assert daemon.stdout is not None
            # It prints its address once it listens.
            assert within(daemon.stdout.readline, what="the bus")
            yield f"unix:path={path}"
        finally:
            daemon.kill()


@contextmanager
def a_desktop(folder: Path) -> Iterator[Desktop]:
    """Run a desktop's bus and notification service in a directory."""
    with session_bus(folder) as address:
        desktop = Desktop(address)
        yield desktop
    desktop.wait()
