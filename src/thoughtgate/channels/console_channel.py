"""The console as a channel: who answers there.

The console has no wire of its own: it reads the store, so there is nobody to notify.
"""

import os
import pwd
from typing import Final

NAME: Final = "console"


def identity() -> str:
    """Return who sits at the console: the login of the user this process runs as."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid-{uid}"
    return f"{NAME}:{name}"
