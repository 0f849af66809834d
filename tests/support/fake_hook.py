"""A webhook's own system: checks signatures, and answers as the test says."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self

from thoughtgate.channels.webhook_signature import (
    QUESTION,
    REPLY,
    read_signature,
    sign,
    signature_error,
)
from thoughtgate.gate.clock import now

KEY = b"a key that both sides hold"


class Answer(NamedTuple):
    """What the hook answers."""

    status: int = 202
    body: bytes = b""
    headers: dict[str, str] | None = None


class FakeHook:
    """One webhook on the loopback."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.nonces: list[str] = []
        self.doubts: list[str] = []
        self.answer: Callable[[dict[str, Any], str], Answer] = lambda _, __: Answer()
        """From what was told and the request's nonce to an answer."""
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
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook"

    def kinds(self) -> list[str]:
        """Return the types of what was told."""
        return [each["type"] for each in self.told]


def decides(
    decision: str, *, by: str = "ann", key: bytes = KEY, **changes: Any
) -> Callable[[dict[str, Any], str], Answer]:
    """Return an answerer that decides at once, signed for the very request."""

    def answer(told: dict[str, Any], nonce: str) -> Answer:
        asked = told["approval"]
        said = {
            "id": asked["id"],
            "digest": asked["digest"],
            "decision": decision,
            "by": by,
            **changes,
        }
        body = json.dumps(said).encode()
        return Answer(200, body, sign(key, REPLY + nonce, body, "n" * 20, now()).headers())

    return answer


def _handler(hook: FakeHook) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Reads a signed request."""

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("content-length", 0)))
            signed = read_signature(dict(self.headers.items()))
            hook.doubts.append(signature_error(KEY, QUESTION, data, signed, now()))
            told = json.loads(data)
            hook.told.append(told)
            hook.nonces.append(signed.nonce)
            answer = hook.answer(told, signed.nonce)
            self.send_response(answer.status)
            for name, value in (answer.headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        do_GET = do_POST  # noqa: N815 - the name that the server looks for

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
