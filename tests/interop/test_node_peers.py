"""Node's peers through the shim: the reference server and the Inspector's command line.

They are installed into ``.node`` by ``make node``; without them these tests are skipped.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.commands import ROOT, sample_server, shim
from tests.support.frames import request
from tests.support.shim_peer import ALLOW_ALL
from tests.support.stdio_peer import StdioPeer

BIN: Final = ROOT / ".node" / "node_modules" / ".bin"
EVERYTHING: Final = [str(BIN / "mcp-server-everything"), "stdio"]
SDK: Final = [sys.executable, str(Path(__file__).with_name("sdk_server.py"))]

pytestmark = pytest.mark.skipif(
    not (BIN / "mcp-inspector").exists() or not (BIN / "mcp-server-everything").exists(),
    reason="the Node peers are not installed: run make node",
)


def _inspect(tmp_path: Path, server: list[str], era: str, *question: str) -> tuple[int, Any, str]:
    """Ask a server with the Inspector; return its exit code, its answer and its complaint."""
    env = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "MCP_CATALOG_PATH": str(tmp_path / "catalog.json"),
        "THOUGHTGATE_STATE_DIR": str(tmp_path / "state"),
        "HIDDEN_TRACE": str(tmp_path / "trace"),
    }
    options = [
        "--cli",
        "--connect-timeout",
        "60000",
        "--protocol-era",
        era,
        "--format",
        "json",
        "-q",
    ]
    done = subprocess.run(
        [str(BIN / "mcp-inspector"), *options, *question, "--", *server],
        capture_output=True,
        env=env,
        cwd=tmp_path,
        check=False,
        timeout=110,
    )
    out = done.stdout.decode().strip()
    complaint = done.stderr.decode().strip().splitlines()
    errors = [line for line in complaint if line.startswith('{"error"')]
    return done.returncode, json.loads(out) if out else None, "".join(errors)


def _behind(tmp_path: Path, server: list[str], config: str = ALLOW_ALL) -> list[str]:
    (tmp_path / "c.yaml").write_text(config)
    return shim(server, "-c", str(tmp_path / "c.yaml"))


LIST = ("--method", "tools/list")
ECHO = ("--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hi")
SAMPLE_ECHO = ("--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hi")
ADD = ("--method", "tools/call", "--tool-name", "add", "--tool-arg", "a=2", "--tool-arg", "b=3")


@pytest.mark.parametrize(
    ("server", "era", "question", "code"),
    [
        pytest.param(EVERYTHING, "legacy", LIST, 0, marks=pytest.mark.long),
        pytest.param(EVERYTHING, "auto", ECHO, 0, marks=pytest.mark.long),
        (EVERYTHING, "modern", LIST, 1),
        (sample_server(), "legacy", SAMPLE_ECHO, 0),
        (sample_server(), "modern", SAMPLE_ECHO, 0),
        pytest.param(SDK, "auto", ADD, 0, marks=pytest.mark.long),
        pytest.param(SDK, "modern", LIST, 0, marks=pytest.mark.long),
    ],
    ids=[
        "everything legacy", "everything auto", "everything modern fails alike", "sample legacy",
        "sample modern", "sdk auto", "sdk modern",
    ],
)  # fmt: skip
def test_the_inspector_sees_no_difference(
    tmp_path: Path, server: list[str], era: str, question: tuple[str, ...], code: int
) -> None:
    direct = _inspect(tmp_path, server, era, *question)
    shimmed = _inspect(tmp_path, _behind(tmp_path, server), era, *question)

    assert shimmed == direct
    assert direct[0] == code


def test_the_inspector_lists_only_what_the_policy_shows(tmp_path: Path) -> None:
    config = ALLOW_ALL + 'servers:\n  sample: {expose: {allow: [echo, "get-*"]}}\n'
    code, answer, _ = _inspect(tmp_path, _behind(tmp_path, EVERYTHING, config), "legacy", *LIST)
    names = {tool["name"] for tool in answer["result"]["tools"]}

    assert code == 0
    assert "echo" in names
    assert all(name == "echo" or name.startswith("get-") for name in names)


def test_the_inspector_is_told_what_a_rule_denies(tmp_path: Path) -> None:
    config = ALLOW_ALL + "rules:\n  - {tool: echo, action: deny, reason: inner words}\n"
    code, answer, complaint = _inspect(
        tmp_path, _behind(tmp_path, EVERYTHING, config), "legacy", *ECHO
    )

    assert code != 0
    said = json.dumps(answer) + complaint
    assert "denied by a rule" in said
    assert "inner words" not in said


ROUNDED = 2**53


JAVASCRIPT = """
require('readline').createInterface({input: process.stdin}).on('line', (line) => {
  const {id, method} = JSON.parse(line);
  const result = method === 'tools/list' ? {tools: [{name: 'hidden'}]} : {};
  console.log(JSON.stringify({jsonrpc: '2.0', id, result}));
});
"""


@pytest.mark.requirement("S000-F-014")
def test_two_ids_that_are_one_to_javascript_do_not_get_past_the_gate(tmp_path: Path) -> None:
    """The list's answer comes under the id of the ping: a gate that trusted it would not screen it."""
    server = [str(BIN / "node"), "-e", JAVASCRIPT]
    asked = request(ROUNDED + 1, "tools/list")
    with StdioPeer(server) as bare:
        bare.send(asked)
        assert bare.receive_answer(ROUNDED)["result"] == {"tools": [{"name": "hidden"}]}
    env = {"THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    with StdioPeer(_behind(tmp_path, server), env=env) as gated:
        for body in (asked, request(ROUNDED, "ping")):
            gated.send(body)
            refused = gated.receive()
            assert (refused["id"], refused["error"]["data"]["check"]) == (None, "wrong_id")
