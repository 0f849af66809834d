"""Opening a shim that judges by itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.commands import sample_server, shim
from tests.support.frames import call
from tests.support.log_lines import verdicts

from thoughtgate.shim.standalone import govern_locally

CONFIG = """\
schema: 1
default: forward
servers:
  git: {command: x, timeout: 7s}
  web: {url: "https://example.com/mcp", auth: {type: bearer, token_env: WEB_TOKEN}}
approval:
  ops: {channel: slack, slack: {channel: "#ops", token_env: SLACK_TOKEN}}
  hook: {channel: webhook, webhook: {url: "https://example.com/h", secret_env: HOOK_SECRET}}
listen: {transport: http, auth: {type: bearer, token_env: AGENT_TOKEN}}
audit: {sign_key_env: SIGN_KEY}
"""
SECRETS = {"WEB_TOKEN", "SLACK_TOKEN", "HOOK_SECRET", "AGENT_TOKEN", "SIGN_KEY"}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    secrets = {name: f"a-long-enough-value-of-the-{name}" for name in SECRETS}
    return {**os.environ, "THOUGHTGATE_STATE_DIR": str(tmp_path / "state"), **secrets}


def test_the_setup_follows_the_servers_entry(tmp_path: Path, environ: dict[str, str]) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)
    config, state = str(tmp_path / "c.yaml"), str(tmp_path / "state")
    authority, setup, principal, withheld = govern_locally(
        "git", ("git-server",), environ, config=config, state_dir=state, profile="", audit=""
    )
    authority.finish("SUCCEEDED", 1.0)
    other, plain, _, _ = govern_locally(
        "other", (), environ, config=config, state_dir=state, profile="development", audit=""
    )
    other.finish("SUCCEEDED", 1.0)

    assert (setup.server, setup.timeout_s, setup.enforce, setup.max_held) == ("git", 7.0, True, 32)
    assert (plain.timeout_s, plain.enforce) == (600.0, False)
    assert set(withheld) == SECRETS
    assert principal


@pytest.mark.parametrize("form", ["human", "json"])
def test_a_shim_logs_in_the_form_that_the_config_names(
    tmp_path: Path, environ: dict[str, str], form: str
) -> None:
    (tmp_path / "c.yaml").write_text(
        f"schema: 1\nprofile: development\ndefault: deny\ntelemetry: {{log_format: {form}}}\n"
    )
    done = subprocess.run(
        shim(sample_server(), "-c", str(tmp_path / "c.yaml")),
        input=json.dumps(call(1, "echo", {"text": "x"})) + "\n",
        env=environ,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    said = [line["governance_decision"] for line in verdicts(done.stderr, "shim")]

    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
    assert ("thoughtgate: WOULD_BLOCK: 'echo'" in done.stderr) == (form == "human")
    assert said == (["WOULD_BLOCK"] if form == "json" else [])


def test_a_shim_that_logs_no_json_does_not_load_the_log() -> None:
    code = "import sys, thoughtgate.shim.standalone; print('thoughtgate.telemetry.logs' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )

    assert done.stdout == "False\n"
