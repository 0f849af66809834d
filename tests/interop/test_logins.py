"""A remote server that needs a login, through every product: one ``login``, then calls work.

The authorization server is npm's ``oidc-provider``, the server the official SDK's.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest
from tests.support.authorization_server import AuthorizationServer, ProtectedServer
from tests.support.commands import AGENT, thoughtgate
from tests.support.first_of import first_of
from tests.support.frames import call, initialize, request
from tests.support.http_agent import HttpAgent
from tests.support.logins import KEY, KEY_ENV, Household, find_leaks
from tests.support.proxy_process import ProxyProcess, proxy_command, serve_command
from tests.support.real_agents import QUIET, program
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for
from tests.support.wraps import Machine, WrappedAgent


@pytest.fixture(scope="module")
def issuer() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as server:
        yield server


@pytest.fixture(scope="module")
def protected(issuer: AuthorizationServer) -> Iterator[ProtectedServer]:
    with ProtectedServer(issuer.url) as server:
        yield server


@pytest.fixture
def home(tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer) -> Household:
    issuer.configure(tokenLifetime=3600)
    return Household(tmp_path, issuer, protected)


class Agent(Protocol):
    """Asks one question at a time."""

    def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request."""


class Gate:
    """A running gate of some product, and an agent in front of it."""

    def __init__(self, agent: Agent, prefix: str = "") -> None:
        self.agent = agent
        self.prefix = prefix
        self._number = 100

    def reconnect(self) -> None:
        """Open a session again, as an agent over HTTP does whose session the server does not know.

        Everybody else has a gate that does it.
        """
        if isinstance(self.agent, HttpAgent) and not self.prefix:
            self.agent.session = ""
            self.agent.greet()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool of the protected server."""
        self._number += 1
        return self.agent.ask(call(self._number, f"{self.prefix}{tool}", arguments))

    def text(self, tool: str, **arguments: Any) -> str:
        """Call a tool and return its text."""
        answer = self.call(tool, **arguments)
        assert "result" in answer, answer
        text: str = answer["result"]["content"][0]["text"]
        return text

    def tools(self) -> list[str]:
        """List the tools."""
        self._number += 1
        listed = self.agent.ask(request(self._number, "tools/list"))
        return [tool["name"] for tool in listed.get("result", {}).get("tools", [])]

    def refused(self, tool: str = "whoami", **arguments: Any) -> dict[str, Any]:
        """Call a tool that fails and return the error."""
        answer = self.call(tool, **arguments)
        assert "error" in answer, answer
        error: dict[str, Any] = answer["error"]
        return error


@contextmanager
def http_gate(home: Household, command: Any, prefix: str) -> Iterator[Gate]:
    listen = "--listen" if command is proxy_command else "--http"
    words = ["-c", str(home.config), listen, "127.0.0.1:0"]
    environ = {**home.env}
    with ProxyProcess(home.directory, words, environ=environ, command=command) as process:
        agent = HttpAgent(process.port)
        agent.greet()
        yield Gate(agent, prefix)


@contextmanager
def stdio_gate(home: Household, product: str, prefix: str) -> Iterator[Gate]:
    words = (product, "--stdio", "-c", str(home.config), "--state-dir", str(home.state))
    # With an agent in between, because the test is also the person outside who signs in.
    with StdioPeer([*AGENT, *thoughtgate(*words)], env=home.env, cwd=home.directory) as peer:
        peer.ask(initialize(1))
        peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        yield Gate(peer, prefix)


WHAT_TO_DO = "run: thoughtgate login search"

PRODUCTS = ("proxy-http", "proxy-stdio", "serve-http", "serve-stdio")


@contextmanager
def gate_of(home: Household, product: str) -> Iterator[Gate]:
    """Start a product in front of the protected server."""
    name, _, transport = product.partition("-")
    prefix = "search." if name == "serve" else ""
    with ExitStack() as stack:
        if transport == "stdio":
            yield stack.enter_context(stdio_gate(home, name, prefix))
        else:
            command = proxy_command if name == "proxy" else serve_command
            yield stack.enter_context(http_gate(home, command, prefix))


@pytest.mark.parametrize("product", first_of(PRODUCTS))
def test_after_one_login_calls_work_without_a_restart(home: Household, product: str) -> None:
    with gate_of(home, product) as gate:
        error = gate.refused()
        assert WHAT_TO_DO in json.dumps(error)
        assert error["data"]["kind"] == "upstream_unauthorized"
        assert error["data"]["cause"] == "login_required"
        assert json.loads(home.run("status", "--json").stdout)["needed_logins"] == ["search"]
        assert "server search needs a login" in home.run("status").stdout

        home.log_in()

        gate.reconnect()  # The server had refused the handshake.
        assert gate.text("whoami") == "alice"
        assert f"{gate.prefix}whoami" in gate.tools()
    with gate_of(home, product) as gate:  # after a restart
        assert gate.text("whoami") == "alice"
    # What the gate said in the server's place was not taken for the server's own words.
    record = (home.state / "audit.jsonl").read_text("utf-8")
    assert "whoami" in record
    assert "definition_changed" not in record


URLS: dict[str, Any] = {"elicitation": {"url": {}}}


@pytest.mark.parametrize("product", ["proxy", "serve"])
def test_a_client_that_opens_urls_is_led_to_the_console(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer, product: str
) -> None:
    token = {"issuer": "https://i.example", "audience": "a", "jwks_url": "https://i.example/k"}
    console = {"public_url": "https://console.example", "sign_in": {"jwt": token}}
    home = Household(tmp_path, issuer, protected, console=console)
    prefix = "search." if product == "serve" else ""
    with http_gate(home, serve_command if prefix else proxy_command, prefix) as gate:
        assert isinstance(gate.agent, HttpAgent)
        assert gate.refused()["code"] != -32042
        gate.agent.session = ""
        opening = initialize(1)
        opening["params"]["capabilities"] = URLS
        # The proxy passes the handshake on, so that is what the server refuses.
        refused = gate.agent.ask(opening)
        gate.agent.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        error = gate.refused() if product == "serve" else refused["error"]
    assert error["code"] == -32042
    assert error["data"]["elicitations"][0]["url"] == "https://console.example/servers"


@pytest.mark.parametrize("product", ["proxy", "serve"])
def test_an_agent_on_stdio_hears_of_the_tools_once_somebody_has_signed_in(
    home: Household, product: str
) -> None:
    words = (product, "--stdio", "-c", str(home.config), "--state-dir", str(home.state))
    with StdioPeer([*AGENT, *thoughtgate(*words)], env=home.env, cwd=home.directory) as peer:
        welcome = peer.ask(initialize(1))["result"]
        peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = peer.ask(request(2, "tools/list"))
        if product == "proxy":
            assert WHAT_TO_DO in welcome["instructions"]
            assert WHAT_TO_DO in json.dumps(listed["error"])
        else:
            assert "search.echo" not in json.dumps(listed["result"])

        home.log_in()

        changed = "notifications/tools/list_changed"
        wait_for(lambda: peer.receive().get("method") == changed, what="the notification")
        tools = peer.ask(request(3, "tools/list"))["result"]["tools"]
        names = {tool["name"].removeprefix("search.") for tool in tools}
        assert names >= {"echo", "whoami", "write"}


@pytest.mark.parametrize("product", first_of(PRODUCTS[::-1]))
def test_tokens_that_expire_or_are_revoked_are_renewed(home: Household, product: str) -> None:
    home.issuer.configure(tokenLifetime=2)
    home.log_in()
    refreshed = home.issuer.seen["grants"].get("refresh_token", 0)
    with gate_of(home, product) as gate:
        assert gate.text("whoami") == "alice"
        wait_for(
            lambda: (
                gate.text("whoami") == "alice"
                and home.issuer.seen["grants"].get("refresh_token", 0) > refreshed
            ),
            what="a renewal",
        )
        home.issuer.configure(tokenLifetime=3600)
        home.issuer.revoke("AccessToken")
        assert gate.text("whoami") == "alice"
        home.issuer.revoke()
        assert WHAT_TO_DO in json.dumps(gate.refused())
        home.log_in(account="bob")
        gate.reconnect()  # The session was alice's.
        assert gate.text("whoami") == "bob"
        assert home.run("logout", "search").returncode == 0
        wait_for(lambda: "error" in gate.call("whoami"), what="the end of the login")
    assert not [one for one in home.issuer.seen["errors"] if "already used" in one]


@pytest.mark.parametrize("command", first_of([serve_command, proxy_command]))
def test_each_principal_has_a_login_of_their_own(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer, command: Any
) -> None:
    auth = {"type": "ip_allowlist", "allow": ["127.0.0.0/8"]}
    listen = {"transport": "http", "auth": auth}
    home = Household(tmp_path, issuer, protected, listen=listen)
    people = {"127.0.0.2": "alice", "127.0.0.3": "bob"}
    for address, account in people.items():
        home.log_in("--principal", f"ip:{address}", account=account)
    prefix = "search." if command is serve_command else ""
    flag = "--http" if command is serve_command else "--listen"
    words = ["-c", str(home.config), flag, "127.0.0.1:0"]
    with ProxyProcess(tmp_path, words, environ=home.env, command=command) as process:
        for _ in range(2):
            for address, account in people.items():
                agent = HttpAgent(process.port, source=address)
                agent.greet()
                gate = Gate(agent, prefix)
                assert gate.text("whoami") == account
                assert f"{prefix}whoami" in gate.tools()
        stranger = HttpAgent(process.port, source="127.0.0.4")
        stranger.greet()
        assert WHAT_TO_DO in json.dumps(Gate(stranger, prefix).refused())


def test_a_call_that_needs_more_is_told_so_and_works_after_the_next_login(
    home: Household,
) -> None:
    home.log_in()
    with gate_of(home, "proxy-http") as gate:
        error = gate.refused("write", text="x")
        assert "HTTP 403" in json.dumps(error)
        assert WHAT_TO_DO in json.dumps(error)

        assert home.log_in()["scopes"] == ["tools:read", "tools:write"]

        gate.call(
            "write", text="x"
        )  # The gate learns of the login; the session was of the old one.
        gate.reconnect()
        assert gate.text("write", text="x") == "wrote x"


def test_no_token_is_anywhere(home: Household, tmp_path: Path) -> None:
    said = json.dumps(home.log_in())
    for product in PRODUCTS:
        with gate_of(home, product) as gate:
            gate.text("echo", text="hello")
            said += json.dumps(gate.tools())
            assert find_leaks(home.issuer.tokens, tmp_path, texts=said) == []
    said += home.run("status").stdout + home.run("status", "--json").stdout
    said += home.run("logout", "search").stdout

    assert find_leaks([*home.issuer.tokens, KEY], tmp_path, texts=said) == []


def test_a_remote_server_of_a_wrapped_agent_works_after_one_login(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer
) -> None:
    policy = {"schema": 1, "default": "forward", "keys": {"tokens_env": KEY_ENV}}
    machine = Machine(tmp_path, json.dumps(policy))
    machine.write_config({"far": {"type": "http", "url": protected.endpoint}})
    home = Household(tmp_path / "home", issuer, protected)
    home.config, home.state = machine.policy, machine.state
    home.env.update(machine.env)

    with machine_wrap(machine, home) as run:
        run.open()
        error = run.call("whoami", server="far")["error"]
        assert "run: thoughtgate login far" in json.dumps(error)
        home.log_in(server="far")
        assert run.call("whoami", server="far")["result"]["content"][0]["text"] == "alice"
        assert find_leaks([*issuer.tokens, KEY], tmp_path, texts=run.stderr) == []
        assert run.finish() == 0
    assert find_leaks([*issuer.tokens, KEY], tmp_path, texts=run.stderr) == []


def test_a_wrapped_agent_that_opens_urls_is_led_to_the_console(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer
) -> None:
    policy = {"schema": 1, "default": "forward", "keys": {"tokens_env": KEY_ENV}}
    machine = Machine(tmp_path, json.dumps(policy))
    machine.write_config({"far": {"type": "http", "url": protected.endpoint}})
    home = Household(tmp_path / "home", issuer, protected)
    with machine_wrap(machine, home) as run:
        run.open(greet=False)
        opening = initialize(1)["params"] | {"capabilities": URLS}
        run.order("ask", method="initialize", params=opening, server="far")
        error = run.call("whoami", server="far")["error"]
        page = error["data"]["elicitations"][0]["url"]
        shown = urlsplit(page)
        assert (error["code"], shown.path, shown.query, shown.fragment) == (
            -32042,
            "/servers",
            "",
            "",
        )
        # The page is of no use to whoever has not signed in to the console.
        connection = HTTPConnection(shown.netloc, timeout=30)
        connection.request("GET", shown.path)
        answer = connection.getresponse()
        assert (answer.status, b"server-sign-in" in answer.read()) == (401, False)
        connection.close()


def machine_wrap(machine: Machine, home: Household) -> WrappedAgent:
    words = ["--agent-type", "custom", "--config-path", str(machine.config)]
    command = thoughtgate("wrap", *words, "--", *machine.agent())
    run = WrappedAgent.__new__(WrappedAgent)
    run.machine = machine
    run.peer = StdioPeer(command, env={**machine.env, KEY_ENV: KEY}, cwd=machine.project)
    run.agent_pid, run.shims = 0, {}
    del home
    return run


@pytest.mark.long
def test_claude_lists_the_server_as_connected_after_one_login(
    tmp_path: Path, issuer: AuthorizationServer, protected: ProtectedServer
) -> None:
    claude = program("claude")
    policy = {"schema": 1, "default": "forward", "keys": {"tokens_env": KEY_ENV}}
    machine = Machine(tmp_path, json.dumps(policy))
    servers = {"far": {"type": "http", "url": protected.endpoint}}
    machine.write_config(servers, path=machine.home / ".claude.json")
    home = Household(tmp_path / "home", issuer, protected)
    home.config, home.state = machine.policy, machine.state
    home.env.update({**machine.env, **QUIET})

    def listed() -> str:
        words = thoughtgate("wrap", "--", str(claude), "mcp", "list")
        with StdioPeer(words, env=home.env, cwd=machine.project) as peer:
            assert peer.finish() == 0, peer.stderr
            return b"\n".join(peer.remaining_lines()).decode()

    def is_connected() -> bool:
        shown = listed()
        return "Connected" in shown and "failed" not in shown

    assert "tools fetch failed" in listed()
    issuer.configure(tokenLifetime=2)
    home.log_in(server="far")
    # Every ``wrap`` is another run of the gate, so the login survives restarts.
    assert is_connected()
    renewed = issuer.seen["grants"].get("refresh_token", 0)
    wait_for(
        lambda: is_connected() and issuer.seen["grants"].get("refresh_token", 0) > renewed,
        120,
        what="a list after a token has expired",
    )
    issuer.configure(tokenLifetime=3600)
    issuer.revoke("AccessToken")
    assert is_connected()
    issuer.revoke()
    assert "tools fetch failed" in listed()
    home.log_in(server="far")
    assert is_connected()
    assert find_leaks([*issuer.tokens, KEY], tmp_path) == []
