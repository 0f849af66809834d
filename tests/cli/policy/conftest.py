"""A folder with a config, for the ``policy`` commands."""

from pathlib import Path

import pytest

CONFIG = """\
schema: 1
default: deny
servers:
  bank: {expose: {block: [wipe]}}
  "*": {}
rules:
  - {tool: transfer, when: {amount: {gt: 100}}, action: approve, reason: large}
  - {tool: transfer, action: forward}
  - {resource: "file:///etc/*", action: deny}
  - {tool: ask, action: policy}
cedar: {policies: [p.cedar]}
limits:
  - {tool: transfer, budget: 5}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a config and its Cedar file."""
    (tmp_path / "thoughtgate.yaml").write_text(CONFIG)
    (tmp_path / "p.cedar").write_text(
        '@id("yes") permit(principal == Agent::"me", action, resource);'
    )
    return tmp_path
