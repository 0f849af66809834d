"""Logins with a real authorization server, through every product, and where tokens must not be."""

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from tests.support.authorization_server import (
    MACHINE,
    AuthorizationServer,
    Browser,
    ProtectedServer,
)
from tests.support.first_of import first_of
from tests.support.frames import initialize, notification, request
from tests.support.proxy_process import ProxyProcess, proxy_command, serve_command
from tests.support.small_oauth import SmallOAuth
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import PATIENCE_S, run_async

from thoughtgate.config.server_auth import ServerAuth
from thoughtgate.config.settings import ServerSettings
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.stores.tokens import server_key
from thoughtgate.upstream.oauth.access import OAuthAccess
from thoughtgate.upstream.oauth.discovery import canonical
from thoughtgate.upstream.oauth.tokens import SignedIn, TokenSet

KEY = Fernet.generate_key().decode()
REDIRECT = "http://127.0.0.1:7/callback"
ACCEPT = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
PRODUCTS = ("proxy --stdio", "proxy --listen", "serve --stdio", "serve --http")

Ask = Callable[[Any], Any]


@pytest.fixture
def issuer() -> Iterator[AuthorizationServer]:
    """Run the authorization server."""
    with AuthorizationServer() as server:
        yield server


@pytest.fixture
def server(issuer: AuthorizationServer) -> Iterator[ProtectedServer]:
    """Run a server that wants its tokens."""
    with ProtectedServer(issuer.url) as server:
        yield server


def _login(place: Path, server: ServerSettings, principal: str = "local") -> SignedIn:
    async def main() -> SignedIn:
        access = OAuthAccess(StoreLocation(place / "state"), {"KEY": KEY}, "KEY")
        try:
            flow = access.login(server, principal)
            back = Browser().consent(await flow.begin(REDIRECT))
            return await flow.finish(back.removeprefix("http://127.0.0.1:7"))
        finally:
            await access.close()

    return run_async(main())


class Product:
    """A running gate and its agent."""

    def __init__(
        self, ask: Ask, said: Callable[[], str], *, prefix: str, session: dict[str, str]
    ) -> None:
        self.ask = ask
        self.session = session
        """Headers of an agent on HTTP."""
        self.said = said
        """Everything that it wrote to standard error."""
        self._prefix = prefix
        self._ident = 10

    def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool of the server."""
        self._ident += 1
        params = {"name": f"{self._prefix}{tool}", "arguments": arguments}
        return self.ask(request(self._ident, "tools/call", params))


@contextmanager
def _running(place: Path, product: str, config: Path) -> Iterator[Product]:
    command, _, flag = product.partition(" ")
    build = proxy_command if command == "proxy" else serve_command
    prefix = "" if command == "proxy" else "search."
    address = () if flag == "--stdio" else ("127.0.0.1:0",)
    words = ["-c", str(config), "--state-dir", str(place / "state"), flag, *address]
    environ = {"KEY": KEY, "THOUGHTGATE_STATE_DIR": str(place / "state")}
    if flag == "--stdio":
        with StdioPeer(build(*words), env=environ) as peer:
            yield Product(
                lambda body: _ask_line(peer, body), lambda: peer.stderr, prefix=prefix, session={}
            )
        return
    with ProxyProcess(place, words, environ=environ, command=build) as gate:
        session: dict[str, str] = {}
        url = gate.url if gate.url.endswith("/mcp") else f"{gate.url}/mcp"
        yield Product(
            lambda body: _post(url, session, body),
            lambda: gate.stderr,
            prefix=prefix,
            session=session,
        )


def _ask_line(peer: StdioPeer, body: Any) -> Any:
    peer.send(body)
    if "id" not in body:
        return None
    while True:
        line = peer.read_line()
        assert line is not None, peer.stderr
        found = json.loads(line)
        if found.get("id") == body["id"] and "method" not in found:
            return found


def _post(url: str, session: dict[str, str], body: Any) -> Any:
    asked = urllib.request.Request(url, json.dumps(body).encode(), {**ACCEPT, **session})
    with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
        if "mcp-session-id" in answer.headers:
            session["mcp-session-id"] = answer.headers["mcp-session-id"]
        text = answer.read().decode()
    lines = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
    found = [json.loads(line) for line in (lines or [text]) if line.strip()]
    return next((one for one in found if one.get("id") == body.get("id")), None)


def _config(place: Path, url: str, **auth: Any) -> Path:
    path = place / "thoughtgate.yaml"
    server = {"url": url, **({"auth": auth} if auth else {})}
    document = {
        "schema": 1,
        "default": "forward",
        "servers": {"search": server},
        "keys": {"tokens_env": "KEY"},
    }
    path.write_text(json.dumps(document))
    return path


def _open(product: Product) -> Any:
    answer = product.ask(initialize(0))
    if "result" in answer:
        product.ask(notification("notifications/initialized"))
    return answer


@pytest.mark.parametrize("product", first_of(PRODUCTS[::-1]))
def test_a_login_works_at_once_and_survives_expiry_and_a_restart(
    tmp_path: Path, product: str, issuer: AuthorizationServer, server: ProtectedServer
) -> None:
    config = _config(tmp_path, server.endpoint)
    settings = ServerSettings("search", url=server.endpoint)
    said: list[str] = []
    answers: list[Any] = []
    with _running(tmp_path, product, config) as gate:
        opened = _open(gate)
        refused = opened if "error" in opened else gate.call("whoami")
        assert refused["error"]["data"]["kind"] == "upstream_unauthorized"
        answers.append(refused)
        issuer.configure(tokenLifetime=3)
        assert _login(tmp_path, settings).is_renewable
        if "error" in opened:
            assert "result" in _open(gate)
        deadline = time.monotonic() + PATIENCE_S
        while issuer.seen["grants"].get("refresh_token", 0) < 2:
            answers.append(gate.call("whoami"))
            assert "alice" in json.dumps(answers[-1]), answers[-1]
            assert time.monotonic() < deadline
        said.append(gate.said())
        running = _command_lines()
    issuer.configure(tokenLifetime=3600)
    with _running(tmp_path, product, config) as gate:
        _open(gate)
        answers.append(gate.call("whoami"))
        assert "alice" in json.dumps(answers[-1])
        issuer.revoke()
        answers.append(gate.call("whoami"))
        assert answers[-1]["error"]["data"]["kind"] == "upstream_unauthorized"
        said.append(gate.said())
    assert not issuer.seen["errors"] or "invalid_grant" in issuer.seen["errors"][-1]

    _assert_nowhere(issuer.tokens, tmp_path, [*said, json.dumps(answers), running])


def _assert_nowhere(tokens: list[str], place: Path, texts: list[str]) -> None:
    """Check that no token is in any file of the gate, nor in what it said."""
    assert len(tokens) >= 4
    files = [path for path in place.rglob("*") if path.is_file()]
    assert any(path.name == "thoughtgate.db" for path in files)
    assert any(path.name == "audit.jsonl" for path in files)
    for token in tokens:
        assert [text for text in texts if token in text] == []
        assert [path for path in files if token.encode() in path.read_bytes()] == []


def _command_lines() -> str:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue  # The process has ended.
    return "\n".join(found)


@pytest.mark.parametrize("product", first_of(["proxy --listen", "serve --stdio"]))
def test_the_gate_signs_in_for_itself(
    tmp_path: Path,
    product: str,
    issuer: AuthorizationServer,
    server: ProtectedServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ident, secret = MACHINE
    monkeypatch.setenv("MACHINE_SECRET", secret)  # for the gate that an agent starts
    auth = {
        "type": "oauth",
        "grant": "client_credentials",
        "client_id": ident,
        "client_secret_env": "MACHINE_SECRET",
        "issuer": issuer.url,
    }
    config = _config(tmp_path, server.endpoint, **auth)
    if product == "proxy --listen":
        environ = {"KEY": KEY, "MACHINE_SECRET": secret}
        with ProxyProcess(
            tmp_path, ["-c", str(config), "--listen", "127.0.0.1:0"], environ=environ
        ) as gate:
            url = gate.url if gate.url.endswith("/mcp") else f"{gate.url}/mcp"
            session: dict[str, str] = {}
            assert "result" in _post(url, session, initialize(0))
    else:
        with _running(tmp_path, product, config) as running:
            _open(running)
            assert "result" in running.call("whoami")
    assert issuer.seen["grants"].get("client_credentials") == 1


def test_the_agents_own_credentials_stay_at_the_gate(tmp_path: Path) -> None:
    with SmallOAuth() as server:
        config = _config(tmp_path, f"{server.base}/mcp")
        with _running(tmp_path, "proxy --listen", config) as gate:
            gate.session["authorization"] = "Bearer agents-own-token"
            gate.session["cookie"] = "agents-own-cookie"
            _open(gate)
            gate.call("echo")
            _login_small(tmp_path, server)
            _open(gate)
            assert "result" in gate.call("echo")
        sent = json.dumps([one.headers for one in server.received])
    assert "Bearer access-1-secret" in sent
    assert "agents-own" not in sent


def _login_small(place: Path, server: SmallOAuth) -> None:
    async def main() -> None:
        access = OAuthAccess(StoreLocation(place / "state"), {"KEY": KEY}, "KEY")
        flow = access.login(server.settings(), "local")
        await flow.finish(server.redirect(await flow.begin(REDIRECT)))
        await access.close()

    run_async(main())


def test_a_logout_revokes_and_deletes(
    tmp_path: Path, issuer: AuthorizationServer, server: ProtectedServer
) -> None:
    settings = ServerSettings("search", url=server.endpoint)
    _login(tmp_path, settings)

    async def main() -> None:
        access = OAuthAccess(StoreLocation(tmp_path / "state"), {"KEY": KEY}, "KEY")
        assert [one.server for one in await access.signed_in()] == ["search"]
        assert await access.logout(settings, "local")
        assert await access.signed_in() == []
        assert not await access.logout(settings, "local")
        await access.close()

    run_async(main())
    assert issuer.seen["revoked"] == 2


def test_a_login_on_another_device(
    tmp_path: Path, issuer: AuthorizationServer, server: ProtectedServer
) -> None:
    settings = ServerSettings("search", url=server.endpoint)

    async def main() -> None:
        access = OAuthAccess(StoreLocation(tmp_path / "state"), {"KEY": KEY}, "KEY")
        flow = access.login(settings, "local")
        prompt = await flow.begin_device()
        Browser().enter_code(prompt.verification_uri, prompt.user_code)
        assert (await flow.finish_device()).is_renewable
        await access.close()

    run_async(main())
    assert issuer.seen["accessTokens"]


def test_a_configured_client_is_used(
    tmp_path: Path, issuer: AuthorizationServer, server: ProtectedServer
) -> None:
    auth = ServerAuth(type="oauth", client_id="registered-app", client_secret_env="APP")
    settings = ServerSettings("search", url=server.endpoint, auth=auth)

    async def main() -> None:
        environ = {"KEY": KEY, "APP": "registered-app-secret"}
        access = OAuthAccess(StoreLocation(tmp_path / "state"), environ, "KEY")
        flow = access.login(settings, "local")
        back = Browser().consent(await flow.begin("http://127.0.0.1:7/callback"))
        await flow.finish(back.removeprefix("http://127.0.0.1:7"))
        await access.close()

    run_async(main())
    assert issuer.seen["registered"] == 0


def test_the_secret_of_the_config_is_sent_to_its_issuer_only(tmp_path: Path) -> None:
    environ = {"KEY": KEY, "APP": "secret-of-app"}

    async def main(evil: SmallOAuth) -> None:
        access = OAuthAccess(StoreLocation(tmp_path / "state"), environ, "KEY")
        # An authorization server that a server chose gives the gate the id of a known client.
        other = evil.settings(auth=ServerAuth(type="oauth", client_id="app"))
        flow = access.login(other, "local")
        await flow.finish(evil.redirect(await flow.begin(REDIRECT)))
        auth = ServerAuth(
            "oauth", client_id="app", client_secret_env="APP", issuer="https://i.test"
        )
        server = evil.settings(auth=auth)
        store = await access.opened()
        stored = store.find("local", server_key(canonical(server.url)))
        assert stored is not None
        tokens = TokenSet.from_json(stored.body)
        tokens = replace(tokens, client=replace(tokens.client, auth_method="client_secret_post"))
        await access.refreshed(tokens, server)
        assert await access.logout(server, "local")
        await access.close()

    with SmallOAuth() as evil:
        run_async(main(evil))
        assert evil.grants["refresh_token"] == 1
        assert "secret-of-app" not in str([evil.forms, evil.clients])


@pytest.mark.parametrize(
    ("setting", "by_agent", "port"),
    [
        ("", False, 3128),
        ("", True, 0),
        ("environment", True, 3128),
        ("none", False, 0),
        ("http://other.example:8080", True, 8080),
    ],
)
def test_requests_of_a_login_take_the_proxy_of_the_server(
    tmp_path: Path, setting: str, port: int, *, by_agent: bool
) -> None:
    environ = {"HTTPS_PROXY": "http://proxy.example:3128", "NO_PROXY": "near.example"}
    location = StoreLocation(tmp_path, ignores_environment=by_agent)
    server = ServerSettings("search", url="https://mcp.example/mcp", proxy=setting)
    fetcher = OAuthAccess(location, environ)._fetcher(server)
    found = fetcher.choose_proxy("https://issuer.example/token")
    assert (found.port if found is not None else 0) == port
    if setting != "http://other.example:8080":
        assert fetcher.choose_proxy("https://near.example/token") is None
