"""HTTP for the governance service: an ASGI application for the loopback.

Checked before anything else: the Host header (a web page that rebinds its name to
127.0.0.1 does not know our port by that name), the absence of an Origin (shims are not
browsers), and the run's token in constant time. Everything that is not the service's own
goes to the console, which has its own checks.
"""

import hmac
import json
import math
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs

from thoughtgate.errors import PeerError, RecordError
from thoughtgate.runtime.governance import Governance

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY: Final = 16 * 1024 * 1024
"""A question carries one message of at most ten MiB, escaped."""

_JSON: Final = b"application/json"


class Refused(Exception):  # noqa: N818 - an answer with a status, not a fault of the program
    """The request is answered with this status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class GovernanceApp:
    """The service's ASGI application."""

    def __init__(
        self,
        governance: Governance,
        token: str,
        *,
        console: App | None = None,
        metrics: Callable[[], bytes] | None = None,
    ) -> None:
        self._governance = governance
        self._token = token.encode()
        self._console = console
        self._metrics = metrics
        self.port = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        ours = path.startswith("/governance/") or path in {"/healthz", "/metrics"}
        if not ours:
            await self._elsewhere(scope, receive, send)
            return
        try:
            status, body = await self._answer(scope, receive, path)
        except Refused as refusal:
            status, body = refusal.status, _dump({"error": str(refusal)})
        except PeerError as error:
            status = 429 if error.kind == "service_unavailable" else 400
            body = _dump({"error": str(error), "kind": error.kind})
        except RecordError:
            status, body = 503, _dump({"error": "the record cannot be written"})
        except Exception:  # noqa: BLE001 - the edge of a request: a shim takes it for a denial
            status, body = 500, _dump({"error": "the service failed"})
        await _respond(
            send, status, body, b"text/plain; version=0.0.4" if path == "/metrics" else _JSON
        )

    async def _elsewhere(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._console is not None:
            await self._console(scope, receive, send)
        else:
            await _respond(send, 404, _dump({"error": "there is nothing here"}), _JSON)

    async def _answer(self, scope: Scope, receive: Receive, path: str) -> tuple[int, bytes]:
        self._check(scope, path)
        method = scope["method"]
        if path == "/healthz":
            return 200, _dump({"status": "ok"})
        if path == "/metrics":
            return 200, self._metrics() if self._metrics is not None else b""
        if path.startswith("/governance/task/") and method == "GET":
            return await self._task(scope, path.removeprefix("/governance/task/"))
        if method != "POST":
            raise Refused(405, "use POST")
        if path == "/governance/tasks":
            told = await _read_json(receive)
            return 200, _dump(await self._governance.tasks(told, _wait_of(scope)))
        return self._post(path, await _read_json(receive))

    def _post(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        governance = self._governance
        if path == "/governance/evaluate":
            return 200, _dump(governance.evaluate(body))
        if path == "/governance/heartbeat":
            return 200, _dump(governance.heartbeat(body))
        if path == "/governance/events":
            governance.events(body)
            return 200, _dump({"shutdown": governance.shutting_down})
        if path == "/governance/mask":
            return 200, _dump(governance.mask(body))
        if path == "/governance/withdraw":
            governance.withdraw(body)
            return 200, b"{}"
        if path == "/governance/answer":
            governance.answered(body)
            return 200, b"{}"
        raise Refused(404, "there is nothing here")

    async def _task(self, scope: Scope, call_id: str) -> tuple[int, bytes]:
        answer = await self._governance.task(call_id, _wait_of(scope))
        if answer is None:
            raise Refused(404, "there is no such task")
        return 200, _dump(answer)

    def _check(self, scope: Scope, path: str) -> None:
        headers = dict(scope["headers"])
        hosts = {value.decode("latin-1") for name, value in scope["headers"] if name == b"host"}
        if len(hosts) != 1 or not hosts <= {f"127.0.0.1:{self.port}", f"localhost:{self.port}"}:
            raise Refused(421, "this is not the host you think it is")
        if b"origin" in headers or b"sec-fetch-site" in headers:
            # Browsers send one or both with everything that a page does; shims send neither.
            raise Refused(403, "web pages are not served here")
        if path == "/healthz":
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
            raise Refused(401, "the token is missing or wrong")


def _wait_of(scope: Scope) -> float:
    """Return how long a caller is willing to wait for news."""
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    try:
        wait_s = float(query.get("wait", ["0"])[0])
    except ValueError:
        wait_s = math.nan
    if not math.isfinite(wait_s):
        raise Refused(400, "wait is a number of seconds")
    return max(0.0, wait_s)


async def _read_json(receive: Receive) -> dict[str, Any]:
    data = bytearray()
    while True:
        event = await receive()
        if event["type"] != "http.request":
            raise Refused(400, "the request was cut off")
        data += event.get("body", b"")
        if len(data) > MAX_BODY:
            raise Refused(413, "the request is too large")
        if not event.get("more_body"):
            break
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise Refused(400, "the request is not JSON") from None
    if not isinstance(value, dict):
        raise Refused(400, "the request is not an object")
    return value


async def _respond(send: Send, status: int, body: bytes, kind: bytes) -> None:
    headers = [
        (b"content-type", kind),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
