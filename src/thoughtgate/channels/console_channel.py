"""The console as an approval channel: its name and the identity of its user.

There is no ``Channel`` class for the console, because it reads approval requests from the
store and needs no notifications.
"""

from typing import Final

from thoughtgate.channels.local_user import login_name

NAME: Final = "console"


def identity() -> str:
    """Return the identity of the console's user: the login that this process runs as."""
    return f"{NAME}:{login_name()}"
