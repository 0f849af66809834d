"""Run a command as a process that has lost its parents: ``WAY OUTPUT COMMAND…``.

WAY is ``orphan`` (the parent has exited), ``session`` (in a new session as well, like a daemon) or
``child`` (nothing of that). OUTPUT gets one JSON object with the exit code and what was printed.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import PATIENCE_S, wait_for


def main(way: str, output: str, command: list[str]) -> None:
    """Detach, run the command, and write what came of it."""
    if way != "child":
        parent = os.getpid()
        if os.fork():
            return
        if way == "session":
            os.setsid()
        wait_for(lambda: os.getppid() != parent, what="the end of the parent")
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    told = {"code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}
    temporary = Path(f"{output}.part")
    temporary.write_text(json.dumps(told), "utf-8")
    temporary.rename(output)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
