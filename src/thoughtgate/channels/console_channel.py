"""The console as an approval channel: its name and the identity of its user.

There is no ``Channel`` class for the console, because it reads approval requests from the
store and needs no notifications.
"""

import os
import pwd
from typing import Final

NAME: Final = "console"


def identity() -> str:
    """Return the identity of the console's user: the login that this process runs as."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid-{uid}"
    return f"{NAME}:{name}"
