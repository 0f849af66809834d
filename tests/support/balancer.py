"""A round-robin balancer: Debian's HAProxy, which sends every request to the next gate in turn.

Where it is not installed, connections are passed on in turn, one request on each.
"""

import contextlib
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path

from tests.support.http_upstream import free_port
from tests.support.waiting import PATIENCE_S, wait_for

HOST = "gates.test"
"""The name under which the balancer passes requests on."""

_CONFIG = """
defaults
  mode http
  timeout connect 5s
  timeout client 120s
  timeout server 120s
  retries 3
  option redispatch
frontend agents
  bind 127.0.0.1:{port}
  http-request set-header Host {host}
  default_backend gates
backend gates
  balance roundrobin
  {check}
{servers}
"""


@contextlib.contextmanager
def balancing(directory: Path, ports: Sequence[int], *, checked: bool = False) -> Iterator[int]:
    """Run a balancer before gates and return its port; ``checked`` asks each gate's ``/ready``."""
    if shutil.which("haproxy") is None:
        with _turns(ports) as port:
            yield port
        return
    port = free_port()
    check = "option httpchk\n  http-check send meth GET uri /ready hdr Host " + HOST
    watched = "check inter 100ms fall 1 rise 1" if checked else ""
    servers = "\n".join(f"  server gate{one} 127.0.0.1:{one} {watched}" for one in ports)
    config = directory / "haproxy.cfg"
    config.write_text(
        _CONFIG.format(port=port, host=HOST, check=check if checked else "", servers=servers)
    )
    process = subprocess.Popen(
        ["haproxy", "-db", "-q", "-f", str(config)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        wait_for(lambda: _accepts(port) or process.poll() is not None, what="the balancer")
        assert process.poll() is None, process.stderr and process.stderr.read()
        yield port
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        if process.stderr is not None:
            process.stderr.close()


def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


@contextlib.contextmanager
def _turns(ports: Sequence[int]) -> Iterator[int]:
    """Pass each connection on to the next gate, with one request on it."""
    listener = socket.create_server(("127.0.0.1", 0))
    following = cycle(ports)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                agent, _ = listener.accept()
                threading.Thread(
                    target=_pass_on, args=(agent, next(following)), daemon=True
                ).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def _pass_on(agent: socket.socket, port: int) -> None:
    with agent, socket.create_connection(("127.0.0.1", port)) as gate:
        head = b""
        while b"\r\n\r\n" not in head and (read := agent.recv(65_536)):
            head += read
        lines, _, rest = head.partition(b"\r\n\r\n")
        kept = [
            line
            for line in lines.split(b"\r\n")
            if not line.lower().startswith((b"host:", b"connection:"))
        ]
        own = [b"Host: " + HOST.encode(), b"Connection: close"]
        gate.sendall(b"\r\n".join([*kept, *own]) + b"\r\n\r\n" + rest)

        def up() -> None:
            with contextlib.suppress(OSError):
                while read := agent.recv(65_536):
                    gate.sendall(read)
                gate.shutdown(socket.SHUT_WR)

        threading.Thread(target=up, daemon=True).start()
        with contextlib.suppress(OSError):
            while read := gate.recv(65_536):
                agent.sendall(read)
