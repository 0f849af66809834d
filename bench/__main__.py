"""``make bench``: measure every family, print the table, keep the numbers as JSON."""

import argparse
import compileall
import json
import os
import platform
import sys
import time
from pathlib import Path

from bench.figure import Figure, families, render_table
from bench.previous import WANTED, install

RESULTS = Path(__file__).parent / "results"
SOURCE = Path(__file__).parent.parent / "src"


def main() -> int:
    """Measure what was asked for, all by default."""
    known = families()
    parser = argparse.ArgumentParser("bench", description=__doc__)
    parser.add_argument("families", nargs="*", help=f"of: {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--previous", metavar="REV|WHEEL", help="also measure an earlier version")
    options = parser.parse_args()
    unknown = set(options.families) - set(known)
    if unknown:
        parser.error(f"no such family: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    # An installed package is compiled. Without this, starts would also be measured with compiling
    # wherever PYTHONDONTWRITEBYTECODE is set.
    compileall.compile_dir(SOURCE, quiet=2)
    if options.previous is not None:
        os.environ[WANTED] = str(install(options.previous))
    found: list[tuple[str, Figure]] = []
    for name in options.families or known:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        found += [(name, figure) for figure in known[name]()(quick=options.quick)]
    print(render_table(found))
    path = _keep(found, quick=options.quick)
    missed = sum(figure.holds is False for _, figure in found)
    print(f"\n{missed} bars missed; written to {path.relative_to(Path.cwd())}")
    return 0


def _keep(found: list[tuple[str, Figure]], *, quick: bool) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / time.strftime("%Y%m%dT%H%M%SZ.json", time.gmtime())
    machine = {
        "python": platform.python_version(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
    }
    body = {
        "quick": quick,
        "machine": machine,
        "figures": [figure.as_json(family) for family, figure in found],
    }
    path.write_text(json.dumps(body, indent=1), "utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
