"""Checks configs that people deploy with the command that they would use themselves."""

import json
import os
from pathlib import Path
from typing import Any, Final

from tests.support.warm_command import run_warm

from thoughtgate.config.json_schema import json_schema

SECRETS: Final = {"AGENT_TOKEN": "x" * 32, "SEARCH_TOKEN": "x", "AUDIT_KEY": "x" * 32}
KEY_FILE: Final = "/etc/thoughtgate/keys/session"

_SHARED: Final = ("keys", "listen.lame_duck", "audit.retain")
"""Keys of gates that share a store."""


def problems(text: str, folder: Path) -> list[str]:
    """Return what ``validate-config`` says against a config.

    Keys of gates that share a store count as soon as the settings have them.
    """
    keys = folder / "session-keys"
    keys.write_text("0" * 64 + "\n", "utf-8")
    keys.chmod(0o600)
    file = folder / "gate.yaml"
    file.write_text(text.replace(KEY_FILE, str(keys)), "utf-8")
    done = run_warm("validate-config", "--json", "-c", str(file), env={**os.environ, **SECRETS})
    found = {one["key"]: one["message"] for one in json.loads(done.stdout)["problems"]}
    assert (done.returncode == 0) == (not found), done.stderr
    for key in _awaited():
        found.pop(key, None)
    return [f"{key}: {message}" for key, message in found.items()]


def _awaited() -> set[str]:
    schema = json_schema()
    unknown = {key for key in _SHARED if not _is_known(schema, key)}
    # PostgreSQL comes with the keys that its gates need.
    return unknown | ({"store"} if "keys" in unknown else set())


def _is_known(schema: dict[str, Any], key: str) -> bool:
    section: dict[str, Any] = schema
    for name in key.split("."):
        if "$ref" in section:
            section = schema["$defs"][section["$ref"].rpartition("/")[2]]
        if name not in section["properties"]:
            return False
        section = section["properties"][name]
    return True
