"""Who can lead the path of the state directory elsewhere. Kept small because every shim loads it."""

import os
from contextlib import suppress

from thoughtgate.errors import StoreError


def require_own_path(path: str) -> None:
    """Refuse a path that another user can lead elsewhere, because root could write anywhere.

    Such a path is usual where ``sudo`` keeps ``HOME``: an agent of that user may put a link there.

    Raises:
        StoreError: a part of the path belongs to another user.
    """
    if os.geteuid() != 0:
        return
    for whole in (os.path.abspath(path), os.path.realpath(path)):
        part = whole
        while part != os.sep:
            with suppress(FileNotFoundError):
                if os.lstat(part).st_uid != 0:
                    raise StoreError(
                        f"root cannot use the state directory {path}: {part} belongs to another "
                        "user; run this as that user, or set THOUGHTGATE_STATE_DIR"
                    )
            part = os.path.dirname(part)
