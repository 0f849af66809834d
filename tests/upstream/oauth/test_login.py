"""Signing in, step by step, with an authorization server that may misbehave."""

import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from cryptography.fernet import Fernet
from tests.support.http_upstream import HttpUpstream, Reply
from tests.support.small_oauth import SmallOAuth
from tests.support.waiting import run_async

from thoughtgate.config.server_auth import ServerAuth
from thoughtgate.config.settings import ServerSettings
from thoughtgate.errors import LoginError
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.upstream.oauth import login
from thoughtgate.upstream.oauth.access import OAuthAccess
from thoughtgate.upstream.oauth.credentials import GATE

REDIRECT = "http://127.0.0.1:7/callback"
MACHINE = ServerAuth(
    type="oauth", grant="client_credentials", client_id="me", client_secret_env="SECRET"
)

Work = Callable[[OAuthAccess], Coroutine[Any, Any, None]]


@pytest.fixture
def run(tmp_path: Path) -> Callable[[Work], None]:
    """Return a function that runs work with an empty store."""
    environ = {"KEYS": Fernet.generate_key().decode(), "SECRET": "s"}

    def run(work: Work) -> None:
        async def main() -> None:
            access = OAuthAccess(StoreLocation(tmp_path), environ, "KEYS")
            try:
                await work(access)
            finally:
                await access.close()

        run_async(main())

    return run


def _asked(link: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(link).query))


def test_a_login_with_a_browser(run: Callable[[Work], None]) -> None:
    async def work(access: OAuthAccess) -> None:
        async with access.login(server.settings(), "ann") as flow:
            link = await flow.begin(REDIRECT)
            signed_in = await flow.finish(server.redirect(link))
        asked, form = _asked(link), server.forms[-1]
        assert asked["resource"] == form["resource"] == f"{server.base}/mcp"
        assert asked["redirect_uri"] == form["redirect_uri"]
        assert asked["redirect_uri"].startswith(f"{REDIRECT}/")
        assert asked["code_challenge_method"] == "S256"
        assert asked["scope"] == "read"
        assert form["code_verifier"] not in link
        assert len(asked["state"]) >= 32
        assert (signed_in.principal, signed_in.server) == ("ann", "search")
        assert signed_in.is_renewable
        (listed,) = await access.signed_in()
        assert listed[:4] == signed_in[:4]
        assert await access.signed_in(server.settings()) == [listed]

    with SmallOAuth() as server:
        run(work)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"state": "other"}, "does not belong to this login"),
        ({"state": None}, "does not belong to this login"),
        ({"iss": None}, "does not say which authorization server"),
        ({"iss": "https://other.example"}, "different authorization server"),
        ({"iss": "https://other.example", "error": "access_denied"}, "different authorization"),
        ({"error": "access_denied"}, r"refused the login \(access_denied\)"),
        ({"error": "<b>\x1b[31m"}, r"refused the login \(unknown error\)"),
        ({"code": None}, "holds no code"),
        ({"code": ""}, "holds no code"),
    ],
)
def test_a_redirect_that_is_not_right_is_not_redeemed(
    run: Callable[[Work], None], changed: dict[str, str | None], words: str
) -> None:
    async def work(access: OAuthAccess) -> None:
        flow = access.login(server.settings(), "ann")
        link = await flow.begin(REDIRECT)
        with pytest.raises(LoginError, match=words):
            await flow.finish(server.redirect(link, **changed))

    with SmallOAuth() as server:
        run(work)
    assert not server.grants


def test_a_repeated_parameter_is_refused(run: Callable[[Work], None]) -> None:
    async def work(access: OAuthAccess) -> None:
        flow = access.login(server.settings(), "ann")
        query = server.redirect(await flow.begin(REDIRECT))
        for wrong in (
            f"{query}&code=other",
            f"{query}&state={flow.state}",
            query.partition("?")[0] + "?" + "&" * 100_000,
        ):
            with pytest.raises(LoginError, match="does not belong"):
                await flow.finish(wrong)

    with SmallOAuth() as server:
        run(work)


def test_a_redirect_is_redeemed_once(run: Callable[[Work], None]) -> None:
    async def work(access: OAuthAccess) -> None:
        flow = access.login(server.settings(), "ann")
        query = server.redirect(await flow.begin(REDIRECT))
        await flow.finish(query)
        with pytest.raises(LoginError, match="not begun"):
            await flow.finish(query)

    with SmallOAuth() as server:
        run(work)
    assert server.grants["authorization_code"] == 1


def test_a_server_that_needs_no_login_is_said_to_need_none(run: Callable[[Work], None]) -> None:
    async def work(access: OAuthAccess) -> None:
        open_to_all = ServerSettings("open", url=server.url)
        async with access.login(open_to_all, "ann") as flow:
            with pytest.raises(LoginError, match="did not ask for a login"):
                await flow.begin(REDIRECT)

    with HttpUpstream(lambda _: Reply(404)) as server:
        run(work)


def test_each_authorization_server_has_a_redirect_of_its_own(run: Callable[[Work], None]) -> None:
    """The one that a bad server names sends the browser on to an honest one: its code stays unused."""

    async def work(access: OAuthAccess) -> None:
        assert bad.metadata
        bad.metadata["authorization_response_iss_parameter_supported"] = False
        flow, other = (access.login(one.settings(), "ann") for one in (bad, honest))
        link, _ = await flow.begin(REDIRECT), await other.begin(REDIRECT)
        (wrong,), (right,) = (one.registered[0]["redirect_uris"] for one in (bad, honest))
        assert wrong != right
        mixed = honest.redirect(link, iss=None).replace(urlsplit(wrong).path, urlsplit(right).path)
        with pytest.raises(LoginError, match="different authorization server"):
            await flow.finish(mixed)

    with SmallOAuth() as bad, SmallOAuth() as honest:
        run(work)
    assert not bad.forms


def test_a_client_with_one_redirect_for_all_needs_an_issuer(run: Callable[[Work], None]) -> None:
    auth = ServerAuth(type="oauth", client_id="registered")

    async def work(access: OAuthAccess) -> None:
        for server in (first, second):
            assert server.metadata
            server.metadata["authorization_response_iss_parameter_supported"] = False
        flow = access.login(first.settings(auth=auth), "ann")
        link = await flow.begin(REDIRECT)
        assert dict(parse_qsl(urlsplit(link).query))["redirect_uri"] == REDIRECT
        # There is no other authorization server that it could come from.
        await flow.finish(first.redirect(link, iss=None))

        flow = access.login(second.settings(auth=auth), "ann")
        link = await flow.begin(REDIRECT)
        with pytest.raises(LoginError, match=r"set auth\.issuer"):
            await flow.finish(second.redirect(link, iss=None))
        await flow.finish(second.redirect(link))

        chosen = replace(auth, issuer=second.base)
        flow = access.login(second.settings(auth=chosen), "ann")
        await flow.finish(second.redirect(await flow.begin(REDIRECT), iss=None))

    with SmallOAuth() as first, SmallOAuth() as second:
        run(work)


def test_an_issuer_that_was_not_announced_is_still_compared(run: Callable[[Work], None]) -> None:
    async def work(access: OAuthAccess) -> None:
        assert server.metadata
        server.metadata["authorization_response_iss_parameter_supported"] = False
        flow = access.login(server.settings(), "ann")
        link = await flow.begin(REDIRECT)
        with pytest.raises(LoginError, match="different authorization server"):
            await flow.finish(server.redirect(link, iss=f"{server.base}/"))
        await flow.finish(server.redirect(link, iss=None))

    with SmallOAuth() as server:
        run(work)


@pytest.mark.parametrize("methods", [[], ["plain"], None])
def test_an_authorization_server_without_s256_is_refused(
    run: Callable[[Work], None], methods: Any
) -> None:
    async def work(access: OAuthAccess) -> None:
        assert server.metadata
        server.metadata["code_challenge_methods_supported"] = methods
        with pytest.raises(LoginError, match="PKCE"):
            await access.login(server.settings(), "ann").begin(REDIRECT)

    with SmallOAuth() as server:
        run(work)


def test_the_scope_for_refresh_tokens_needs_consent(run: Callable[[Work], None]) -> None:
    async def work(access: OAuthAccess) -> None:
        assert server.metadata
        server.metadata["scopes_supported"] = ["offline_access"]
        asked = _asked(await access.login(server.settings(), "ann").begin(REDIRECT))
        assert (asked["scope"], asked["prompt"]) == ("read offline_access", "consent")

    with SmallOAuth() as server:
        run(work)


def test_a_second_login_asks_for_the_scopes_that_the_server_missed(
    run: Callable[[Work], None],
) -> None:
    async def work(access: OAuthAccess) -> None:
        flow = access.login(server.settings(), "ann")
        await flow.finish(server.redirect(await flow.begin(REDIRECT)))
        store = await access.opened()
        (facts,) = store.listed()
        store.want_scopes("ann", facts.server, ["write"])
        flow = access.login(server.settings(), "ann")
        link = await flow.begin(REDIRECT)
        assert _asked(link)["scope"] == "read write"
        # The client that registered itself is known.
        assert len(server.registered) == 1
        assert (await flow.finish(server.redirect(link))).scopes == ("read", "write")

    with SmallOAuth() as server:
        run(work)


def test_a_login_on_another_device(
    run: Callable[[Work], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "MIN_POLL_S", 0.001)

    async def work(access: OAuthAccess) -> None:
        flow = access.login(server.settings(), "ann")
        prompt = await flow.begin_device()
        assert (prompt.user_code, prompt.verification_uri) == ("AB-CD", f"{server.base}/enter")
        server.pending = 3
        assert (await flow.finish_device()).principal == "ann"
        assert server.forms[-1]["device_code"] == "d"

    with SmallOAuth() as server:
        run(work)


def test_a_device_login_that_is_refused_or_too_late_ends(
    run: Callable[[Work], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "MIN_POLL_S", 0.001)

    async def work(access: OAuthAccess) -> None:
        flow = access.login(server.settings(), "ann")
        await flow.begin_device()
        server.token_reply = Reply(400, json.dumps({"error": "access_denied"}).encode())
        with pytest.raises(LoginError, match="access_denied"):
            await flow.finish_device()
        server.token_reply = Reply(400, json.dumps({"error": "authorization_pending"}).encode())
        monkeypatch.setattr(login, "MAX_DEVICE_S", 0.05)
        with pytest.raises(LoginError, match="in time"):
            await flow.finish_device()

    with SmallOAuth() as server:
        run(work)


def test_without_a_device_flow_that_is_said(run: Callable[[Work], None]) -> None:
    async def work(access: OAuthAccess) -> None:
        assert server.metadata
        del server.metadata["device_authorization_endpoint"]
        with pytest.raises(LoginError, match="use a browser"):
            await access.login(server.settings(), "ann").begin_device()
        with pytest.raises(LoginError, match="not begun"):
            await access.login(server.settings(), "ann").finish_device()

    with SmallOAuth() as server:
        run(work)


def test_the_gate_can_sign_in_for_itself(run: Callable[[Work], None]) -> None:
    async def work(access: OAuthAccess) -> None:
        flow = access.login(server.settings(auth=MACHINE), "ann")
        signed_in = await flow.use_client_credentials()
        assert signed_in.principal == GATE
        assert server.clients == [("me", "s")]
        assert server.forms[-1]["resource"] == f"{server.base}/mcp"
        with pytest.raises(LoginError, match=r"auth\.client_id"):
            await access.login(server.settings(), "ann").use_client_credentials()

    with SmallOAuth() as server:
        run(work)


def test_the_secret_of_the_config_is_not_stored(run: Callable[[Work], None]) -> None:
    auth = ServerAuth(type="oauth", client_id="me", client_secret_env="SECRET")

    async def work(access: OAuthAccess) -> None:
        flow = access.login(server.settings(auth=auth), "ann")
        await flow.finish(server.redirect(await flow.begin(REDIRECT)))
        store = await access.opened()
        stored = store.find("ann", store.listed()[0].server)
        assert stored is not None
        assert b'"client_secret": ""' in stored.body
        assert b'"client_id": "me"' in stored.body

    with SmallOAuth() as server:
        run(work)
    assert server.clients == [("me", "s")]


def test_no_token_is_requested_for_a_server_that_would_get_it_unencrypted(
    run: Callable[[Work], None],
) -> None:
    async def work(access: OAuthAccess) -> None:
        remote = ServerSettings("search", url="http://mcp.invalid/mcp?key=secret")
        for begin in (
            lambda: access.login(remote, "ann").begin(REDIRECT),
            lambda: access.login(remote, "ann").begin_device(),
            lambda: access.login(replace(remote, auth=MACHINE), "ann").use_client_credentials(),
        ):
            with pytest.raises(LoginError, match=r"http://mcp\.invalid is not https") as refused:
                await begin()
            assert "secret" not in str(refused.value)

    run(work)
