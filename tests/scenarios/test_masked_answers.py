"""A rule may want a server's answer without its secrets; what the server got stays whole."""

from pathlib import Path

from tests.support.frames import call, initialize
from tests.support.shim_peer import ShimPeer

CONFIG = """
schema: 1
default: forward
rules:
  - {tool: echo, action: forward, redact: true}
"""
TOKEN = "ghp_" + "a1B2" * 10


def test_secrets_are_masked_in_the_answer_but_not_in_what_is_forwarded(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, CONFIG) as peer:
        peer.send(initialize(1))
        peer.receive_answer(1)
        peer.send(call(2, "echo", {"text": f"use {TOKEN} now"}))
        answer = peer.receive_answer(2)

        said = answer["result"]["content"][0]["text"]
        assert TOKEN not in said
        assert said.startswith("use ")
        assert any(TOKEN in line for line in peer.reached_lines())


def test_other_tools_answer_as_they_are(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, CONFIG.replace("echo", "add")) as peer:
        peer.send(initialize(1))
        peer.receive_answer(1)
        peer.send(call(2, "echo", {"text": TOKEN}))

        assert peer.receive_answer(2)["result"]["content"][0]["text"] == TOKEN
