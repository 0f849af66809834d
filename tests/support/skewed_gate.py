"""``thoughtgate`` on a machine whose clock is wrong: ``python -m tests.support.skewed_gate 60 proxy ...``."""

import sys
import time


def main() -> None:
    """Set the clock, before anything of ours has been imported, and run the command."""
    ahead_s = float(sys.argv.pop(1))
    real = time.time
    time.time = lambda: real() + ahead_s
    from thoughtgate.cli.entry import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
