"""A local server that speaks Slack's API: messages, reactions, threads, limits, errors.

It is as strict as Slack where that matters: a token is needed, reading methods take no
JSON, texts and blocks have limits, a rate limit says how long to wait.
"""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import parse_qsl, urlsplit

BOT = "UBOT"
TOKEN = "xoxb-test-token"
CHANNEL = "C0OPS"


class FakeSlack:
    """One workspace with one channel."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.messages: dict[str, dict[str, Any]] = {}
        self.replies: dict[str, list[dict[str, Any]]] = {}
        self.faults: list[Callable[[str], tuple[int, dict[str, str], Any] | None]] = []
        """Each may answer a call in Slack's place."""
        self.users: dict[str, dict[str, Any]] = {}
        """What ``users.info`` says of a user besides that it is a person."""
        self._lock = threading.Lock()
        self._count = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """What ``slack.api_url`` is set to."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/api/"

    def react(self, user: str, name: str, *, listed: bool = True) -> None:
        """A user reacts to the newest message; with ``listed`` False Slack names only the count."""
        message = list(self.messages.values())[-1]
        found = message.setdefault("reactions", [])
        found.append({"name": name, "users": [user] if listed else [], "count": 1, "all": [user]})

    def reply(self, user: str, text: str, **more: Any) -> None:
        """A user answers in the thread of the newest message."""
        ts = list(self.messages)[-1]
        self.replies[ts].append({"user": user, "text": text, "ts": f"{ts}1", **more})

    def delete(self) -> None:
        """Somebody deletes the newest message."""
        self.messages.pop(list(self.messages)[-1])

    def count(self, method: str) -> int:
        """Return how often a method was called."""
        return sum(called == method for called, _ in self.calls)

    def newest(self) -> dict[str, Any]:
        """Return the newest message."""
        return list(self.messages.values())[-1]

    def answer(
        self, method: str, token: str, said: dict[str, Any], *, was_json: bool
    ) -> tuple[int, dict[str, str], Any]:
        """Answer one call."""
        with self._lock:
            self.calls.append((method, said))
            for fault in list(self.faults):
                answered = fault(method)
                if answered is not None:
                    return answered
            if token != f"Bearer {TOKEN}":
                return 200, {}, {"ok": False, "error": "invalid_auth"}
            if was_json and not method.startswith("chat."):
                return 200, {}, {"ok": False, "error": "invalid_arguments"}
            return 200, {}, self._methods[method](self, said)

    def _post(self, said: dict[str, Any]) -> dict[str, Any]:
        problem = too_long(said)
        if problem:
            return {"ok": False, "error": problem}
        self._count += 1
        ts = f"1700000000.{self._count:06d}"
        self.messages[ts] = {**said, "ts": ts, "user": BOT, "bot_id": "B1"}
        self.replies[ts] = []
        return {"ok": True, "channel": CHANNEL, "ts": ts, "message": self.messages[ts]}

    def _update(self, said: dict[str, Any]) -> dict[str, Any]:
        if said["ts"] not in self.messages or said["channel"] != CHANNEL:
            return {"ok": False, "error": "message_not_found"}
        problem = too_long(said)
        if problem:
            return {"ok": False, "error": problem}
        self.messages[said["ts"]].update(text=said["text"], blocks=said["blocks"], updated=True)
        return {"ok": True, "ts": said["ts"]}

    def _read(self, said: dict[str, Any]) -> dict[str, Any]:
        ts = said["ts"]
        if said["channel"] != CHANNEL:
            return {"ok": False, "error": "channel_not_found"}
        if ts not in self.messages:
            return {"ok": False, "error": "thread_not_found"}
        return {"ok": True, "messages": [self.messages[ts], *self.replies[ts]]}

    def _reactions(self, said: dict[str, Any]) -> dict[str, Any]:
        message = self.messages[said["timestamp"]]
        full = [{**each, "users": each["all"]} for each in message.get("reactions", [])]
        return {"ok": True, "message": {**message, "reactions": full}}

    def _test(self, said: dict[str, Any]) -> dict[str, Any]:
        del said
        return {"ok": True, "user_id": BOT}

    def _user(self, said: dict[str, Any]) -> dict[str, Any]:
        if said["user"] == "U404":
            return {"ok": False, "error": "user_not_found"}
        more = self.users.get(said["user"], {})
        return {"ok": True, "user": {"id": said["user"], "is_bot": False, **more}}

    _methods: ClassVar[dict[str, Callable[["FakeSlack", dict[str, Any]], dict[str, Any]]]] = {
        "chat.postMessage": _post,
        "chat.update": _update,
        "conversations.replies": _read,
        "reactions.get": _reactions,
        "auth.test": _test,
        "users.info": _user,
    }


def too_long(said: dict[str, Any]) -> str:
    """Say which of Slack's limits a message breaks."""
    blocks = said.get("blocks", [])
    if isinstance(blocks, str):
        blocks = json.loads(blocks)
    if len(blocks) > 50 or len(said.get("text", "")) > 40_000:
        return "msg_too_long"
    for block in blocks:
        texts = [block.get("text"), *block.get("fields", []), *block.get("elements", [])]
        limit = 150 if block["type"] == "header" else 3000
        if any(text and not 0 < len(text["text"]) <= limit for text in texts):
            return "invalid_blocks"
        if any(len(field["text"]) > 2000 for field in block.get("fields", [])):
            return "invalid_blocks"
    return ""


def rate_limited(
    times: int, after_s: int
) -> Callable[[str], tuple[int, dict[str, str], Any] | None]:
    """Return a fault that limits the next so many calls."""
    left = [times]

    def fault(method: str) -> tuple[int, dict[str, str], Any] | None:
        del method
        if not left[0]:
            return None
        left[0] -= 1
        return 429, {"Retry-After": str(after_s)}, {"ok": False, "error": "ratelimited"}

    return fault


def failing(
    status: int, body: Any, *, only: str = "", times: int = 1_000_000, slow_s: float = 0.0
) -> Callable[[str], tuple[int, dict[str, str], Any] | None]:
    """Return a fault that fails calls, all or those of one method, perhaps after a while."""
    left = [times]

    def fault(method: str) -> tuple[int, dict[str, str], Any] | None:
        if (only and method != only) or not left[0]:
            return None
        left[0] -= 1
        time.sleep(slow_s)
        return status, {}, body

    return fault


def _handler(slack: FakeSlack) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Reads a call, in the ways that Slack's clients write it."""

        def do_GET(self) -> None:
            self._serve(dict(parse_qsl(urlsplit(self.path).query)), was_json=False)

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length", 0)))
            is_json = "json" in self.headers.get("content-type", "")
            said = json.loads(data) if is_json and data else dict(parse_qsl(data.decode()))
            query = dict(parse_qsl(urlsplit(self.path).query))
            self._serve({**query, **said}, was_json=is_json and bool(said))

        def _serve(self, said: dict[str, Any], *, was_json: bool) -> None:
            method = urlsplit(self.path).path.removeprefix("/api/")
            token = self.headers.get("authorization", "")
            status, headers, body = slack.answer(method, token, said, was_json=was_json)
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            try:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                return

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
