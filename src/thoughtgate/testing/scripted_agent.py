"""A small MCP client on stdio that follows a script, for demos and tests.

As a program it reads a script, a JSON list of steps, and prints one JSON line for each
step with what came back:

    python -m thoughtgate.testing.scripted_agent SCRIPT -- SERVER COMMAND...

A step is ``{"method": ..., "params": {...}}``, with ``"notify": true`` for a notification,
or ``{"raw": TEXT}`` for a line that is sent as it is, with ``ID`` replaced by the id that the
response will have. Other members are printed unchanged. The agent also answers the server's
requests, from ``ANSWERS``.
"""

import argparse
import contextlib
import json
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from thoughtgate.errors import PeerGone
from thoughtgate.wire.revisions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LATEST,
    LATEST_LEGACY,
    META,
    VERSION_KEY,
)

Answerer: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]

CLIENT: Final = {"name": "scripted-agent", "version": "1.0"}
CAPABILITIES: Final[dict[str, Any]] = {"sampling": {}, "roots": {}, "elicitation": {}}
PATIENCE_S: Final = 30.0
"""How long a reply may take before the script fails."""

_STOP_S: Final = 10.0

ANSWERS: Final[dict[str, dict[str, Any]]] = {
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "as the script says"},
        "model": "script",
    },
    "roots/list": {"roots": [{"uri": "file:///tmp", "name": "tmp"}]},
    "elicitation/create": {"action": "decline"},
}
"""The agent's replies to requests of the server; anything else gets -32601."""


class ScriptedAgent:
    """One connection to a server process. Use it as a context manager."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        modern: bool = False,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.modern = modern
        self.notifications: list[dict[str, Any]] = []
        self._patience_s = patience_s
        self._answers: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._early: dict[Any, dict[str, Any]] = {}
        self._ended = False
        self._next_id = 0
        self._writing = threading.Lock()
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(self) -> dict[str, Any]:
        """Open the session as the revision requires: ``initialize``, or ``server/discover``."""
        if self.modern:
            return self.ask("server/discover")
        answer = self.ask(
            "initialize",
            {
                "protocolVersion": LATEST_LEGACY,
                "capabilities": CAPABILITIES,
                "clientInfo": CLIENT,
            },
        )
        self.notify("notifications/initialized")
        return answer

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return the whole response.

        Raises:
            PeerGone: the server is gone, or does not answer in time.
        """
        return self.wait_for(self.send(method, params))

    def call(self, tool: str, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
        """Call a tool and return the whole response."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments or {}})

    def send(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request without waiting, and return its id."""
        self._next_id += 1
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        if params is not None or self.modern:
            body["params"] = self._with_meta(params or {})
        self._write(body)
        return self._next_id

    def send_raw(self, text: str) -> int:
        """Send a line as it is, with ``ID`` replaced, and return the id of the request."""
        self._next_id += 1
        self._write_line(text.replace("ID", str(self._next_id)).encode())
        return self._next_id

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        self._write(body if params is None else {**body, "params": params})

    def wait_for(self, ident: int) -> dict[str, Any]:
        """Return the response to a request that was sent before.

        Raises:
            PeerGone: the server is gone, or does not answer in time.
        """
        while ident not in self._early:
            try:
                answer = None if self._ended else self._answers.get(timeout=self._patience_s)
            except queue.Empty:
                raise PeerGone(f"no answer within {self._patience_s:g} s") from None
            if answer is None:
                self._ended = True
                raise PeerGone("the server closed its output")
            # Responses may arrive in any order.
            self._early[answer.get("id")] = answer
        return self._early.pop(ident)

    def close(self) -> int:
        """Close the connection and return the server's exit code."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.closed:
            # The server may have exited first.
            with contextlib.suppress(BrokenPipeError):
                stdin.close()
        try:
            code = self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait(_STOP_S)
        self._reader.join(_STOP_S)
        if self._process.stdout is not None:
            self._process.stdout.close()
        return code

    def _with_meta(self, params: dict[str, Any]) -> dict[str, Any]:
        if not self.modern:
            return params
        meta = {VERSION_KEY: LATEST, CAPABILITIES_KEY: CAPABILITIES, CLIENT_KEY: CLIENT}
        return {**params, META: {**meta, **params.get(META, {})}}

    def _write(self, body: dict[str, Any]) -> None:
        self._write_line(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())

    def _write_line(self, line: bytes) -> None:
        stdin = self._process.stdin
        try:
            # The reading thread answers the server's requests at the same time.
            with self._writing:
                if stdin is not None:
                    stdin.write(line + b"\n")
                    stdin.flush()
        except (BrokenPipeError, ValueError):
            raise PeerGone("the server closed its input") from None

    def _read(self) -> None:
        for line in self._process.stdout or ():
            try:
                body = json.loads(line)
            except ValueError:
                continue
            if isinstance(body, dict):
                self._take(body)
        self._answers.put(None)

    def _take(self, body: dict[str, Any]) -> None:
        if "method" not in body:
            self._answers.put(body)
        elif "id" not in body:
            self.notifications.append(body)
        else:
            answer = ANSWERS.get(body["method"])
            refusal = {"error": {"code": -32601, "message": "not in the script"}}
            said = refusal if answer is None else {"result": answer}
            try:
                self._write({"jsonrpc": "2.0", "id": body["id"], **said})
            except PeerGone:
                return


def play(agent: ScriptedAgent, steps: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Carry out steps and yield each with its reply."""
    for step in steps:
        if step.get("notify"):
            agent.notify(step["method"], step.get("params"))
            yield {**step, "answer": None}
        elif "raw" in step:
            yield {**step, "answer": agent.wait_for(agent.send_raw(step["raw"]))}
        else:
            yield {**step, "answer": agent.ask(step["method"], step.get("params"))}


def main(argv: Sequence[str] | None = None) -> int:
    """Follow a script and print the replies."""
    words = list(sys.argv[1:] if argv is None else argv)
    # Parsed by hand: the server's command may contain a "--", which argparse would consume.
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser("scripted_agent", description=__doc__)
    parser.add_argument("--modern", action="store_true", help="use revision 2026-07-28")
    parser.add_argument("script", type=Path, help="JSON list of steps")
    options = parser.parse_args(words[:cut])
    command = words[cut + 1 :]
    if not command:
        parser.error("there is no server: put -- and its command at the end")
    steps = json.loads(options.script.read_text("utf-8"))
    with ScriptedAgent(command, modern=options.modern) as agent:
        try:
            agent.open()
            for played in play(agent, steps):
                print(json.dumps(played), flush=True)
        except PeerGone as gone:
            print(gone, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
