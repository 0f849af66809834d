"""A desktop session whose Secret Service is the real GNOME Keyring, on a bus of its own."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.desktop import session_bus
from tests.support.waiting import ending, wait_for

PASSWORD = b"password-of-the-login-keyring"

needs_secret_service = pytest.mark.skipif(
    shutil.which("gnome-keyring-daemon") is None or shutil.which("dbus-daemon") is None,
    reason="gnome-keyring-daemon and dbus-daemon are needed: make notifications (apt-get with root)",
)


@contextmanager
def secret_service(directory: Path, *, unlocked: bool = True) -> Iterator[dict[str, str]]:
    """Run a keyring; yield the environment of the programs of its desktop session."""
    with session_bus(directory) as address:
        # Without a screen: nobody can be asked to unlock it.
        environ = {"DBUS_SESSION_BUS_ADDRESS": address, "XDG_RUNTIME_DIR": str(directory)}
        started = {**environ, "HOME": str(directory), "PATH": "/usr/bin:/bin"}
        command = ["gnome-keyring-daemon", "--foreground", "--components=secrets"]
        process = subprocess.Popen(
            [*command, "--unlock"] if unlocked else command,
            env=started,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with ending(process) as daemon:
            try:
                assert daemon.stdin is not None
                daemon.stdin.write(PASSWORD if unlocked else b"")
                daemon.stdin.close()
                wait_for((directory / "keyring" / "control").exists, what="the keyring")
                yield environ
            finally:
                daemon.kill()
