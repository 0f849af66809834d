"""The interactive tutorial: the reader drives a scripted agent through the real gate, step by step.

It follows ``docs/getting-started.md``. The agent is this process: it starts the sample server behind
``thoughtgate shim``, as an agent does, and sends one message per step. The held call is answered
here, or with ``thoughtgate approvals`` in another terminal.
"""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from thoughtgate.cli.demonstration.demo_run import PROGRAM, play_environment, read_lines
from thoughtgate.errors import PeerGone, UsageError, visible
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.approvals.terminal_prompt import Asker
from thoughtgate.gate.clock import monotonic
from thoughtgate.policy.starter import STARTER_TEXT

SERVER: Final = "notes"

RULE: Final = """\
  - {id: no-private-notes, tool: read_note, when: {name: {glob: "private*"}}, action: deny,
     reason: private notes are none of the agent's business}
"""

ANSWER_S: Final = 20.0
"""How long the server or the gate may take for an answer that needs no person."""
RELOAD_S: Final = 15.0
"""How long the gate may take to notice a changed config."""
NOTICED_S: Final = 1.2
"""Pause after a change of the config: a gate looks for changes at most once per second."""


class PlayedAgent:
    """An MCP client that sends one request at a time."""

    def __init__(self, command: list[str], environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self._process.stdin is None:
            raise PeerGone("the gate has no input")
        self._input = self._process.stdin
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=read_lines, args=(self._process.stdout, self._lines)).start()
        self._sent = 0

    def start(self) -> None:
        """Open the session."""
        said = {"name": "thoughtgate-demo", "version": "1"}
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": said}
        self.send("initialize", params)
        self.wait()
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, **arguments: str) -> None:
        """Call a tool; ``wait`` returns the answer."""
        self.send("tools/call", {"name": tool, "arguments": arguments})

    def send(self, method: str, params: dict[str, Any]) -> None:
        """Send a request."""
        self._sent += 1
        self._write({"jsonrpc": "2.0", "id": self._sent, "method": method, "params": params})

    def answer(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the answer to the last request; None if there is none within the time."""
        deadline = monotonic() + timeout_s
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - monotonic()))
            except queue.Empty:
                return None
            if line is None:
                raise PeerGone("the gate stopped before the tutorial was finished")
            body: dict[str, Any] = json.loads(line)
            # Notifications, and answers to earlier requests, are skipped.
            if body.get("id") == self._sent and "method" not in body:
                return body

    def wait(self) -> dict[str, Any]:
        """Return the answer to the last request, which nobody has to approve."""
        answer = self.answer(ANSWER_S)
        if answer is None:
            raise PeerGone("the gate did not answer; the messages above say why")
        return answer

    def close(self) -> None:
        """End the session as an agent does: by closing the server's input."""
        with contextlib.suppress(OSError):
            self._input.close()
        try:
            self._process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _write(self, body: dict[str, Any]) -> None:
        self._input.write(json.dumps(body) + "\n")
        self._input.flush()


class Play:
    """One run of the tutorial."""

    def __init__(
        self, folder: Path, environ: Mapping[str, str], say: Callable[[str], None]
    ) -> None:
        self._folder = folder.absolute()
        self._config = self._folder / "thoughtgate.yaml"
        self._environ = play_environment(self._folder, environ)
        self._state = self._environ["THOUGHTGATE_STATE_DIR"]
        self._say = say

    def run(self) -> None:
        """Go through all steps.

        Raises:
            UsageError: there is no terminal to read the reader's keys from.
            PeerGone: the gate stopped or did not answer.
        """
        if not sys.stdin.isatty() or not sys.stdout.isatty():
            raise UsageError("--play needs a terminal; without one, run: thoughtgate demo")
        self._config.write_text(STARTER_TEXT, "utf-8")
        self._config.chmod(0o600)
        self._say(
            "You drive an agent that has one MCP server with notes. Everything else is real.\n"
            f"Config:  {self._config}  (the starter policy)\n"
            "To look on from another terminal, paste this there first:\n"
            f"  export THOUGHTGATE_STATE_DIR={self._state}"
        )
        server = [sys.executable, "-m", "thoughtgate.testing.sample_server"]
        gate = [*PROGRAM, "shim", "--server-id", SERVER, "-c", str(self._config)]
        gate += ["--state-dir", self._state, "--", *server]
        agent = PlayedAgent(gate, self._environ)
        try:
            agent.start()
            self._forwarded(agent)
            self._held(agent)
            self._denied(agent)
        finally:
            agent.close()
        self._record()

    def _forwarded(self, agent: PlayedAgent) -> None:
        self._step(1, "The agent asks which tools there are, and reads a note.")
        agent.send("tools/list", {})
        tools = ", ".join(tool["name"] for tool in agent.wait()["result"]["tools"])
        self._say(f"tools:   {tools}")
        agent.call("read_note", name="welcome")
        self._say(f"answer:  {_text(agent.wait())}")
        self._say("No rule names this call, so the gate forwarded and recorded it.")

    def _held(self, agent: PlayedAgent) -> None:
        self._step(2, "The agent wants to delete a note. The starter policy asks you first.")
        agent.call("delete_note", name="draft")
        self._say(
            "Answer below, or in the other terminal with: thoughtgate approvals list, then\n"
            "thoughtgate approvals approve ID, or thoughtgate approvals deny ID."
        )
        found: list[dict[str, Any]] = []

        def is_answered() -> bool:
            answer = agent.answer(0.0)
            found.extend([answer] if answer is not None else [])
            return bool(found)

        with contextlib.closing(open_store(self._state)) as store:
            Asker(store, sys.stdin.fileno(), sys.stdout.fileno()).run(is_answered)
        if not found:
            raise PeerGone("the terminal was closed")
        self._say(f"answer:  {_text(found[0])}")
        self._say("An approval is valid for this exact call, once.")

    def _denied(self, agent: PlayedAgent) -> None:
        self._step(3, f"Your first rule, at the top of rules: in {self._config.name}.", RULE)
        agent.call("write_note", name="private-diary", text="dear diary")
        agent.wait()
        agent.call("read_note", name="private-diary")
        self._say(f"before:  {_text(agent.wait())}")
        changed = STARTER_TEXT.replace("\nrules:\n", f"\nrules:\n{RULE}\n", 1)
        self._config.write_text(changed, "utf-8")
        deadline = monotonic() + RELOAD_S
        answer: dict[str, Any] = {}
        # Until the gate notices the changed file, it still forwards the call.
        while "error" not in answer and monotonic() < deadline:
            time.sleep(NOTICED_S)
            agent.call("read_note", name="private-diary")
            answer = agent.wait()
        self._say(f"after:   {_text(answer)}")
        self._say("The gate noticed the change by itself. A looser rule would have to be accepted.")

    def _record(self) -> None:
        self._step(4, "Everything is on record, in a chain that shows every later change.")
        self._run("audit", "query", "-c", str(self._config))
        self._run("audit", "verify", str(Path(self._state, "audit.jsonl")))
        self._say(
            "Next: put the gate in front of your own agent: thoughtgate wrap -- claude\n"
            f"Or read on in docs/getting-started.md. You can delete {self._folder}."
        )

    def _run(self, *arguments: str) -> None:
        self._say(f"$ thoughtgate {' '.join(arguments)}")
        subprocess.run([*PROGRAM, *arguments], env=self._environ, check=False, timeout=ANSWER_S)

    def _step(self, number: int, title: str, more: str = "") -> None:
        self._say(f"\n{number} of 4. {title}")
        if more:
            self._say(more.rstrip("\n"))
        sys.stdout.write("Press Enter to continue. ")
        sys.stdout.flush()
        if not os.read(sys.stdin.fileno(), 4096):
            raise PeerGone("the terminal was closed")


def _text(answer: dict[str, Any]) -> str:
    error = answer.get("error")
    if error is not None:
        return f"error {error['code']}: {visible(error['message'])} ({error['data']['kind']})"
    return visible(str(answer["result"]["content"][0]["text"]))
