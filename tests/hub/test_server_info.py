"""Telling how servers are, without telling their secrets."""

import json
from pathlib import Path

from tests.support.hub import sample, serving


def test_a_description_holds_no_command_environment_or_token(tmp_path: Path) -> None:
    entry = sample("--tools", "echo", env={"API_KEY": "sk-secret-value-1234567890"}, name="One")
    with serving(tmp_path, {"one": entry}) as hub:
        result = hub.open()
        hub.names()
        told = hub.server("one")

    assert told["name"] == "One"
    assert told["kind"] == "stdio"
    assert "secret" not in json.dumps(told)
    assert "sample_server" not in json.dumps(told)
    assert "one (One)" in result["instructions"]


def test_the_servers_own_instructions_are_passed_on_once_known(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--era", "legacy", eager=True)}) as hub:
        hub.text(1, "thoughtgate.servers_start", {"server_id": "one"})
        result = hub.open()

    assert "Nothing it does is real" in result["instructions"]
