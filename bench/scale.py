"""Several gates on one PostgreSQL: what sharing costs, and how soon a decision arrives elsewhere.

The server is started here, from Debian's package, with its own folder and with every commit
flushed to disk. Where it cannot be had, the family is left out and says so.
"""

import contextlib
import http.client
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from bench.figure import Figure, percentile
from bench.http import (
    CONNECTIONS,
    HOST,
    costs,
    free_port,
    in_turns,
    ratio_of,
    rules_of,
    running,
    started,
    upstream_server,
)
from bench.load import BODY, HEADERS, Variant
from tests.support.postgres import PostgresServer, programs

from thoughtgate.core.approval import PENDING, Vote
from thoughtgate.policy.call import Call
from thoughtgate.policy.limits import Limit
from thoughtgate.policy.shared_limits import SharedLimitState
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.limits import LimitStore
from thoughtgate.stores.open_database import StoreLocation, open_database

SQLITE: Final = "one gate, SQLite"
POSTGRES: Final = "one gate, PostgreSQL"
BUDGET: Final = "one gate, PostgreSQL, with a budget"
ONE: Final = "one gate behind a balancer"
THREE: Final = "three gates behind a balancer"
PATIENCE_S: Final = 30.0

_BUDGET: Final = "limits:\n  - {id: day, tool: '*', budget: 100000000/1d}\n"
_HELD: Final = "rules:\n  - {tool: '*', action: approve}\n"

_BALANCER: Final = """
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend agents
  bind {host}:{port}
  http-request set-header Host {host}
  default_backend gates
backend gates
  balance roundrobin
{servers}
"""


def measure(*, quick: bool) -> Iterable[Figure]:
    """Measure a call with either store, decisions across gates, and three gates beside one."""
    if programs() is None:
        print("scale is left out: PostgreSQL is not installed (make postgresql)", file=sys.stderr)
        return
    calls = 1_000 if quick else 3_000
    server = PostgresServer("fsync=on", "full_page_writes=on")
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        stack.callback(server.remove)
        server.start()
        place = Path(name)
        upstream = stack.enter_context(upstream_server(place))
        setup = _Setup(stack, place, upstream, server)
        yield from _stores(setup, calls)
        yield from _portions(setup, calls)
        yield from _decisions(setup, 50 if quick else 300)
        yield from _balanced(setup, calls)


class _Setup:
    """What all measurements need."""

    def __init__(
        self, stack: contextlib.ExitStack, place: Path, upstream: str, server: PostgresServer
    ) -> None:
        self.stack = stack
        self.place = place
        self.upstream = upstream
        self.server = server
        self._keys = place / "keys"
        self._keys.touch(0o600)
        self._keys.write_text("0f" * 32 + "\n")
        self._number = 0

    def gate(self, rules: str, store: str = "") -> tuple[int, int]:
        """Start a proxy; return its process and its port."""
        self._number += 1
        text = f"{rules}store: '{store}'\nkeys: {{file: '{self._keys}'}}\n" if store else rules
        folder = self.place / f"gate{self._number}"
        made = self.stack.enter_context(started(folder, self.upstream, text, "proxy"))
        return made.pid, made.port

    def variant(self, name: str, rules: str, store: str = "") -> Variant:
        """Start a proxy that is loaded."""
        pid, port = self.gate(rules, store)
        return Variant(name, f"http://{HOST}:{port}/mcp", (pid,))


def _stores(setup: _Setup, calls: int) -> Iterable[Figure]:
    """Compare a call with both stores: without a limit there must be no round trip."""
    url = setup.server.url()
    variants = [
        setup.variant(SQLITE, rules_of(100)),
        setup.variant(POSTGRES, rules_of(100), url),
        setup.variant(BUDGET, rules_of(100) + _BUDGET, setup.server.url()),
    ]
    found = in_turns(variants, calls, CONNECTIONS)
    for name, loads in found.items():
        yield Figure(f"CPU a call, {name}", statistics.median(costs(loads)), "µs")
    ratio = ratio_of(costs(found[POSTGRES]), costs(found[SQLITE]))
    yield Figure(f"CPU a call, {POSTGRES} / SQLite", ratio, "times", 1.05)
    ratio = ratio_of(costs(found[BUDGET]), costs(found[POSTGRES]))
    yield Figure("CPU a call with a budget / without", ratio, "times")


def _portions(setup: _Setup, calls: int) -> Iterable[Figure]:
    """Count how often the store is asked for the calls of a budget."""
    database = open_database(StoreLocation(setup.place, setup.server.url()))
    counts = LimitStore(database, "", "gate|bench")
    state = SharedLimitState([Limit("day", budget=10_000)], counts)
    call, portions, left = Call("s", "tool", "x", {}), 0, 0
    for _ in range(calls):
        if state.take((call,), time.time()) is not None:
            raise RuntimeError("a call within the budget was refused")
        held = sum(lease.calls for lease in state.leases[0].values())
        portions += held != left - 1
        left = held
    asked = counts.transactions
    state.close()
    yield Figure("store transactions per 1,000 calls of a budget", asked * 1000 / calls, "times")
    yield Figure("store transactions per portion", asked / portions, "times", 1.0)


def _decisions(setup: _Setup, count: int) -> Iterable[Figure]:
    """Time from a vote, cast elsewhere, to the answer of the call that it lets run."""
    url = setup.server.url()
    _, port = setup.gate(_HELD, url)
    store = ApprovalStore(open_database(StoreLocation(setup.place, url)))
    taken = []
    for number in range(count):
        done: list[float] = []
        caller = threading.Thread(target=_call, args=(port, number, done), daemon=True)
        caller.start()
        deadline = time.monotonic() + PATIENCE_S
        while not (pending := store.listed(PENDING)):
            if time.monotonic() > deadline:
                raise TimeoutError("no approval was asked for")
            time.sleep(0.002)
        voted = time.monotonic()
        at = time.time()
        store.vote(pending[0].id, [Vote("console:bench", approve=True, at=at)], at)
        caller.join(PATIENCE_S)
        taken.append((done[0] - voted) * 1000)
    store.close()
    yield Figure("approve to executed across processes, p50", percentile(taken, 0.5), "ms")
    yield Figure("approve to executed across processes, p99", percentile(taken, 0.99), "ms", 500.0)


def _call(port: int, number: int, done: list[float]) -> None:
    connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE_S)
    headers = {name.decode(): value.decode() for name, value in HEADERS}
    connection.request("POST", "/mcp", BODY % number, headers)
    answer = json.loads(connection.getresponse().read())
    if "result" not in answer:
        raise RuntimeError(f"the call was not made: {answer}")
    done.append(time.monotonic())
    connection.close()


def _balanced(setup: _Setup, calls: int) -> Iterable[Figure]:
    """Compare the throughput of three gates with that of one, behind the same balancer."""
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if program is None:
        print("scale: the balancer is left out, HAProxy is not installed", file=sys.stderr)
        return
    url = setup.server.url()
    hosts = f"{rules_of(100)}listen: {{hosts: ['{HOST}']}}\n"
    gates = [setup.gate(hosts, url) for _ in range(3)]
    variants = []
    for name, chosen in ((ONE, gates[:1]), (THREE, gates)):
        port = setup.stack.enter_context(_balancer(program, setup.place, chosen))
        pids = tuple(pid for pid, _ in chosen)
        variants.append(Variant(name, f"http://{HOST}:{port}/mcp", pids))
    found = in_turns(variants, calls, CONNECTIONS)
    rates = {name: [load.per_second for load in loads] for name, loads in found.items()}
    for name, rate in rates.items():
        yield Figure(f"calls a second, {name}", statistics.median(rate), "/s")
    ratio = ratio_of(rates[THREE], rates[ONE])
    yield Figure("throughput, three gates / one", ratio, "times", 0.9, at_least=True)


@contextlib.contextmanager
def _balancer(program: str, place: Path, gates: list[tuple[int, int]]) -> Iterator[int]:
    port = free_port()
    servers = "\n".join(f"  server g{port} {HOST}:{port}" for _, port in gates)
    config = place / f"haproxy{port}.cfg"
    config.write_text(_BALANCER.format(host=HOST, port=port, servers=servers))
    with running([program, "-db", "-q", "-f", str(config)], port, stderr=subprocess.DEVNULL):
        yield port
