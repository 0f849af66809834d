"""Limits that hold over the workers of a proxy and over several proxies: real processes."""

import http.client
import json
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import thoughtgate
from tests.support.gate_cluster import write_keys
from tests.support.http_gate import ACCEPT, call_of, config_for
from tests.support.http_upstream import HttpUpstream, Received, Reply, text_result
from tests.support.postgres import PostgresServer
from tests.support.proxy_process import ProxyProcess, environment
from tests.support.waiting import wait_for


def _post(port: int, tool: str = "echo", **arguments: Any) -> str:
    """Return ``passes``, or the kind of the error."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {"content-type": "application/json", "accept": ACCEPT}
    body = call_of(tool)
    body["params"]["arguments"] = arguments
    try:
        connection.request("POST", "/mcp", json.dumps(body), headers)
        answer = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException):
        return "gone"
    finally:
        connection.close()
    return str(answer["error"]["data"]["kind"]) if "error" in answer else "passes"


def _calls(ports: Sequence[int], count: int) -> Counter[str]:
    """Make calls from several threads, to each port in turn."""
    with ThreadPoolExecutor(8) as pool:
        places = [ports[number % len(ports)] for number in range(count)]
        return Counter(pool.map(lambda one: _post(one[1], n=one[0]), enumerate(places)))


def _config(directory: Path, url: str, limits: str, store: str = "sqlite") -> str:
    directory.mkdir(exist_ok=True)
    path = directory / "thoughtgate.yaml"
    keys = write_keys(directory / "keys")
    shared = f"store: '{store}'\nkeys: {{file: '{keys}'}}\n"
    path.write_text(config_for(url, f"limits: {limits}\n{shared}"), "utf-8")
    return str(path)


def _answer(received: Received) -> Reply:
    return text_result(received, "x")


class Proxies:
    """Several proxies on one PostgreSQL, each with its own state directory."""

    def __init__(self, stack: ExitStack, directory: Path, url: str, store: str) -> None:
        self._stack = stack
        self._directory = directory
        self._url = url
        self._store = store
        self.directories: list[Path] = []

    def add(self, limits: str, count: int = 1) -> list[ProxyProcess]:
        """Start proxies with these limits."""
        started = []
        for _ in range(count):
            place = self._directory / f"gate{len(self.directories)}"
            self.directories.append(place)
            config = _config(place, self._url, limits, self._store)
            arguments = ["-c", config, "--listen", "127.0.0.1:0"]
            started.append(ProxyProcess(place, arguments))
        return [self._stack.enter_context(one) for one in started]


@pytest.fixture
def proxies(tmp_path: Path, postgres: PostgresServer, request: pytest.FixtureRequest) -> Any:
    script: Callable[[Received], Reply] = getattr(request, "param", _answer)
    with ExitStack() as stack:
        upstream = stack.enter_context(HttpUpstream(script))
        made = Proxies(stack, tmp_path, upstream.url, postgres.url())
        yield made, upstream


def test_a_budget_holds_over_the_workers_of_one_proxy(tmp_path: Path) -> None:
    with HttpUpstream(_answer) as upstream:
        config = _config(tmp_path, upstream.url, "[{id: all, budget: 10}]")
        arguments = ["-c", config, "--listen", "127.0.0.1:0", "--workers", "4"]
        with ProxyProcess(tmp_path, arguments) as proxy:
            wait_for(lambda: proxy.stderr.count("listening on") == 4, what="all workers")
            counted = _calls([proxy.port], 400)
            assert counted == {"passes": 10, "budget": 390}
            assert len([one for one in upstream.received if one.tool]) == 10
            assert proxy.stop() == 0
        # A new run starts anew.
        with ProxyProcess(tmp_path, arguments) as proxy:
            wait_for(lambda: proxy.stderr.count("listening on") == 4, what="all workers")
            assert _calls([proxy.port], 40)["passes"] == 10


def test_a_budget_holds_over_three_proxies_of_which_one_is_killed(
    proxies: tuple[Proxies, HttpUpstream],
) -> None:
    made, upstream = proxies
    gates = made.add("[{id: all, budget: 10}]", 3)
    ports = [one.port for one in gates]

    def kill() -> None:
        wait_for(lambda: len(upstream.received) >= 4, what="some calls")
        gates[1].process.send_signal(signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    counted = _calls(ports, 1000)
    killer.join(60)
    forwarded = len([one for one in upstream.received if one.tool])
    assert forwarded <= 10
    assert counted["passes"] <= forwarded
    assert counted["budget"] > 500


def test_a_rate_and_a_duplicate_hold_over_two_proxies(
    proxies: tuple[Proxies, HttpUpstream],
) -> None:
    made, upstream = proxies
    one, other = made.add(
        "[{id: slow, tool: echo, rate: 5/h}, {id: once, tool: secret, duplicate: 10m}]", 2
    )
    counted = _calls([one.port, other.port], 40)
    assert counted == {"passes": 5, "rate_limited": 35}
    assert [_post(gate.port, "secret", a=1) for gate in (one, other)] == ["passes", "duplicate"]
    with ThreadPoolExecutor(8) as pool:
        ports = [one.port, other.port] * 8
        raced = Counter(pool.map(lambda port: _post(port, "secret", a=2), ports))
    assert raced == {"passes": 1, "duplicate": 15}
    assert len([call for call in upstream.received if call.tool == "secret"]) == 2


def _failing(received: Received) -> Reply:
    return Reply(status=500)


@pytest.mark.parametrize("proxies", [_failing], indirect=True)
def test_a_breaker_that_opens_at_one_proxy_refuses_at_the_other(
    proxies: tuple[Proxies, HttpUpstream],
) -> None:
    made, _ = proxies
    one, other = made.add("[{id: health, breaker: {failures: 3, within: 5m, cooldown: 5m}}]", 2)
    # The other proxy has a fresh view of the breakers, and must learn of the change.
    assert _post(other.port) not in {"passes", "breaker"}
    assert [_post(one.port) == "breaker" for _ in range(3)] == [False, False, True]
    wait_for(lambda: _post(other.port) == "breaker", 5.0, what="the other proxy")


@pytest.mark.long
def test_a_proxy_goes_on_with_what_it_has_leased_while_the_database_is_away(
    tmp_path: Path,
) -> None:
    server = PostgresServer()
    with ExitStack() as stack:
        stack.callback(server.remove)
        server.start()
        upstream = stack.enter_context(HttpUpstream(_answer))
        made = Proxies(stack, tmp_path, upstream.url, server.url())
        (gate,) = made.add("[{id: all, tool: echo, budget: 10000}]")
        assert _calls([gate.port], 200) == {"passes": 200}
        server.stop()
        kinds = [_post(gate.port, n=number) for number in range(2000)]
        passed = kinds.index("service_unavailable")
        assert set(kinds[:passed]) <= {"passes"}
        assert set(kinds[passed:]) == {"service_unavailable"}
        assert _post(gate.port, "secret") == "passes"
        server.start()
        wait_for(lambda: _post(gate.port, n="again") == "passes", what="the database")
        assert passed + 202 == len([one for one in upstream.received if one.tool])


def test_a_budget_starts_anew_with_its_window_and_after_a_reset(
    proxies: tuple[Proxies, HttpUpstream],
) -> None:
    made, _ = proxies
    gates = made.add("[{id: all, tool: echo, budget: 5}, {id: s, tool: secret, budget: 2/2s}]", 2)
    ports = [one.port for one in gates]
    assert _calls(ports, 20)["passes"] == 5
    config = str(made.directories[0] / "thoughtgate.yaml")
    environ = environment(made.directories[0])
    listed = _limits(environ, "list", "-c", config, "--json")
    assert [one["used"] for one in json.loads(listed)[0]["counts"]] == [5]
    assert _limits(environ, "reset", "all", "-c", config) == "Limit all is reset.\n"
    # A gate remembers a refusal for less than a second.
    wait_for(lambda: _post(ports[1], n="first") == "passes", 5.0, what="the reset")
    wait_for(lambda: _post(ports[0], n="second") == "passes", 5.0, what="the reset")
    assert _calls(ports, 20)["passes"] == 3
    for window in range(2):
        wait_for(lambda: _post(ports[0], "secret") == "passes", 10.0, what=f"window {window}")
        wait_for(lambda: _post(ports[1], "secret") == "budget", 10.0, what="the end of the budget")


def _limits(environ: dict[str, str], *arguments: str) -> str:
    command = thoughtgate("limits", *arguments)
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
