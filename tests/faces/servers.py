"""One real MCP server, on stdio or HTTP, that does what the arguments of a call tell it.

``python servers.py --log FILE`` serves standard input and output; with ``--http`` it listens
on a free port of the loopback and prints the port. Every message that reaches it is appended
to the log. It uses the standard library only, so no code under test takes part.

The argument ``do`` of any tool says what the tool does; see ``Work``.
"""

import argparse
import base64
import contextlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN: Final = "2026-07-28"
SPEC: Final = "io.modelcontextprotocol/"
PATIENCE_S: Final = 30.0
FLOOD: Final = 2000
"""Messages that a flooding tool sends before it answers."""

TOOLS: Final = (
    "echo", "extra", "denied", "scoped", "hidden_tool", "unmatched", "limited", "budgeted", "repeated",
    "breaking", "asked", "asked_briefly", "asked_lenient", "masked", "cedar_yes", "cedar_no",
    "cedar_error", "cedar_asks", "cedar_edited", "yaml_edited", "measured", "regional",
    "destructive",
)  # fmt: skip
RESOURCES: Final = ("face:///open", "face:///closed", "face:///hidden")
PROMPTS: Final = ("greet", "shut", "hidden_prompt")

Say = Callable[[dict[str, Any]], None]
Body = dict[str, Any]


class Log:
    """Appends what arrives to a file that the test reads."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, body: Any, **more: Any) -> None:
        """Append one message."""
        line = json.dumps({"body": body, "pid": os.getpid(), **more}) + "\n"
        os.write(self._file, line.encode())


class Client:
    """What the server knows of one connection or session."""

    def __init__(self) -> None:
        self.unasked: Say = lambda _: None
        """Sends what belongs to no request."""
        self.end_stream: Callable[[], None] = lambda: None
        """Ends the stream on which the server may speak unasked."""
        self.listens: dict[Any, tuple[dict[str, Any], Say]] = {}


class Server:
    """The state that all connections share."""

    def __init__(
        self, log: Log, *, legacy: bool = False, unlisted: bool = False, discover_at: str = ""
    ) -> None:
        self.log = log
        self._discover_at = discover_at
        self._legacy = legacy
        self._unlisted = unlisted
        self.tools = list(TOOLS)
        self._asked: dict[str, tuple[threading.Event, list[Body]]] = {}
        self._cancelled: set[Any] = set()
        self._count = 0
        self._lock = threading.Lock()

    # Messages in.

    def note(self, body: Body) -> None:
        """Take a notification or a response."""
        if "method" not in body:
            waiting = self._asked.get(str(body.get("id")))
            if waiting is not None:
                waiting[1].append(body)
                waiting[0].set()
        elif body["method"] == "notifications/cancelled":
            self._cancelled.add((body.get("params") or {}).get("requestId"))

    def answer(
        self, body: Body, client: Client, say: Say, is_gone: Callable[[], bool] = lambda: False
    ) -> None:
        """Take a request; everything about it, its response included, goes to ``say``."""
        params = body.get("params") or {}
        method = body["method"]
        if method == "tools/call":
            Work(self, client, say, body, is_gone).run()
            return
        if method == "subscriptions/listen":
            self._listen(body["id"], params, client, say)
            return
        is_late = method == "server/discover" and bool(self._discover_at)
        end = time.monotonic() + PATIENCE_S
        while is_late and not Path(self._discover_at).exists() and time.monotonic() < end:
            time.sleep(0.01)
        known: dict[str, Callable[[Body], Body]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda _: {},
            "tools/list": lambda _: {"tools": [self._with_said(_tool(one)) for one in self.tools]},
            "resources/list": lambda _: {"resources": _resources()},
            "resources/templates/list": lambda _: {"resourceTemplates": []},
            "prompts/list": lambda _: {
                "prompts": [self._with_said({"name": one}) for one in PROMPTS]
            },
            "resources/read": _read,
            "resources/subscribe": lambda _: {},
            "prompts/get": _prompt,
            "logging/setLevel": lambda _: {},
        }
        if self._legacy:
            del known["server/discover"]
        if self._unlisted:
            del known["tools/list"]
        for words in self._said().get(f"before {method}", ()):
            say(_notice("notifications/message", level="info", data=words))
        if method in known:
            say(_result(body, known[method](params)))
        else:
            say(_error(body, -32601, "there is no such method"))
        if is_late:
            self.log.note({"method": "discovered-late"})

    def _initialize(self, params: Body) -> Body:
        asked = params.get("protocolVersion")
        version = asked if asked in LEGACY else LEGACY[-1]
        info = {"name": "faces", "version": "1"}
        said = {"protocolVersion": version, "capabilities": _capabilities(), "serverInfo": info}
        return {**said, **self._said().get("server", {})}

    def _discover(self, _: Body) -> Body:
        said = {"supportedVersions": [MODERN], "capabilities": _capabilities()}
        return {**said, **self._said().get("server", {})}

    def _with_said(self, entry: Body) -> Body:
        return {**entry, **self._said().get(entry["name"], {})}

    def _said(self) -> Body:
        """Return what a scenario has the server say otherwise, by the names of its entries."""
        path = self.log.path.with_name("said.json")
        said: Body = json.loads(path.read_text("utf-8")) if path.exists() else {}
        return said

    def _listen(self, ident: Any, params: Body, client: Client, say: Say) -> None:
        wanted = params.get("notifications") or {}
        client.listens[ident] = (wanted, say)
        meta = {"_meta": {f"{SPEC}subscriptionId": ident}}
        say(_notice("notifications/subscriptions/acknowledged", notifications=wanted, **meta))
        while not self.is_cancelled(ident):
            time.sleep(0.05)

    # For the work of tools.

    def is_cancelled(self, ident: Any) -> bool:
        """Tell whether the client took a request back."""
        return ident in self._cancelled

    def ask(self, say: Say, method: str, params: Body) -> Body:
        """Ask the client and return its response."""
        with self._lock:
            self._count += 1
            ident = f"server-{os.getpid()}-{self._count}"
        waiting: tuple[threading.Event, list[Body]] = (threading.Event(), [])
        self._asked[ident] = waiting
        say({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        waiting[0].wait(PATIENCE_S)
        return waiting[1][0] if waiting[1] else {"error": {"code": 0, "message": "no answer"}}


class Work:
    """One call of a tool: the argument ``do`` names the method that runs."""

    def __init__(
        self, server: Server, client: Client, say: Say, body: Body, is_gone: Callable[[], bool]
    ) -> None:
        self.server, self.client, self.say, self.body = server, client, say, body
        self._is_gone = is_gone
        self.params = body.get("params") or {}
        self.arguments = self.params.get("arguments") or {}
        self.is_modern = _revision(self.params) is not None

    def run(self) -> None:
        """Do what the arguments say."""
        do = str(self.arguments.get("do", "echo"))
        if self.params.get("name") not in self.server.tools:
            self.say(_error(self.body, -32602, "there is no such tool"))
        else:
            getattr(self, f"do_{do}")()

    def _reply(self, text: str, **more: Any) -> None:
        self.say(_result(self.body, {"content": [{"type": "text", "text": text}], **more}))

    def do_echo(self) -> None:
        """Answer with the text it was given."""
        self._reply(str(self.arguments.get("text", "done")))

    def do_say(self) -> None:
        """Answer with the result that the arguments contain, as a malicious server would."""
        self.say(_result(self.body, dict(self.arguments["result"])))

    def do_leak(self) -> None:
        """Answer with a private key that was made for this test."""
        key = base64.b64encode(bytes.fromhex("302e020100300506032b657004220420") + bytes(range(32)))
        self._reply(f"-----BEGIN PRIVATE KEY-----\n{key.decode()}\n-----END PRIVATE KEY-----")

    def do_fail(self) -> None:
        """Answer with a result that says the tool failed."""
        self._reply("it failed", isError=True)

    def do_error(self) -> None:
        """Answer with a JSON-RPC error."""
        self.say(_error(self.body, -32050, "as the call wanted"))

    def do_wait(self) -> None:
        """Answer once the file ``until`` exists, or never when the client cancels."""
        end = time.monotonic() + PATIENCE_S
        while not Path(self.arguments["until"]).exists() and time.monotonic() < end:
            if self.server.is_cancelled(self.body["id"]):
                # Its stream stays open, as that of a server which is slow to stop.
                self.do_hang()
                return
            if self._is_gone():
                # Over HTTP the newest revision cancels by leaving.
                params = {"requestId": self.body["id"]}
                self.server.log.note({"method": "notifications/cancelled", "params": params})
                return
            time.sleep(0.01)
        self.do_echo()

    def do_hang(self) -> None:
        """Never answer."""
        end = time.monotonic() + PATIENCE_S
        while not self._is_gone() and time.monotonic() < end:
            time.sleep(0.05)

    def do_die(self) -> None:
        """End the process in the middle of the call."""
        os._exit(70)

    def do_progress(self) -> None:
        """Report progress twice, with the client's token, then answer."""
        token = (self.params.get("_meta") or {}).get("progressToken")
        for step in (1, 2):
            self.say(_notice("notifications/progress", progressToken=token, progress=step, total=3))
        self.do_echo()

    def do_flood(self) -> None:
        """Send many log messages, then answer."""
        for number in range(FLOOD):
            self.say(_notice("notifications/message", level="info", data=f"line {number}"))
        self.do_echo()

    def do_result_notice(self) -> None:
        """Send a notification whose params hold a member called ``result``; answer later."""
        self.say(_notice("notifications/message", level="info", data={"id": 1, "result": "none"}))
        self.do_wait()

    def do_tell(self) -> None:
        """Say what the client asks for in a log message and in a progress report, then answer."""
        text = self.arguments.get("words", "")
        token = (self.params.get("_meta") or {}).get("progressToken")
        self.say(_notice("notifications/message", level="info", data=text))
        self.say(_notice("notifications/progress", progressToken=token, progress=1, message=text))
        self.do_echo()

    def do_stray(self) -> None:
        """Send a response to a request that was never made, then answer."""
        self.say({"jsonrpc": "2.0", "id": "never-asked", "result": {}})
        self.do_echo()

    def do_grow(self) -> None:
        """Offer one more tool and say that the list has changed."""
        self.server.tools.append(str(self.arguments["name"]))
        method = "notifications/tools/list_changed"
        for ident, (wanted, say) in list(self.client.listens.items()):
            if wanted.get("toolsListChanged"):
                say(_notice(method, _meta={f"{SPEC}subscriptionId": ident}))
        if not self.is_modern:
            self.client.unasked({"jsonrpc": "2.0", "method": method})
        self.do_echo()

    def do_end_stream(self) -> None:
        """End the stream on which the server speaks unasked."""
        self.client.end_stream()
        self.do_echo()

    def do_ask(self) -> None:
        """Ask the client what the argument ``method`` names, and answer with its answer."""
        method, params = self.arguments["method"], dict(self.arguments.get("params") or {})
        if not self.is_modern:
            said = self.server.ask(self.say, method, params)
            self._reply(json.dumps(said.get("result", {"refused": True}), sort_keys=True))
            return
        answers = self.params.get("inputResponses") or {}
        if "one" in answers:
            self._reply(json.dumps(answers["one"], sort_keys=True))
        else:
            wanted = {"one": {"method": method, "params": params}}
            body = _result(self.body, {"inputRequests": wanted})
            body["result"]["resultType"] = "input_required"
            self.say(body)


def _revision(params: Body) -> str | None:
    version = (params.get("_meta") or {}).get(f"{SPEC}protocolVersion")
    return version if isinstance(version, str) else None


def _result(body: Body, result: Body) -> Body:
    if body["method"] == "server/discover" or _revision(body.get("params") or {}):
        result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public", **result}
    return {"jsonrpc": "2.0", "id": body["id"], "result": result}


def _error(body: Body, code: int, message: str) -> Body:
    return {"jsonrpc": "2.0", "id": body["id"], "error": {"code": code, "message": message}}


def _notice(method: str, **params: Any) -> Body:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def _capabilities() -> Body:
    changes = {"listChanged": True}
    return {"tools": changes, "resources": changes, "prompts": changes, "logging": {}}


def _tool(name: str) -> Body:
    schema: Body = {"type": "object", "properties": {}}
    if name == "regional":
        schema["properties"] = {"region": {"type": "string", "x-mcp-header": "Region"}}
    tool = {"name": name, "description": f"The tool {name}", "inputSchema": schema}
    return {**tool, "annotations": {"destructiveHint": True}} if name == "destructive" else tool


def _resources() -> list[Body]:
    return [{"uri": uri, "name": uri.rpartition("/")[2]} for uri in RESOURCES]


def _read(params: Body) -> Body:
    uri = str(params.get("uri"))
    # The part after "#" is what the resource says, so that scenarios can choose it.
    text = unquote(uri.partition("#")[2]) or "the text"
    return {"contents": [{"uri": uri, "text": text}]}


def _prompt(params: Body) -> Body:
    said = (params.get("arguments") or {}).get("say", f"prompt {params.get('name')}")
    content = {"type": "text", "text": said}
    return {"messages": [{"role": "user", "content": content}]}


# Standard input and output.


def serve_stdio(server: Server) -> None:
    """Serve until the input ends."""
    writing = threading.Lock()

    def say(body: Body) -> None:
        with writing, contextlib.suppress(BrokenPipeError):
            os.write(1, json.dumps(body).encode() + b"\n")

    client = Client()
    client.unasked = say
    for line in sys.stdin.buffer:
        try:
            body = json.loads(line)
        except ValueError:
            body = None
        server.log.note(body if body is not None else line.decode("utf-8", "replace"))
        if not isinstance(body, dict):
            continue
        if "method" in body and "id" in body:
            arguments = (body, client, say)
            threading.Thread(target=server.answer, args=arguments, daemon=True).start()
        else:
            server.note(body)


def prepare(options: argparse.Namespace) -> None:
    """Fail or delay the start as the options say."""
    if options.fail_starts:
        counter = Path(options.fail_counter)
        done = int(counter.read_text()) if counter.exists() else 0
        counter.write_text(str(done + 1))
        if done < options.fail_starts:
            sys.exit(9)
    if options.start_delay:
        time.sleep(options.start_delay)


def main() -> None:
    """Run the server."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", required=True)
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--fail-starts", type=int, default=0)
    parser.add_argument("--fail-counter", default="")
    parser.add_argument("--era", choices=("both", "legacy"), default="both")
    parser.add_argument("--unlisted", action="store_true")
    parser.add_argument("--discover-at", default="")
    parser.add_argument("--start-delay", type=float, default=0.0)
    options = parser.parse_args()
    prepare(options)
    is_legacy = options.era == "legacy"
    server = Server(
        Log(options.log),
        legacy=is_legacy,
        unlisted=options.unlisted,
        discover_at=options.discover_at,
    )
    if options.http:
        # The stdio server starts often and must start fast, so it does not load HTTP.
        sys.path.insert(0, str(Path(__file__).parents[2]))
        from tests.faces.http_servers import serve_http

        serve_http(server, options.port)
    else:
        serve_stdio(server)


if __name__ == "__main__":
    main()
