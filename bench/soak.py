"""A long run of the gateway, by hand: ``python -m bench.soak --calls 1000000``.

Mixed sizes, streams, clients that hang up and an upstream that fails at random. At the end
the memory must be flat, every call must be on record exactly once with one end, and no
connection may be left.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from thoughtgate.errors import PeerError
from thoughtgate.transports.http_client import HttpPool, PoolOptions
from thoughtgate.transports.http_server import Exchange, HttpServer

HOST: Final = "127.0.0.1"
WORKERS: Final = 32
RUN_S: Final = 6 * 3600.0
"""A million calls take an hour or two."""
HEADERS: Final = [
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
]
SIZES: Final = (10, 100, 1_000, 10_000, 100_000)
ABORTS: Final = 0.02
FAILURES: Final = 0.02
GROWTH: Final = 1.25
"""How much larger the process may be at the end than after a tenth of the calls."""


class Unreliable:
    """A server that answers, streams, breaks off or says nothing sensible."""

    def __init__(self) -> None:
        self._chance = random.Random(7)

    def opened(self, exchange: Exchange) -> None:
        """Everything is welcome."""

    def refused(self, exchange: Exchange, status: int) -> None:
        """The request cannot be read."""
        exchange.respond(status)

    def completed(self, exchange: Exchange) -> None:
        """Answer, one way or another."""
        message = json.loads(exchange.body) if exchange.body else {}
        result = {"content": [{"type": "text", "text": "x" * self._chance.choice(SIZES)}]}
        body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()
        kind = self._chance.random()
        if kind < FAILURES / 2:
            exchange.drop()
        elif kind < FAILURES:
            exchange.respond(500, b"content-type: text/plain\r\n", b"oops")
        elif kind < 0.3:
            exchange.start(200, b"content-type: text/event-stream\r\n")
            exchange.write(b": begins\n\n")
            exchange.write(b"event: message\ndata: " + body + b"\n\n")
            exchange.end()
        else:
            exchange.respond(200, b"content-type: application/json\r\n", body)


class Soak:
    """The load, and what is watched."""

    def __init__(self, url: str, pid: int, calls: int) -> None:
        self.url = url
        self.pid = pid
        self.left = calls
        self.total = calls
        self.made = self.aborted = self.answered = 0
        self.sizes: list[int] = []
        self._chance = random.Random(11)

    async def run(self) -> None:
        """Make all calls."""
        pool = HttpPool(self.url, PoolOptions(max_idle=WORKERS))
        await asyncio.gather(*(self._work(pool) for _ in range(WORKERS)))
        await pool.close()

    async def _work(self, pool: HttpPool) -> None:
        while self.left > 0:
            self.left -= 1
            self.made += 1
            if self.made % max(1, self.total // 20) == 0:
                self.sizes.append(resident(self.pid))
                print(f"{self.made:>9} calls, {self.sizes[-1] >> 20} MiB", flush=True)
            body = json.dumps(self._message(self.made)).encode()
            if self._chance.random() < ABORTS:
                await self._abort(body)
                continue
            with contextlib.suppress(PeerError):
                answer = await pool.request("POST", HEADERS, body, timeout_s=60.0)
                self.answered += answer.status == 200

    def _message(self, ident: int) -> dict[str, Any]:
        text = "y" * self._chance.choice(SIZES)
        params = {"name": "echo", "arguments": {"text": text, "number": ident}}
        return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}

    async def _abort(self, body: bytes) -> None:
        """Send a call and hang up without reading the answer."""
        self.aborted += 1
        port = int(self.url.rpartition(":")[2].partition("/")[0])
        _, writer = await asyncio.open_connection(HOST, port)
        head = f"POST /mcp HTTP/1.1\r\nhost: {HOST}:{port}\r\ncontent-length: {len(body)}\r\n"
        head += "content-type: application/json\r\n\r\n"
        writer.write(head.encode() + body)
        with contextlib.suppress(OSError):
            await writer.drain()
            writer.close()
            await writer.wait_closed()


def resident(pid: int) -> int:
    """Return the resident size of a process in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def sockets_of(pid: int) -> int:
    """Return how many sockets a process has open."""
    found = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found += os.readlink(link).startswith("socket:")  # noqa: PTH115  not a path
    return found


def problems_on_record(state: Path) -> list[str]:
    """Return what is wrong with the record: calls without an end, or with two."""
    starts: set[str] = set()
    ends: set[str] = set()
    wrong: list[str] = []
    for path in sorted(state.glob("audit.jsonl*")):
        with path.open("rb") as file:
            for line in file:
                event = json.loads(line)
                if event["type"] not in {"tool_call_start", "tool_call_end"}:
                    continue
                ident = event["call"]["call_id"]
                table = starts if event["type"] == "tool_call_start" else ends
                if ident in table:
                    wrong.append(f"{event['type']} twice: {ident}")
                table.add(ident)
    wrong += [f"no end: {ident}" for ident in starts - ends]
    wrong += [f"no start: {ident}" for ident in ends - starts]
    return wrong[:20]


async def soak(place: Path, calls: int) -> int:
    """Run it all; return 0 when nothing is wrong."""
    upstream = HttpServer(Unreliable())
    port = await upstream.listen(HOST, 0)
    config = place / "thoughtgate.yaml"
    config.write_text(
        f"schema: 1\ndefault: forward\nservers:\n  up: {{url: 'http://{HOST}:{port}/mcp'}}\n"
        "audit: {rotate: {size: 1073741824, keep: 100}}\n"
    )
    state = place / "state"
    environ = {**os.environ, "THOUGHTGATE_STATE_DIR": str(state)}
    with socket.socket() as held:
        held.bind((HOST, 0))
        gate_port = held.getsockname()[1]
    command = [sys.executable, "-m", "thoughtgate.cli.entry", "proxy", "-c", str(config)]
    command += ["--listen", f"{HOST}:{gate_port}"]
    gate = await asyncio.to_thread(
        subprocess.Popen, command, env=environ, stderr=subprocess.DEVNULL
    )
    try:
        await wait_until_listening(gate_port)
        before = sockets_of(gate.pid)
        run = Soak(f"http://{HOST}:{gate_port}/mcp", gate.pid, calls)
        began = time.monotonic()
        await run.run()
        await asyncio.sleep(20)  # the gate closes what it did not use for some seconds
        leaked = sockets_of(gate.pid) - before
    finally:
        gate.terminate()
        code = await asyncio.to_thread(gate.wait, 60)
        await upstream.drain(1.0)
    took = time.monotonic() - began
    print(f"{run.made} calls, {run.aborted} hung up, {run.answered} answered, {took:.0f} s")
    print(f"{leaked} connections more than before the first call")
    wrong = problems_on_record(state)
    early, late = run.sizes[len(run.sizes) // 10], run.sizes[-1]
    if late > early * GROWTH:
        wrong.append(f"memory grew from {early >> 20} to {late >> 20} MiB")
    if leaked > 0:
        wrong.append(f"{leaked} connections are left")
    if code:
        wrong.append(f"the gate ended with {code}")
    for line in wrong:
        print(f"wrong: {line}")
    print("nothing is wrong" if not wrong else f"{len(wrong)} things are wrong")
    return 1 if wrong else 0


async def wait_until_listening(port: int) -> None:
    """Wait until the gate takes connections."""
    for _ in range(400):
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(HOST, port)
            writer.close()
            await writer.wait_closed()
            return
        await asyncio.sleep(0.05)
    raise TimeoutError("the gate does not listen")


def main() -> int:
    """Read the number of calls and run."""
    parser = argparse.ArgumentParser("soak", description=__doc__)
    parser.add_argument("--calls", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(asyncio.wait_for(soak(Path(name), options.calls), RUN_S))


if __name__ == "__main__":
    sys.exit(main())
