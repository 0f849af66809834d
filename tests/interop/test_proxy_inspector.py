"""The Inspector's command line through the proxy, over HTTP and stdio, in every era.

It is installed into ``.node`` by ``make node``; without it these tests are skipped.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.commands import with_state
from tests.support.proxy_process import ProxyProcess, environment, proxy_command, sample_server

ROOT: Final = Path(__file__).parent.parent.parent
INSPECTOR: Final = ROOT / ".node" / "node_modules" / ".bin" / "mcp-inspector"
ERAS: Final = (
    pytest.param("legacy", marks=pytest.mark.long),
    "auto",
    pytest.param("modern", marks=pytest.mark.long),
)

pytestmark = pytest.mark.skipif(
    not INSPECTOR.exists(), reason="the Inspector is not installed: run make node"
)


def _config(directory: Path) -> str:
    command = sample_server()
    path = directory / "thoughtgate.yaml"
    path.write_text(
        "schema: 1\ndefault: forward\nservers:\n"
        f"  kid: {{command: '{command[0]}', args: {json.dumps(command[1:])}}}\n"
        "rules:\n  - {tool: 'delete_*', action: deny}\n"
    )
    return str(path)


def _inspect(directory: Path, *words: str) -> tuple[int, Any]:
    extra = {
        "MCP_CATALOG_PATH": str(directory / "catalog.json"),
        "PATH": f"{INSPECTOR.parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        [str(INSPECTOR), "--cli", "--connect-timeout", "60000", "--format", "json", "-q", *words],
        capture_output=True,
        env=environment(directory, extra),
        cwd=directory,
        check=False,
        timeout=110,
    )
    out = done.stdout.decode().strip()
    return done.returncode, json.loads(out) if out else None


CALL: Final = ("--method", "tools/call", "--tool-name")


@pytest.mark.requirement("FR1")
@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_works_over_http(tmp_path: Path, era: str) -> None:
    arguments = ["-c", _config(tmp_path), "--listen", "127.0.0.1:0"]
    with ProxyProcess(tmp_path, arguments) as proxy:
        target = (proxy.url, "--transport", "http", "--protocol-era", era)
        code, answer = _inspect(tmp_path, *target, *CALL, "echo", "--tool-arg", "text=hi")
        assert code == 0
        assert "hi" in json.dumps(answer)
        refused, _ = _inspect(tmp_path, *target, *CALL, "delete_note", "--tool-arg", "name=x")
        assert refused != 0


@pytest.mark.requirement("FR1")
@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_works_over_stdio(tmp_path: Path, era: str) -> None:
    command = with_state(proxy_command("-c", _config(tmp_path), "--stdio"))
    question = ("--protocol-era", era, *CALL, "echo", "--tool-arg", "text=hi", "--", *command)
    code, answer = _inspect(tmp_path, *question)
    assert code == 0
    assert "hi" in json.dumps(answer)
