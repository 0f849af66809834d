"""A stdio server that is wrong in one way, chosen by its first argument.

``silent`` answers nothing, ``deaf`` nothing but the opening, ``exit`` leaves at once with
words on stderr, ``flood`` prints lines that are no messages without end and ``deluge`` as fast as it can, ``twice`` lists
two tools of one name, ``nolist`` answers lists with nonsense and ``hidelist`` never, ``chatty`` logs and changes
resources while it works, ``curious`` asks the client before it answers, ``endless`` pages
its list for ever, ``slowstart`` answers the opening after a while, ``changing`` announces another
list with every call and answers no further request for it, ``late`` announces another list with
the first call and refuses the first request for it.
"""

import json
import sys
import threading
import time
from typing import Any

TOOL = {"name": "work", "description": "Work", "inputSchema": {"type": "object"}}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True},
    "logging": {},
}


def say(**body: Any) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **body}) + "\n")
    sys.stdout.flush()


class OddServer:
    """Answers what its way allows."""

    def __init__(self, way: str) -> None:
        self.way = way
        self.call: Any = None
        self.is_changed = False
        self.has_more = False

    def take(self, body: dict[str, Any]) -> None:
        """Take one message."""
        method, ident = body.get("method"), body.get("id")
        if method is None:
            said = json.dumps(body.get("result", body.get("error")))
            say(id=self.call, result={"content": [{"type": "text", "text": said}]})
        elif method == "tools/list" and self.is_changed:
            self.is_changed = self.way != "late"
            say(id=ident, error={"code": -32603, "message": "no list"})
        elif ident is not None and self.way != "silent":
            self.answer(str(method), ident)

    def answer(self, method: str, ident: Any) -> None:
        """Answer one request."""
        if method == "initialize":
            if self.way == "slowstart":
                time.sleep(1.0)
            info = {"name": self.way, "version": "1"}
            version = "2025-11-25"
            say(
                id=ident,
                result={
                    "protocolVersion": version,
                    "capabilities": CAPABILITIES,
                    "serverInfo": info,
                },
            )
        elif method in {"tools/list", "prompts/list"} and self.way == "hidelist":
            return
        elif method == "tools/list" and self.way != "deaf":
            say(id=ident, result=self.tools())
        elif method == "tools/call" and self.way != "deaf":
            sys.stderr.write("a call arrived\n")
            sys.stderr.flush()
            self.work(ident)
        elif method == "resources/list":
            say(id=ident, result={"resources": [{"uri": "odd://1", "name": "one"}]})
        elif method == "resources/templates/list":
            say(id=ident, result={"resourceTemplates": []})
        elif method in {"resources/subscribe", "resources/unsubscribe", "logging/setLevel", "ping"}:
            say(id=ident, result={})
        elif method == "server/discover" or self.way != "deaf":
            say(id=ident, error={"code": -32601, "message": "no such method"})

    def tools(self) -> dict[str, Any]:
        """Return what is listed."""
        if self.way == "nolist":
            return {"tools": "many"}
        if self.way == "endless":
            return {
                "tools": [{**TOOL, "name": f"t{time.monotonic_ns()}"}] * 1,
                "nextCursor": "more",
            }
        if self.way == "twice":
            return {"tools": [TOOL, {**TOOL, "description": "Work otherwise"}, {"name": 7}]}
        if self.has_more:
            return {"tools": [TOOL, {**TOOL, "name": "more"}]}
        return {"tools": [TOOL]}

    def work(self, ident: Any) -> None:
        """Carry out the one tool."""
        if self.way == "changing" or (self.way == "late" and not self.has_more):
            self.is_changed = self.has_more = True
            say(method="notifications/tools/list_changed")
        if self.way == "chatty":
            say(
                method="notifications/message",
                params={"level": "info", "logger": "odd", "data": "working"},
            )
            say(method="notifications/message", params={"level": "debug", "data": "details"})
            say(method="notifications/resources/updated", params={"uri": "odd://1"})
        if self.way == "curious":
            self.call = ident
            say(id=0, method="sampling/createMessage", params={"messages": [], "maxTokens": 1})
            return
        say(id=ident, result={"content": [{"type": "text", "text": "worked"}]})


def flood(deluge: bool) -> None:
    """Print without end: much, or as much as goes."""
    while True:
        sys.stdout.write(("x" * 200 + "\n") * (100 if deluge else 1))
        sys.stdout.flush()
        time.sleep(0.0005)


def main() -> None:
    """Serve standard input."""
    way = sys.argv[1]
    if way == "exit":
        sys.stderr.write("cannot find my token\n")
        sys.exit(3)
    if way in {"flood", "deluge"}:
        threading.Thread(target=flood, args=(way == "deluge",), daemon=True).start()
    server = OddServer(way)
    for line in sys.stdin:
        server.take(json.loads(line))


if __name__ == "__main__":
    main()
