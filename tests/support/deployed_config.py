"""Checks configs that people deploy with the command that they would use themselves."""

import json
import os
from pathlib import Path
from typing import Final

from tests.support.warm_command import run_warm

SECRETS: Final = {"AGENT_TOKEN": "x" * 32, "SEARCH_TOKEN": "x", "AUDIT_KEY": "x" * 32}
KEY_FILE: Final = "/etc/thoughtgate/keys/session"


def problems(text: str, folder: Path) -> list[str]:
    """Return what ``validate-config`` says against a config."""
    keys = folder / "session-keys"
    keys.write_text("0" * 64 + "\n", "utf-8")
    keys.chmod(0o600)
    file = folder / "gate.yaml"
    file.write_text(text.replace(KEY_FILE, str(keys)), "utf-8")
    done = run_warm("validate-config", "--json", "-c", str(file), env={**os.environ, **SECRETS})
    found = {one["key"]: one["message"] for one in json.loads(done.stdout)["problems"]}
    assert (done.returncode == 0) == (not found), done.stderr
    return [f"{key}: {message}" for key, message in found.items()]
