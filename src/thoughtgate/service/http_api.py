"""HTTP interface of the governance service: access checks and routing.

Before a body is read, three things are checked: the Host header (against DNS rebinding from a
web page), the absence of an Origin header (shims are not browsers), and the run's token,
compared in constant time. Paths that are not the service's own go to the console, which has
its own checks.
"""

import hmac
import math
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs

from thoughtgate.errors import PeerError, RecordError
from thoughtgate.gate.background import spawn
from thoughtgate.service.service import Governance
from thoughtgate.transports.http_server import Exchange, Handler
from thoughtgate.wire.fast_frame import dump_quickly, load_quickly

_PAGES: Final = frozenset({"/healthz", "/metrics"})
_TASK: Final = "/governance/task/"
_TASKS: Final = "/governance/tasks"
_PRIVATE: Final = b"cache-control: no-store\r\n"
_JSON: Final = b"content-type: application/json\r\n" + _PRIVATE
_TEXT: Final = b"content-type: text/plain; version=0.0.4\r\n" + _PRIVATE

Operation: TypeAlias = Callable[[dict[str, Any]], dict[str, Any] | None]
"""Handles the body of a request and returns that of the reply; None for an empty one."""


class Refused(Exception):  # noqa: N818 - an answer with a status, not a fault of the program
    """Ends the handling of a request; it is answered with this status and reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class GovernanceHandler:
    """Handler for ``HttpServer`` that serves the shims of one run."""

    def __init__(
        self,
        governance: Governance,
        token: str,
        *,
        console: Handler | None = None,
        metrics: Callable[[], bytes] | None = None,
    ) -> None:
        self._governance = governance
        self._token = token.encode()
        self._operations: dict[str, Operation] = {
            "/governance/evaluate": governance.evaluate,
            "/governance/heartbeat": governance.heartbeat,
            "/governance/events": governance.events,
            "/governance/inspect": governance.inspect,
            "/governance/withdraw": governance.withdraw,
            "/governance/answer": governance.answered,
        }
        self._console = console
        self._metrics = metrics
        self.port = 0
        """The port that a Host header must name; set once the service listens."""

    def opened(self, exchange: Exchange) -> None:
        """Reject a client that is not a shim of this run, before its body is read."""
        path = _path(exchange)
        if not _is_ours(path):
            if self._console is not None:
                self._console.opened(exchange)
            return
        try:
            self._check(exchange, path)
        except Refused as refusal:
            _respond(exchange, refusal.status, {"error": str(refusal)})

    def completed(self, exchange: Exchange) -> None:
        """Answer a complete request."""
        path = _path(exchange)
        if _is_ours(path):
            self._answer(exchange, path)
        elif self._console is not None:
            self._console.completed(exchange)
        else:
            _respond(exchange, 404, {"error": "there is no such endpoint"})

    def refused(self, exchange: Exchange, status: int) -> None:
        """Answer a request that cannot be parsed."""
        _respond(exchange, status, {"error": "the request cannot be read"})

    def _answer(self, exchange: Exchange, path: str) -> None:
        try:
            self._route(exchange, path)
        except Exception as error:  # noqa: BLE001 - the edge of a request, as in _later
            _refuse(exchange, error)

    def _route(self, exchange: Exchange, path: str) -> None:
        if path == "/metrics":
            exchange.respond(200, _TEXT, self._metrics() if self._metrics is not None else b"")
        elif path == "/healthz":
            _respond(exchange, 200, {"status": "ok"})
        elif path.startswith(_TASK) and exchange.method == b"GET":
            spawn(_later(exchange, self._task(exchange, path.removeprefix(_TASK))))
        elif exchange.method != b"POST":
            raise Refused(405, "use POST")
        elif path == _TASKS:
            told = self._governance.tasks(_read(exchange), _wait_of(exchange))
            spawn(_later(exchange, told))
        else:
            _respond(exchange, 200, self._post(path, _read(exchange)))

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path not in self._operations:
            raise Refused(404, "there is no such endpoint")
        return self._operations[path](body) or {}

    async def _task(self, exchange: Exchange, call_id: str) -> dict[str, Any]:
        """Return the state of a held call, after waiting for news of it."""
        found = await self._governance.task(call_id, _wait_of(exchange))
        if found is None:
            raise Refused(404, "there is no such task")
        return found

    def _check(self, exchange: Exchange, path: str) -> None:
        headers = exchange.headers
        host = headers.get(b"host", b"").decode("latin-1")
        if b"host" in exchange.repeated or host not in {
            f"127.0.0.1:{self.port}",
            f"localhost:{self.port}",
        }:
            raise Refused(421, "the Host header does not name this service")
        if b"origin" in headers or b"sec-fetch-site" in headers:
            # Browsers send one or both of them with every request of a page; shims send neither.
            raise Refused(403, "requests from web pages are not accepted")
        if path == "/healthz":
            return
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
            raise Refused(401, "the token is missing or wrong")


def _path(exchange: Exchange) -> str:
    return exchange.target.partition(b"?")[0].decode("latin-1")


def _is_ours(path: str) -> bool:
    return path.startswith("/governance/") or path in _PAGES


async def _later(exchange: Exchange, answer: Coroutine[Any, Any, dict[str, Any]]) -> None:
    """Answer when the result is available."""
    try:
        _respond(exchange, 200, await answer)
    except Exception as error:  # noqa: BLE001 - the edge of a request: a shim takes it for a denial
        _refuse(exchange, error)


def _refuse(exchange: Exchange, error: Exception) -> None:
    """Answer with an error; a shim takes any reply that is not a verdict as a denial."""
    if isinstance(error, Refused):
        _respond(exchange, error.status, {"error": str(error)})
    elif isinstance(error, PeerError):
        status = 429 if error.kind == "service_unavailable" else 400
        _respond(exchange, status, {"error": str(error), "kind": error.kind})
    elif isinstance(error, RecordError):
        _respond(exchange, 503, {"error": "the record cannot be written"})
    else:
        _respond(exchange, 500, {"error": "the service failed"})


def _respond(exchange: Exchange, status: int, body: dict[str, Any]) -> None:
    exchange.respond(status, _JSON, dump_quickly(body))


def _read(exchange: Exchange) -> dict[str, Any]:
    try:
        value = load_quickly(exchange.body)
    except (ValueError, RecursionError):
        raise Refused(400, "the request is not JSON") from None
    if not isinstance(value, dict):
        raise Refused(400, "the request is not an object")
    return value


def _wait_of(exchange: Exchange) -> float:
    """Return how long the caller is willing to wait for news."""
    query = parse_qs(exchange.target.partition(b"?")[2].decode("latin-1"))
    try:
        wait_s = float(query.get("wait", ["0"])[0])
    except ValueError:
        wait_s = math.nan
    # "nan" and "inf" are numbers for float(), and would never reach a deadline.
    if not math.isfinite(wait_s):
        raise Refused(400, "wait is a number of seconds")
    return max(0.0, wait_s)
