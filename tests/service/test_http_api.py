"""The service's door: who is let in, and what a body may be."""

import asyncio
import http.client
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.governed import open_governance, question
from tests.support.waiting import run_async

from thoughtgate.gate.clock import now
from thoughtgate.service.http_api import GovernanceHandler
from thoughtgate.transports.loopback_server import MAX_BODY, open_listener, serve

TOKEN = "right-token"
POLICY = "schema: 1\ndefault: forward\nrules: [{tool: delete, action: approve}]\n"


class Door:
    """Asks over a real connection."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        sent = {"Authorization": f"Bearer {TOKEN}", **(headers or {})}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, data, {k: v for k, v in sent.items() if v})
            answer = connection.getresponse()
            text = answer.read()
            is_json = (answer.getheader("content-type") or "").startswith("application/json")
            return answer.status, json.loads(text) if is_json else text.decode()
        finally:
            connection.close()


Run = Callable[[Callable[[Door], None]], None]


@pytest.fixture
def visit(tmp_path: Path) -> Run:
    """Return what runs a function against a fresh service."""

    def run(act: Callable[[Door], None]) -> None:
        async def main() -> None:
            governance = open_governance(tmp_path, POLICY)
            app = GovernanceHandler(governance, TOKEN, metrics=lambda: b"some_metric 1\n")
            with open_listener(0) as listener:
                app.port = listener.getsockname()[1]
                async with serve(app, listener):
                    doing: Awaitable[None] = asyncio.to_thread(act, Door(app.port))
                    await asyncio.wait_for(doing, 30)
            governance.governor.finish("SUCCEEDED", now())

        run_async(main())

    return run


def test_health_needs_no_token_and_tells_nothing(visit: Run) -> None:
    def act(door: Door) -> None:
        assert door.ask("GET", "/healthz", headers={"Authorization": ""}) == (200, {"status": "ok"})

    visit(act)


@pytest.mark.parametrize("path", ["/metrics", "/governance/task/x", "/governance/evaluate"])
@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN]
)
def test_everything_else_needs_the_token(visit: Run, path: str, given: str) -> None:
    def act(door: Door) -> None:
        status, body = door.ask("GET", path, headers={"Authorization": given})
        assert status == 401
        assert TOKEN not in str(body)

    visit(act)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_a_web_page_is_turned_away_even_with_the_token(visit: Run, headers: dict[str, str]) -> None:
    def act(door: Door) -> None:
        for path in ("/healthz", "/metrics", "/governance/evaluate"):
            assert door.ask("POST", path, question(None, "read"), headers)[0] == 403

    visit(act)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "[::1]:{port}"]
)
def test_a_name_that_was_rebound_to_the_loopback_is_turned_away(visit: Run, host: str) -> None:
    def act(door: Door) -> None:
        headers = {"Host": host.format(port=door.port)}
        assert door.ask("GET", "/healthz", headers=headers)[0] == 421

    visit(act)


@pytest.mark.requirement("S000-F-016")
def test_the_endpoints_answer_in_the_shared_types(visit: Run) -> None:
    def act(door: Door) -> None:
        status, answer = door.ask("POST", "/governance/evaluate", question(None, "read"))
        assert (status, answer["decision"]) == (200, "forward")
        status, answer = door.ask("POST", "/governance/evaluate", question(None, "delete"))
        assert (status, answer["decision"]) == (200, "pending_approval")
        task = f"/governance/task/{answer['task_id']}"
        for path in (task, f"{task}?wait=0.05"):
            assert door.ask("GET", path)[1]["status"] == "pending"
        assert door.ask("POST", "/governance/heartbeat", {"server_id": "files"}) == (
            200,
            {"shutdown": False},
        )
        assert door.ask("GET", "/metrics") == (200, "some_metric 1\n")

    visit(act)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/governance/task/unknown", 404),
        ("/governance/task/x?wait=nan", 400),
        ("/governance/task/x?wait=inf", 400),
        ("/governance/task/x?wait=soon", 400),
        ("/governance/evaluate", 405),
        ("/elsewhere", 404),
        ("/governance/../etc/passwd", 404),
    ],
)
def test_a_path_that_makes_no_sense_is_refused(visit: Run, path: str, status: int) -> None:
    def act(door: Door) -> None:
        assert door.ask("GET", path)[0] in {status, 405}

    visit(act)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, b'{"server_id": 3}', b'{"method": "x"}'],
)
def test_a_body_that_makes_no_sense_is_refused(visit: Run, body: bytes) -> None:
    def act(door: Door) -> None:
        for path in ("evaluate", "heartbeat", "events", "withdraw", "tasks"):
            assert door.ask("POST", f"/governance/{path}", body)[0] == 400
        assert door.ask("POST", "/governance/nowhere", b"{}")[0] == 404

    visit(act)


def test_a_body_without_end_is_cut_off(visit: Run) -> None:
    def act(door: Door) -> None:
        try:
            status, _ = door.ask("POST", "/governance/evaluate", b" " * (MAX_BODY + 1))
        except (ConnectionError, http.client.HTTPException):
            return
        assert status == 413

    visit(act)


def test_an_unknown_session_is_told_so(visit: Run) -> None:
    def act(door: Door) -> None:
        body = {**question(None, "read"), "session_id": "stolen"}
        status, answer = door.ask("POST", "/governance/evaluate", body)
        assert (status, answer["kind"]) == (400, "invalid_request")

    visit(act)
