"""Servers that attack, against the starter policy, the example with pins, and the pack.

What happens to each attack is a table in docs/concepts/contents.md, which is read here.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support.commands import ROOT, shim
from tests.support.frames import call, initialize, notification, request
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for

from thoughtgate.cli.policy.packs import compose_config
from thoughtgate.policy.starter import STARTER_TEXT

SERVER: Final = Path(__file__).with_name("malicious_server.py")
SECRET: Final = "glpat-" + "x8Kd02LmQz7RtYw4VbN1"
PINNED: Final = (ROOT / "deploy" / "examples" / "contents.yaml").read_text("utf-8")
CONFIGS: Final = {
    "starter policy": STARTER_TEXT,
    "`contents.yaml`": PINNED,
    "pack `lethal-trifecta`": compose_config(("lethal-trifecta",)),
}
ATTACKS: Final = {
    "poisoned description": "poisoned",
    "rug pull": "rug-pull",
    "shadowing": "shadowing",
    "injection in a result": "injection",
    "exfiltration by a link": "link",
    "secret in a result": "secret-in-result",
    "secret in arguments": "secret-in-arguments",
    "sampling": "sampling",
    "elicitation": "elicitation",
}


def _table() -> dict[tuple[str, str], str]:
    """Return what the page says about each attack and config: the first word of the cell."""
    page = (ROOT / "docs" / "concepts" / "contents.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    head = next(row for row in rows if row.startswith("| attack |"))
    configs = [cell.strip() for cell in head.strip("|").split("|")][1:]
    told = {}
    for row in rows[rows.index(head) + 2 :][: len(ATTACKS)]:
        name, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        for config, cell in zip(configs, cells, strict=True):
            told[name, config] = re.split(r"[ ,;:]", cell)[0]
    return told


class _Attacked:
    """An agent before a gate before a malicious server."""

    def __init__(self, peer: StdioPeer, folder: Path) -> None:
        self.peer = peer
        self.folder = folder
        self.number = 0
        peer.ask(initialize())
        peer.send(notification("notifications/initialized"))

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.number += 1
        answer: dict[str, Any] = self.peer.ask(request(self.number, method, params))
        return answer

    def names(self) -> list[str]:
        return [tool["name"] for tool in self.ask("tools/list")["result"]["tools"]]

    def call(self) -> None:
        """Call the tool, without waiting for the answer."""
        self.number += 1
        note = {"sidenote": SECRET if self.folder.name == "secret-in-arguments" else "none"}
        self.peer.send(call(self.number, "add", note))

    def answer(self) -> tuple[dict[str, Any], list[str]]:
        """Return the answer to the call, with the methods of what came before it."""
        before = []
        while "method" in (message := self.peer.receive()):
            before.append(message["method"])
        return message, before

    def recorded(self, kind: str) -> bool:
        file = self.folder / "audit.jsonl"
        return file.exists() and f'"type":"{kind}"' in file.read_text("utf-8").replace(": ", ":")


def _definition(attacked: _Attacked, attack: str) -> str:
    assert attacked.names() in ([], ["add"])
    if attack == "rug-pull":
        (attacked.folder / "changed").touch()
    if "add" not in attacked.names():
        attacked.call()
        assert attacked.answer()[0]["error"]["data"]["kind"] == "definition_held"
        return "held"
    wait_for(lambda: attacked.recorded("definition_changed"), what="the event in the record")
    return "named"


def _content(attacked: _Attacked, told: str) -> str:
    attacked.call()
    if told == "held":
        wait_for(lambda: attacked.recorded("approval_requested"), what="the question to people")
        return told
    answer, before = attacked.answer()
    if "error" in answer:
        assert answer["error"]["data"]["kind"] == "content_blocked"
        assert not (attacked.folder / "calls").exists()
        return "blocked"
    if "[removed: " in json.dumps(answer):
        return "redacted"
    is_asked = attacked.folder.name in {"sampling", "elicitation"}
    if is_asked and not before:
        return "refused"
    wait_for(lambda: attacked.recorded("content_found"), what="the finding in the record")
    return "named"


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_as_the_table_says(tmp_path: Path, name: str, config: str) -> None:
    attack = ATTACKS[name]
    folder = tmp_path / attack
    folder.mkdir()
    policy = folder / "policy.yaml"
    policy.write_text(CONFIGS[config], "utf-8")
    server = [sys.executable, str(SERVER), attack, str(folder / "changed")]
    flags = ("-c", str(policy), "--audit", str(folder / "audit.jsonl"))
    with StdioPeer(shim(server, *flags)) as peer:
        attacked = _Attacked(peer, folder)
        told = _table()[name, config]
        about = attack in {"poisoned", "rug-pull", "shadowing"}
        ended = _definition(attacked, attack) if about else _content(attacked, told)
    assert ended == told
