"""The settings page."""

from pathlib import Path

from tests.support.consoles import LocalConsole

CONFIG = """\
schema: 1
default: forward
servers:
  files: {command: python, args: [--token, ghp_0123456789abcdef0123456789abcdef0123], env: {NAME: hidden-value}}
"""


def test_each_value_has_its_source_and_no_secret_is_shown(tmp_path: Path) -> None:
    with LocalConsole(tmp_path, CONFIG, THOUGHTGATE_APPROVAL_TIMEOUT_SECS="40") as console:
        text = console.client().get("/settings").text

    assert "console.yaml:4" in text
    assert "THOUGHTGATE_APPROVAL_TIMEOUT_SECS" in text
    assert "40s" in text
    assert "ghp_" not in text
    assert "hidden-value" not in text


def test_defaults_can_be_left_out(tmp_path: Path) -> None:
    with LocalConsole(tmp_path, CONFIG) as console:
        text = console.client().get("/settings?show=given").text

    assert "servers.files.command" in text
    assert "audit.rotate.size" not in text
