"""A rule may want a server's answer without its secrets; what the server got stays whole."""

from pathlib import Path

import pytest
from tests.support.frames import call, initialize
from tests.support.http_gate import Gate, config_for
from tests.support.http_upstream import HttpUpstream, Received, Reply, event, text_result
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


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "stream"])
def test_over_http_answers_are_masked_however_they_come(tmp_path: Path, streamed: bool) -> None:
    def answer(received: Received) -> Reply:
        if received.tool != "echo":
            return Reply(202)
        if not streamed:
            return text_result(received, f"use {TOKEN} now")
        content = {"content": [{"type": "text", "text": f"use {TOKEN} now"}]}
        return Reply(parts=[event({"jsonrpc": "2.0", "id": 1, "result": content})])

    rules = CONFIG.partition("rules:")[2]
    with (
        HttpUpstream(answer) as upstream,
        Gate(tmp_path, config_for(upstream.url, f"rules:{rules}")) as gate,
    ):
        said = gate.call("echo", {"text": TOKEN})

    assert TOKEN.encode() not in said.body
    assert b"use " in said.body
    assert any(TOKEN.encode() in each.body for each in upstream.received)
