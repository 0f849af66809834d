"""The name of the local user, which identifies reviewers at this machine."""

import os
import pwd


def login_name() -> str:
    """Return the login that this process runs as, or the user id if it has no name."""
    # Not from $USER or $LOGNAME, which the program that starts this process can set to any name.
    uid = os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"
