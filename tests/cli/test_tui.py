"""The ``tui`` command, and that the serving path never loads it."""

import json
import subprocess
import sys

from tests.support.commands import thoughtgate


def test_it_explains_itself() -> None:
    done = subprocess.run(thoughtgate("tui", "--help"), capture_output=True, timeout=20, check=True)

    assert b"answer approval" in done.stdout


def test_the_serving_path_never_imports_it() -> None:
    script = (
        "import json, sys, thoughtgate.cli.serve, thoughtgate.hub.run;"
        "print(json.dumps([name for name in sys.modules if 'textual' in name or 'tui' in name]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, timeout=20, check=True
    )

    assert json.loads(done.stdout) == []
