"""A rule on a URI holds for every spelling of it, through the real shim."""

from pathlib import Path

import pytest
from tests.support.frames import initialize, request
from tests.support.shim_peer import ShimPeer

CONFIG = """
schema: 1
default: forward
rules:
  - {resource: "file:///etc/*", action: deny}
"""


@pytest.mark.parametrize(
    "uri", ["file:///etc/passwd", "file:///tmp/../etc/passwd", "file:///tmp/%2e%2e/etc/passwd"]
)
def test_a_denied_resource_is_denied_in_every_spelling(tmp_path: Path, uri: str) -> None:
    with ShimPeer(tmp_path, CONFIG) as peer:
        peer.send(initialize(1))
        peer.receive_answer(1)
        peer.send(request(2, "resources/read", {"uri": uri}))

        assert peer.receive_answer(2)["error"]["data"]["kind"] == "governance_denied"
        assert not any("resources/read" in line for line in peer.reached_lines())
