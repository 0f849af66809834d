"""A real MCP server on stdio for demos and tests, which also misbehaves on request.

It needs only the standard library, and supports both eras: ``initialize`` up to 2025-11-25 and the
self-describing requests of 2026-07-28. Run it as ``python -m thoughtgate.testing.sample_server``;
``--log FILE`` writes every line that reached it to a file, so that a test can prove what a gate let
through.
"""

import argparse
import heapq
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from thoughtgate.testing import sample_tools as offer

LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN: Final = ("2026-07-28",)
SERVER: Final = {"name": "thoughtgate-sample", "version": "1.0"}

_META: Final = "_meta"
_SPEC: Final = "io.modelcontextprotocol/"
_PROGRESS_STEPS: Final = 4
_APPEND: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND
_LISTS: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
_CACHED: Final = (*_LISTS, "resources/read", "server/discover")


class Refused(Exception):  # noqa: N818 - the request is refused; nothing is wrong with the server
    """Answer the request with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


class Later(NamedTuple):
    """An action for a later time; actions are ordered by time, then by creation."""

    at: float
    order: int
    ident: Any
    """The request that it belongs to, so that a cancellation finds it."""
    act: Callable[[], None]


class SampleServer:
    """The state of one server process: notes, tools, and open requests."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.notes = offer.first_notes()
        self.tools = _chosen_tools(options)
        self._later: list[Later] = []
        self._order = 0
        self._asked: dict[str, Callable[[dict[str, Any]], None]] = {}
        self._listeners: dict[Any, dict[str, Any]] = {}
        self._log = os.open(options.log, _APPEND, 0o600) if options.log else None
        self._methods: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda _: {},
            "logging/setLevel": lambda _: {},
            "tools/list": lambda params: self._page("tools", self._entries(), params),
            "resources/list": lambda params: self._page(
                "resources", offer.resources(self.notes), params
            ),
            "resources/templates/list": lambda _: {"resourceTemplates": offer.TEMPLATES},
            "resources/read": self._read,
            "resources/subscribe": lambda _: {},
            "resources/unsubscribe": lambda _: {},
            "prompts/list": lambda params: self._page("prompts", offer.PROMPTS, params),
            "prompts/get": self._prompt,
            "completion/complete": lambda _: {"completion": {"values": sorted(self.notes)}},
        }

    # Lines in.

    def take_line(self, line: bytes) -> None:
        """Handle one line from the client."""
        self._note_line(line)
        if not line.strip():
            return
        try:
            body = json.loads(line)
        except ValueError:
            self._send({"id": None, "error": {"code": -32700, "message": "not JSON"}})
            return
        if not isinstance(body, dict):
            self._send({"id": None, "error": {"code": -32600, "message": "not an object"}})
        elif "method" not in body:
            self._take_answer(body)
        elif "id" not in body:
            self._take_notification(body)
        else:
            self._take_request(body)

    def _note_line(self, line: bytes) -> None:
        if self._log is not None:
            text = line.decode("utf-8", "backslashreplace")
            entry = json.dumps({"pid": os.getpid(), "line": text})
            os.write(self._log, entry.encode() + b"\n")

    def _take_answer(self, body: dict[str, Any]) -> None:
        carry_on = self._asked.pop(str(body.get("id")), None)
        if carry_on is not None:
            carry_on(body)

    def _take_notification(self, body: dict[str, Any]) -> None:
        if body["method"] != "notifications/cancelled":
            return
        ident = (body.get("params") or {}).get("requestId")
        self._later = [later for later in self._later if later.ident != ident]
        heapq.heapify(self._later)
        self._listeners.pop(ident, None)

    def _take_request(self, body: dict[str, Any]) -> None:
        ident, method = body["id"], body["method"]
        params = body.get("params") or {}
        try:
            self._check_revision(params)
            if method == "tools/call":
                self._call(ident, params)
            elif method == "subscriptions/listen":
                self._listen(ident, params)
            else:
                answer = self._methods.get(method, _unknown)
                self._reply(ident, answer(params), params, method)
        except Refused as refused:
            self._send({"id": ident, "error": refused.error})

    def _check_revision(self, params: dict[str, Any]) -> None:
        version = _revision(params)
        if version is not None and version not in (*MODERN, *LEGACY):
            facts = {"supported": [*MODERN, *LEGACY], "requested": version}
            raise Refused(-32022, "unsupported protocol version", facts)

    # The methods.

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        if self.options.era == "modern":
            raise Refused(-32601, "there is no such method")
        asked = params.get("protocolVersion")
        version = asked if asked in LEGACY else LEGACY[-1]
        return {
            "protocolVersion": version,
            "capabilities": _capabilities(),
            "serverInfo": SERVER,
            "instructions": "A sample server. Nothing it does is real.",
        }

    def _discover(self, _: dict[str, Any]) -> dict[str, Any]:
        if self.options.era == "legacy":
            raise Refused(-32601, "there is no such method")
        return {"supportedVersions": list(MODERN), "capabilities": _capabilities()}

    def _entries(self) -> list[dict[str, Any]]:
        said = self._said()
        return [tool.entry(name) | said.get(name, {}) for name, tool in self.tools.items()]

    def _said(self) -> dict[str, dict[str, Any]]:
        """Return the members of tools that the file of ``--said`` replaces; read again for each list."""
        path = Path(self.options.said)
        is_there = bool(self.options.said) and path.exists()
        told: dict[str, dict[str, Any]] = json.loads(path.read_text("utf-8")) if is_there else {}
        return told

    def _page(
        self, member: str, entries: list[dict[str, Any]], params: dict[str, Any]
    ) -> dict[str, Any]:
        size = self.options.page or len(entries) or 1
        start = int(params.get("cursor") or 0)
        result: dict[str, Any] = {member: entries[start : start + size]}
        if start + size < len(entries):
            result["nextCursor"] = str(start + size)
        return result

    def _read(self, params: dict[str, Any]) -> dict[str, Any]:
        uri = str(params.get("uri"))
        name = uri.removeprefix("note:///")
        if name == uri or name not in self.notes:
            raise Refused(-32602 if _revision(params) else -32002, "there is no such resource")
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": self.notes[name]}]}

    def _prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        if params.get("name") != "summarise":
            raise Refused(-32602, "there is no such prompt")
        note = (params.get("arguments") or {}).get("note", "welcome")
        text = f"Summarise the note {note!r}."
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    def _listen(self, ident: Any, params: dict[str, Any]) -> None:
        wanted = params.get("notifications") or {}
        self._listeners[ident] = wanted
        meta = {_META: {f"{_SPEC}subscriptionId": ident}}
        self._notify("notifications/subscriptions/acknowledged", {"notifications": wanted, **meta})

    # Tools.

    def _call(self, ident: Any, params: dict[str, Any]) -> None:
        name = str(params.get("name"))
        tool = self.tools.get(name)
        if tool is None:
            raise Refused(-32602, "there is no such tool")
        self._misbehave(name)
        if name in self.options.never_answer:
            return
        arguments = params.get("arguments") or {}
        if name == "slow":
            self._start_slow(ident, params, float(arguments.get("seconds", 0)))
        elif name in offer.NEEDS_CLIENT and tool.run is None:
            self._ask_client(ident, name, params)
        else:
            self._after(self.options.delay, ident, lambda: self._finish(ident, tool, params))

    def _misbehave(self, name: str) -> None:
        if name in self.options.crash_on:
            os._exit(70)
        if name in self.options.error_on:
            raise Refused(-32050, "this tool was told to answer with an error", {"tool": name})

    def _finish(self, ident: Any, tool: offer.Tool, params: dict[str, Any]) -> None:
        arguments = params.get("arguments") or {}
        try:
            text = self._grow(arguments) if tool.run is None else tool.run(arguments, self.notes)
            failed = False
        except (offer.ToolFailed, TypeError, ValueError) as error:
            text, failed = str(error), True
        self._reply(ident, _content(text, failed=failed), params)

    def _grow(self, arguments: dict[str, Any]) -> str:
        name = str(arguments.get("name", "extra"))
        self.tools[name] = offer.plain_tool(name)
        self._announce("tools")
        return f"now offering {name}"

    def _announce(self, what: str) -> None:
        method = f"notifications/{what}/list_changed"
        if self.options.era != "modern":
            self._notify(method)
        for ident, wanted in self._listeners.items():
            if wanted.get(f"{what}ListChanged"):
                self._notify(method, {_META: {f"{_SPEC}subscriptionId": ident}})

    def _start_slow(self, ident: Any, params: dict[str, Any], seconds: float) -> None:
        token = (params.get(_META) or {}).get("progressToken")
        for step in range(1, _PROGRESS_STEPS):
            if token is not None:
                facts = {"progressToken": token, "progress": step, "total": _PROGRESS_STEPS}
                self._after(
                    seconds * step / _PROGRESS_STEPS,
                    ident,
                    partial(self._notify, "notifications/progress", facts),
                )
        done = _content(f"slept {seconds} s")
        self._after(seconds, ident, lambda: self._reply(ident, done, params))

    def _ask_client(self, ident: Any, name: str, params: dict[str, Any]) -> None:
        method = offer.NEEDS_CLIENT[name]
        question = offer.question_for(name, params.get("arguments") or {})
        if _revision(params):
            answers = params.get("inputResponses") or {}
            if name in answers:
                self._reply(ident, _content(json.dumps(answers[name], sort_keys=True)), params)
            else:
                ask = {"resultType": "input_required"}
                wanted = {name: {"method": method, "params": question}}
                self._reply(ident, {**ask, "inputRequests": wanted}, params)
            return
        own = f"sample-{self._next()}"
        self._asked[own] = lambda body: self._pass_answer(ident, body, params)
        self._send({"id": own, "method": method, "params": question})

    def _pass_answer(self, ident: Any, body: dict[str, Any], params: dict[str, Any]) -> None:
        failed = "error" in body
        said = body.get("error") if failed else body.get("result")
        self._reply(ident, _content(json.dumps(said, sort_keys=True), failed=failed), params)

    # Lines out.

    def _reply(
        self, ident: Any, result: dict[str, Any], params: dict[str, Any], method: str = ""
    ) -> None:
        if method == "server/discover" or _revision(params):
            result = {"resultType": "complete", **result}
            if method in _CACHED:
                result |= {"ttlMs": 0, "cacheScope": "public"}
            result.setdefault(_META, {})[f"{_SPEC}serverInfo"] = SERVER
        if self.options.garbage:
            _write_out(b"this is not JSON-RPC\n")
        self._send({"id": ident, "result": result})

    def _notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self._send({"method": method, "params": params} if params else {"method": method})

    def _send(self, body: dict[str, Any]) -> None:
        text = json.dumps({"jsonrpc": "2.0", **body}, ensure_ascii=False, separators=(",", ":"))
        _write_out(text.encode() + b"\n")

    # Time.

    def _next(self) -> int:
        self._order += 1
        return self._order

    def _after(self, seconds: float, ident: Any, act: Callable[[], None]) -> None:
        if seconds <= 0:
            act()
            return
        heapq.heappush(self._later, Later(time.monotonic() + seconds, self._next(), ident, act))

    def run_due(self) -> float | None:
        """Run due actions and return the seconds until the next one, or None."""
        while self._later and self._later[0].at <= time.monotonic():
            heapq.heappop(self._later).act()
        if not self._later:
            return None
        return max(0.0, self._later[0].at - time.monotonic())


def _unknown(_: dict[str, Any]) -> dict[str, Any]:
    raise Refused(-32601, "there is no such method")


def _revision(params: dict[str, Any]) -> str | None:
    version = (params.get(_META) or {}).get(f"{_SPEC}protocolVersion")
    return version if isinstance(version, str) else None


def _capabilities() -> dict[str, Any]:
    changes = {"listChanged": True}
    return {
        "tools": changes,
        "resources": {"subscribe": True, **changes},
        "prompts": changes,
        "completions": {},
        "logging": {},
    }


def _content(text: str, *, failed: bool = False) -> dict[str, Any]:
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    return {**result, "isError": True} if failed else result


def _chosen_tools(options: argparse.Namespace) -> dict[str, offer.Tool]:
    names: list[str] = options.tools or list(offer.TOOLS)
    tools = {name: offer.TOOLS.get(name, offer.plain_tool(name)) for name in names}
    width = len(str(options.count))
    for number in range(1, options.count + 1):
        name = f"tool_{number:0{width}}"
        tools[name] = offer.plain_tool(name)
    return tools


def _write_out(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def parse_options(argv: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser("sample_server", description=__doc__)
    add = parser.add_argument
    add("--tools", type=_names, default=[], metavar="A,B", help="offer these; new names echo")
    add("--count", type=int, default=0, metavar="N", help="offer N more tools with numbered names")
    add("--said", default="", metavar="FILE", help="JSON: other members of tools, by name")
    add("--page", type=int, default=0, metavar="N", help="entries per page of a list")
    add("--era", choices=("both", "legacy", "modern"), default="both", help="supported revisions")
    add("--crash-on", type=_names, default=[], metavar="T", help="die when T is called")
    add("--error-on", type=_names, default=[], metavar="T", help="answer T with an error")
    add("--never-answer", type=_names, default=[], metavar="T", help="never answer calls of T")
    add("--garbage", action="store_true", help="print lines that are not JSON-RPC between answers")
    add("--ignore-eof", action="store_true", help="keep running when standard input ends")
    add("--ignore-sigterm", action="store_true", help="do not stop on SIGTERM")
    add("--spawn-grandchild", action="store_true", help="start a process that outlives this one")
    add("--stderr", default="", metavar="TEXT", help="print this on standard error first")
    add("--start-delay", type=float, default=0.0, metavar="S", help="wait before reading")
    add("--delay", type=float, default=0.0, metavar="S", help="wait before each tool's answer")
    add("--exit-code", type=int, default=0, metavar="N", help="exit with N at the end of input")
    add("--log", default="", metavar="FILE", help="append every line received, as JSON")
    return parser.parse_args(argv)


def _prepare(options: argparse.Namespace) -> None:
    if options.ignore_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.spawn_grandchild:
        # Inherits the pipes on purpose, as the helper process of a careless server would.
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    if options.stderr:
        print(options.stderr, file=sys.stderr, flush=True)
    if options.start_delay:
        time.sleep(options.start_delay)
    if options.garbage:
        _write_out(b"Welcome to the sample server!\n\x1b[32mready\x1b[0m\n")


def serve(options: argparse.Namespace) -> None:
    """Serve standard input and output until the input ends."""
    server = SampleServer(options)
    held = b""
    while True:
        ready, _, _ = select.select([0], [], [], server.run_due())
        if not ready:
            continue
        chunk = os.read(0, 65536)
        if not chunk:
            break
        # Only joined: splitting a long line again with each of its chunks would be quadratic.
        if b"\n" not in chunk:
            held += chunk
            continue
        *lines, held = (held + chunk).split(b"\n")
        for line in lines:
            server.take_line(line)
    while options.ignore_eof:
        time.sleep(3600)
    while (pause := server.run_due()) is not None:
        time.sleep(pause)


def main() -> int:
    """Run the server from the command line."""
    options = parse_options(sys.argv[1:])
    _prepare(options)
    try:
        serve(options)
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 130
    return int(options.exit_code)


if __name__ == "__main__":
    sys.exit(main())
