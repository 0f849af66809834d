"""Attacks that once worked, played through the commands as a user runs them."""

import json
import os
import subprocess
import time
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.commands import sample_server, shim, thoughtgate
from tests.support.frames import call, request
from tests.support.hub import odd, serving
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for

from thoughtgate.core.approval import PENDING, Vote
from thoughtgate.core.envelope import Envelope, Run, seal
from thoughtgate.core.grant import Remember
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.record.evidence import record_opened

TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


class Place:
    """A config file with its state directory beside it."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "thoughtgate.yaml"
        self.record = folder / "state" / "audit.jsonl"

    def start(self, text: str) -> StdioPeer:
        """Start a shim."""
        self.config.write_text(text, "utf-8")
        return StdioPeer(shim(sample_server(), "-c", str(self.config)))

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command that uses the same state directory."""
        env = {**os.environ, "THOUGHTGATE_STATE_DIR": str(self.record.parent)}
        return subprocess.run(
            thoughtgate(*words), env=env, capture_output=True, text=True, timeout=60, check=False
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("kept", [-2, 0])
def test_a_record_without_its_end_is_not_sound(place: Place, kept: int) -> None:
    with place.start("schema: 1\ndefault: forward\n") as peer:
        assert "result" in peer.ask(call(1, "echo", {"text": "x"}))
        assert peer.finish() == 0
    assert place.run("audit", "verify", str(place.record)).returncode == 0
    lines = place.record.read_text("utf-8").splitlines(keepends=True)
    place.record.write_text("".join(lines[:kept]), "utf-8")
    assert place.run("audit", "verify", str(place.record)).returncode == 1


@pytest.mark.promise("cut-tail-is-found")
def test_a_record_that_pretends_to_begin_with_a_later_file_is_not_sound(place: Place) -> None:
    with place.start("schema: 1\ndefault: forward\n") as peer:
        assert "result" in peer.ask(call(1, "echo", {"text": "x"}))
        assert peer.finish() == 0
    chain = "ab" * 32
    opened = record_opened(1.0, number=99, previous_file="audit.jsonl.000098", previous_chain=chain)
    forged, _ = seal(Envelope(Run("forged")).wrap(opened), chain)
    place.record.write_bytes(forged)
    assert place.run("audit", "verify", str(place.record)).returncode == 1


def test_secrets_in_names_and_uris_are_not_on_record(place: Place) -> None:
    with place.start("schema: 1\ndefault: forward\n") as peer:
        peer.ask(call(1, TOKEN, {}))
        peer.ask(request(2, "resources/read", {"uri": f"note:///{TOKEN}"}))
        peer.finish()
    assert TOKEN not in place.record.read_text("utf-8")


def test_a_completion_that_names_two_things_is_refused(place: Place) -> None:
    rule = '{resource: "secret://*", action: deny}'
    with place.start(f"schema: 1\ndefault: forward\nrules: [{rule}]\n") as peer:
        ref = {"type": "ref/prompt", "name": "p", "uri": "secret://k"}
        params = {"ref": ref, "argument": {"name": "a", "value": "b"}}
        answer = peer.ask(request(1, "completion/complete", params))
        assert answer["error"]["data"]["kind"] == "invalid_params"


def test_lint_names_a_path_rule_that_misses_bare_names(place: Place) -> None:
    rule = {"tool": "read", "when": {"path": {"glob": "*/.*"}}, "action": "deny"}
    text = json.dumps({"schema": 1, "default": "forward", "rules": [rule]})
    place.config.write_text(text, "utf-8")
    done = place.run("policy", "lint", "-c", str(place.config))
    assert "misses '.x', a path without a slash" in done.stdout + done.stderr


def _approve(state: Path, remember: Remember | None = None) -> None:
    """Wait for a question and approve it."""
    with closing(open_store(str(state))) as store:
        (asked,) = wait_for(lambda: store.listed(PENDING), what="the question")
        at = time.time()
        store.vote(
            asked.id, [Vote("terminal:ann", True, at, "")], at, remember=remember, grant_id="g"
        )


def _is_asked_after_a_change(peer: StdioPeer, state: Path, tool: str) -> None:
    peer.ask(request(1, "tools/list"))
    peer.send(call(2, tool))
    _approve(state, Remember("until", "tool", 3600.0))
    assert "result" in peer.receive_answer(2)
    peer.send(call(3, tool))
    _approve(state)  # fails after its deadline if nobody is asked
    assert "result" in peer.receive_answer(3)


@pytest.mark.promise("grants-end-with-the-definition")
def test_a_grant_does_not_apply_while_a_changed_list_is_withheld(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.config.write_text("schema: 1\ndefault: approve\n", "utf-8")
    server = odd("changing")
    with StdioPeer(shim([server["command"], *server["args"]], "-c", str(place.config))) as peer:
        _is_asked_after_a_change(peer, place.record.parent, "work")
        peer.finish()


@pytest.mark.promise("grants-end-with-the-definition")
def test_serve_applies_no_grant_while_a_changed_list_is_withheld(tmp_path: Path) -> None:
    rules = [{"tool": "*", "server": "odd", "action": "approve"}]
    with serving(tmp_path, {"odd": odd("changing")}, rules=rules) as hub:
        hub.open()
        _is_asked_after_a_change(hub, hub.state, "odd.work")
