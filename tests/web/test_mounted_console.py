"""The console on a gate's own listener: made when first asked for, its refusals on the gate's record."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from tests.support.approvals import a_store
from tests.support.consoles import Client
from tests.support.sign_in import PUBLIC, ProxiedClient, running_issuer, sign_in_config, token
from tests.support.waiting import run_async

from thoughtgate.core.record_events import Record
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.gate.governor import Governor
from thoughtgate.transports.loopback_server import open_listener, serve_app
from thoughtgate.web.mounted_console import MountedConsole


class RecordSink:
    """A record in memory."""

    def __init__(self) -> None:
        self.noted: list[Record] = []
        self.written = 0

    def note(self, record: Record) -> None:
        self.noted.append(record)

    def flush_quietly(self) -> None:
        self.written = len(self.noted)


async def _visit(state: Path, notes: RecordSink) -> list[int]:
    loaded = load_configuration(str(state / "c.yaml"), {}, str(state))
    with open_listener(0) as listener:
        port: int = listener.getsockname()[1]
        console = MountedConsole(loaded, {}, str(state), cast("Governor", notes), port)
        async with serve_app(console, listener):
            client = Client(port)

            def visit() -> list[int]:
                return [
                    client.get("/").status,
                    client.get("/", {"Host": "evil.example"}).status,
                    client.get(urlsplit(console.new_link()).path).status,
                    client.get("/").status,
                    client.post("/approvals/a1", {"token": "x", "decision": "approve"}).status,
                ]

            return await asyncio.to_thread(visit)


def test_it_serves_and_its_refusals_are_on_the_gates_record(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("schema: 1\ndefault: deny\n")
    a_store(tmp_path).close()
    notes = RecordSink()

    assert run_async(_visit(tmp_path, notes)) == [401, 421, 200, 200, 403]
    assert [note.type for note in notes.noted] == ["agent_auth_rejected"] * 2
    assert [note.body["agent"]["reason"] for note in notes.noted] == [
        "wrong host at /",
        "form altered, replayed or out of date at /approvals/a1",
    ]
    assert notes.written == 2


async def _sign_in(state: Path, notes: RecordSink) -> list[int]:
    loaded = load_configuration(str(state / "c.yaml"), {}, str(state))
    with open_listener(0) as listener:
        port: int = listener.getsockname()[1]
        console = MountedConsole(loaded, {}, str(state), cast("Governor", notes), port)
        async with serve_app(console, listener):
            assert console.new_link() == PUBLIC
            client = ProxiedClient(port)
            expired = ProxiedClient(port, token(exp=1))

            def visit() -> list[int]:
                return [
                    Client(port).get("/").status,
                    expired.get("/").status,
                    client.get("/").status,
                    client.post("/approvals/a1", {"token": "x", "decision": "approve"}).status,
                ]

            return await asyncio.to_thread(visit)


def test_sign_in_through_a_proxy_is_checked_here_too(tmp_path: Path) -> None:
    with running_issuer() as issuer:
        (tmp_path / "c.yaml").write_text(sign_in_config(issuer.url))
        a_store(tmp_path).close()
        notes = RecordSink()

        assert run_async(_sign_in(tmp_path, notes)) == [401, 401, 200, 403]
    assert [note.body["agent"]["reason"] for note in notes.noted] == [
        "no token in the header X-Signed-In at /",
        "token expired at /",
        "form altered, replayed or out of date at /approvals/a1",
    ]


def test_it_costs_a_starting_gate_next_to_nothing() -> None:
    program = (
        "import thoughtgate.web.mounted_console, sys;"
        "assert not {'starlette', 'jinja2', 'uvicorn'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
