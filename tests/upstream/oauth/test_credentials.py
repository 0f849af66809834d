"""Tokens in use: fresh, about to end, refused, renewed by others, and gone."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from tests.support.http_upstream import Reply
from tests.support.small_oauth import SmallOAuth
from tests.support.waiting import PATIENCE_S, run_async

from thoughtgate.config.server_auth import ServerAuth
from thoughtgate.config.settings import ServerSettings
from thoughtgate.errors import PeerError
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.transports.collected_response import Response
from thoughtgate.transports.http_client import HttpPool
from thoughtgate.transports.http_heads import ResponseHead
from thoughtgate.upstream.connect import open_pool
from thoughtgate.upstream.login_access import LoginAccess
from thoughtgate.upstream.oauth import credentials

OAUTH = ServerAuth(type="oauth")
MACHINE = ServerAuth(
    type="oauth", grant="client_credentials", client_id="me", client_secret_env="SECRET"
)
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}'
HEADERS = [(b"content-type", b"application/json")]


class Gate:
    """One process of a gate, with a pool of connections to the server."""

    def __init__(self, place: Path, server: ServerSettings, environ: dict[str, str]) -> None:
        location = StoreLocation(place, environ.get("STORE", "sqlite"))
        self.logins = LoginAccess(location, environ, "KEYS")
        self.server = server
        self.pool: HttpPool = open_pool(server, environ, self.logins)

    async def call(self, who: str = "ann") -> Response:
        return await self.pool.request("POST", HEADERS, CALL, principal=who, timeout_s=PATIENCE_S)

    async def refused(self, who: str = "ann") -> PeerError:
        with pytest.raises(PeerError) as failed:
            await self.call(who)
        assert failed.value.kind == "upstream_unauthorized"
        assert "secret" not in str(failed.value)
        return failed.value

    async def login(self, oauth: SmallOAuth, who: str = "ann") -> None:
        flow = self.logins.open().login(self.server, who)
        await flow.finish(oauth.redirect(await flow.begin("http://127.0.0.1:7/callback")))

    async def close(self) -> None:
        await self.pool.close()
        await self.logins.close()


class Scene:
    """An authorization server, an MCP server, and the gates in front of it."""

    def __init__(self, place: Path, oauth: SmallOAuth) -> None:
        self.oauth = oauth
        self._place = place
        self.environ = {"KEYS": Fernet.generate_key().decode(), "SECRET": "s"}
        self.gates: list[Gate] = []

    def gate(self, auth: ServerAuth | None = None, **fields: Any) -> Gate:
        gate = Gate(self._place, self.oauth.settings(auth=auth, **fields), self.environ)
        self.gates.append(gate)
        return gate


Work = Callable[[Scene], Coroutine[Any, Any, None]]
Run = Callable[[Work], SmallOAuth]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that plays a scene."""

    def run(work: Work) -> SmallOAuth:
        async def main(oauth: SmallOAuth) -> None:
            scene = Scene(tmp_path, oauth)
            try:
                await work(scene)
            finally:
                for gate in scene.gates:
                    await gate.close()

        with SmallOAuth() as oauth:
            run_async(main(oauth))
        return oauth

    return run


@pytest.mark.parametrize("auth", [None, OAUTH])
def test_the_first_call_says_how_to_sign_in_and_the_next_works(
    run: Run, auth: ServerAuth | None
) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate(auth)
        for _ in range(2):
            error = await gate.refused()
            assert (error.cause, error.status) == ("login_required", 401)
            assert str(error) == (
                "the server needs a login (HTTP 401); run: thoughtgate login search --principal ann"
            )
        assert str(await gate.refused("local")).endswith("run: thoughtgate login search")
        # Another process signs in; the gate keeps running.
        await scene.gate(auth).login(scene.oauth)
        assert (await gate.call()).status == 200
        assert (await gate.call()).status == 200
        error = await gate.refused("https://login.example#bob")
        assert str(error).endswith(
            "run: thoughtgate login search --principal 'https://login.example#bob'"
        )

    assert len(run(work).tool_calls) == 2


def test_every_principal_has_its_own_tokens(run: Run) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate()
        for who in ("ann", "bob"):
            await gate.login(scene.oauth, who)
        for who in ("ann", "bob", "ann", "bob"):
            await gate.call(who)

    oauth = run(work)
    sent = [one.headers["authorization"] for one in oauth.tool_calls]
    assert sent == ["Bearer access-1-secret", "Bearer access-2-secret"] * 2


def test_a_fresh_token_is_a_look_up(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate()
        await gate.login(scene.oauth)
        await gate.call()
        real = gate.logins.open().credentials(gate.server)
        monkeypatch.setattr(real, "_ageing", None)
        monkeypatch.setattr(real, "_source", None)
        assert real.header("ann") == b"authorization: Bearer access-1-secret\r\n"
        monkeypatch.undo()

    run(work)


def test_a_thousand_calls_cause_one_renewal(run: Run) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate()
        await gate.login(scene.oauth)
        await gate.call()
        scene.oauth.valid.clear()
        credentials = gate.logins.open().credentials(gate.server)
        old = credentials.header("ann")
        assert old
        head = _head(scene.oauth)
        lines = await asyncio.gather(*(credentials.replace("ann", old, head) for _ in range(1000)))
        assert len(set(lines)) == 1
        assert lines[0] != old
        assert (await gate.call()).status == 200

    oauth = run(work)
    assert oauth.grants["refresh_token"] == 1
    assert not oauth.reused


async def _until(condition: Callable[[], bool]) -> None:
    """Let the event loop run until a condition holds."""
    for _ in range(int(PATIENCE_S * 100)):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the condition did not come true")


def _head(oauth: SmallOAuth) -> Any:
    return ResponseHead(401, [(b"www-authenticate", oauth.challenge.encode())])


def test_refused_calls_are_renewed_once_and_sent_again(run: Run) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate()
        await gate.login(scene.oauth)
        await gate.call()
        scene.oauth.valid.clear()
        answers = await asyncio.gather(*(gate.call() for _ in range(50)))
        assert {one.status for one in answers} == {200}

    oauth = run(work)
    assert oauth.grants["refresh_token"] == 1
    assert len(oauth.tool_calls) == 50
    assert not oauth.reused


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_gates_that_share_a_store_use_each_refresh_token_once(
    run: Run, request: pytest.FixtureRequest, engine: str
) -> None:
    async def work(scene: Scene) -> None:
        if engine == "postgres":
            scene.environ["STORE"] = request.getfixturevalue("postgres").url()
        gates = [scene.gate() for _ in range(4)]
        await gates[0].login(scene.oauth)
        for gate in gates:
            await gate.call()
        for _ in range(3):
            scene.oauth.valid.clear()
            answers = await asyncio.gather(*(gate.call() for gate in gates for _ in range(5)))
            assert {one.status for one in answers} == {200}

    oauth = run(work)
    assert oauth.grants["refresh_token"] == 3
    assert not oauth.reused


def test_a_token_is_renewed_before_it_ends_and_nobody_waits(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "SKEW_S", 0.0)
    monkeypatch.setattr(credentials, "MARGIN_S", 1e9)
    monkeypatch.setattr(credentials, "MARGIN", 0.999)

    async def work(scene: Scene) -> None:
        gate = scene.gate()
        scene.oauth.lasts = 20
        await gate.login(scene.oauth)
        async with asyncio.timeout(PATIENCE_S):
            while not scene.oauth.grants["refresh_token"]:
                assert (await gate.call()).status == 200
                await asyncio.sleep(0.01)

    oauth = run(work)
    # Only the question of the login and the first call had no token; no call found it expired.
    arrived = [one for one in oauth.received if one.path == "/mcp"]
    assert len(arrived) - len(oauth.tool_calls) == 2


def test_an_expired_token_is_renewed_before_the_call(run: Run) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate(OAUTH)
        scene.oauth.lasts = 1
        await gate.login(scene.oauth)
        scene.oauth.valid.clear()
        scene.oauth.lasts = 3600
        assert (await gate.call()).status == 200

    oauth = run(work)
    assert [one.headers["authorization"] for one in oauth.tool_calls] == ["Bearer access-2-secret"]
    assert len([one for one in oauth.received if one.path == "/mcp"]) == 2  # one asks for the login


def test_a_revoked_login_must_be_made_again(run: Run) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate()
        await gate.login(scene.oauth)
        await gate.call()
        scene.oauth.valid.clear()
        scene.oauth.refresh_tokens.clear()
        for _ in range(2):
            assert (await gate.refused()).cause == "login_required"
        assert await gate.logins.open().signed_in() == []
        await gate.login(scene.oauth)
        assert (await gate.call()).status == 200

    run(work)


def test_a_login_that_the_server_refuses_is_not_renewed_forever(run: Run) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate()
        await gate.login(scene.oauth)
        await gate.call()
        scene.oauth.accepts_tokens = False
        for _ in range(5):
            error = await gate.refused()
            assert error.cause == "login_required"
            assert "the server refused the login" in str(error)
        scene.oauth.accepts_tokens = True
        assert (await gate.call()).status == 200

    assert run(work).grants["refresh_token"] == 1


def test_a_server_cannot_have_a_login_renewed_with_every_call(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "MAX_CAUSED", 2)

    async def work(scene: Scene) -> None:
        gate = scene.gate()
        await gate.login(scene.oauth)
        assert (await gate.call()).status == 200
        for _ in range(2):
            scene.oauth.valid.clear()
            assert (await gate.call()).status == 200
        for _ in range(3):
            scene.oauth.valid.clear()
            assert "the server refused the login" in str(await gate.refused())

    assert run(work).grants["refresh_token"] == 2


def test_a_server_cannot_have_the_gate_get_further_scopes_with_every_call(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "MAX_CAUSED", 2)

    async def work(scene: Scene) -> None:
        gate = scene.gate(MACHINE)
        assert (await gate.call()).status == 200
        for number in range(2):
            scene.oauth.missing_scope = f"more-{number}"
            assert (await gate.call()).status == 200
        for number in range(3):
            scene.oauth.missing_scope = f"yet-more-{number}"
            assert (await gate.refused()).status == 403

    assert run(work).grants == {"client_credentials": 3}


def test_an_authorization_server_that_is_away_ends_no_login(run: Run) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate()
        await gate.login(scene.oauth)
        await gate.call()
        scene.oauth.valid.clear()
        scene.oauth.token_reply = Reply(503)
        error = await gate.refused()
        assert error.cause == "renewal_failed"
        scene.oauth.token_reply = None
        assert (await gate.call()).status == 200

    assert not run(work).reused


def test_a_restarted_gate_uses_the_stored_tokens(run: Run) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate()
        await gate.login(scene.oauth)
        await gate.call()
        await gate.close()
        assert (await scene.gate().call()).status == 200

    assert run(work).grants == {"authorization_code": 1}


def test_a_logout_elsewhere_is_noticed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "LOOK_S", 0.01)

    async def work(scene: Scene) -> None:
        gate, other = scene.gate(), scene.gate()
        await gate.login(scene.oauth)
        await gate.call()
        assert await other.logins.open().logout(other.server, "ann")
        assert not await other.logins.open().logout(other.server, "ann")
        real = gate.logins.open().credentials(gate.server)
        await _until(lambda: not real.header("ann"))
        await gate.refused()

    assert sorted(run(work).revoked) == ["access-1-secret", "refresh-1-secret"]


def test_a_login_with_another_account_is_noticed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "LOOK_S", 0.01)

    async def work(scene: Scene) -> None:
        gate = scene.gate()
        await gate.login(scene.oauth)
        await gate.call()
        await scene.gate().login(scene.oauth)
        real = gate.logins.open().credentials(gate.server)
        await _until(lambda: b"access-2" in (real.header("ann") or b""))

    run(work)


def test_missing_scopes_are_named_and_the_next_login_asks_for_them(run: Run) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate()
        await gate.login(scene.oauth)
        await gate.call()
        scene.oauth.missing_scope = "write"
        error = await gate.refused()
        assert (error.cause, error.status) == ("login_required", 403)
        assert "permissions" in str(error)
        await gate.login(scene.oauth)
        assert (await gate.call()).status == 200

    assert run(work).grants == {"authorization_code": 2}


def test_the_gate_signs_in_for_itself_when_it_is_needed(run: Run) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate(MACHINE)
        answers = await asyncio.gather(*(gate.call(who) for who in ("ann", "bob") * 10))
        assert {one.status for one in answers} == {200}
        scene.oauth.valid.clear()
        assert (await gate.call()).status == 200
        scene.oauth.missing_scope = "write"
        assert (await gate.call()).status == 200

    assert run(work).grants == {"client_credentials": 3}


def test_a_machine_that_is_refused_says_why(run: Run) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate(MACHINE)
        scene.oauth.token_reply = Reply(401, b'{"error": "invalid_client"}')
        error = await gate.refused()
        assert (error.cause, "invalid_client" in str(error)) == ("renewal_failed", True)

    run(work)


def test_a_server_with_other_credentials_is_left_alone(run: Run) -> None:
    async def work(scene: Scene) -> None:
        for headers in ({"Authorization": "Basic x"}, {"X-Key": "k"}):
            scene.oauth.challenge = "Basic"
            gate = scene.gate(headers=headers)
            assert (await gate.call()).status == 401

    run(work)


def test_without_a_key_the_error_says_what_to_do(run: Run, tmp_path: Path) -> None:
    async def work(scene: Scene) -> None:
        gate = Gate(tmp_path, scene.oauth.settings(), {})
        scene.gates.append(gate)
        error = await gate.refused()
        assert (error.cause, "keys.tokens_env" in str(error)) == ("login_required", True)
        assert str(error).startswith(
            "the server needs a login, and the gate cannot read its tokens"
        )

    run(work)


def test_tokens_are_not_sent_to_another_url_with_the_same_id(run: Run) -> None:
    async def work(scene: Scene) -> None:
        gate = scene.gate()
        await gate.login(scene.oauth)
        with SmallOAuth() as other:
            moved = Gate(scene._place, other.settings(), scene.environ)
            scene.gates.append(moved)
            await moved.refused()
            assert all("authorization" not in one.headers for one in other.received)

    run(work)
