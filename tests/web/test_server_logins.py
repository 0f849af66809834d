"""The sign-ins of a console: which servers, how many at once, by whom they are finished."""

from typing import Any, Self

import pytest
from tests.support.waiting import run_async

from thoughtgate.config.server_auth import ServerAuth
from thoughtgate.config.settings import ServerSettings
from thoughtgate.errors import LoginError
from thoughtgate.upstream.oauth.tokens import SignedIn
from thoughtgate.web import server_logins
from thoughtgate.web.server_logins import MAX_PENDING, ServerLogins

FAR = ServerSettings("far", url="https://far.example/mcp")


class Flow:
    """A sign-in that always succeeds."""

    def __init__(self, server: ServerSettings, principal: str, number: int) -> None:
        self.server, self.principal, self.state = server, principal, f"state-{number}"
        self.closed = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed += 1

    async def begin(self, redirect_uri: str) -> str:
        if "bad" in redirect_uri:
            raise LoginError("no")
        return f"https://as.example/?state={self.state}"

    async def finish(self, query: str) -> SignedIn:
        return SignedIn(self.principal, self.server.id, query, (), 1.0, 0.0, is_renewable=True)


class Access:
    """Remembers what was asked of it."""

    def __init__(self) -> None:
        self.flows: list[Flow] = []
        self.is_closed = False

    def login(self, server: ServerSettings, principal: str) -> Flow:
        self.flows.append(Flow(server, principal, len(self.flows)))
        return self.flows[-1]

    async def signed_in(self, server: ServerSettings) -> list[SignedIn]:
        return [SignedIn("ann", server.id, "", (), 1.0, 0.0, is_renewable=True)]

    async def logout(self, server: ServerSettings, principal: str) -> bool:  # noqa: ARG002
        return principal == "ann"

    async def close(self) -> None:
        self.is_closed = True


def made(**servers: ServerSettings) -> tuple[ServerLogins, Access]:
    access: Any = Access()
    wrapped = [("wrapped", "https://wrapped.example/mcp")]
    return ServerLogins(access, servers, lambda: wrapped), access


def test_only_servers_that_can_need_a_login_are_listed() -> None:
    token = ServerSettings("token", url=FAR.url, auth=ServerAuth("T"))
    near = ServerSettings("near", command="run")
    logins, _ = made(far=FAR, token=token, near=near)

    rows = run_async(logins.rows("ann"))

    assert [(row.id, row.login is not None) for row in rows] == [("far", True), ("wrapped", True)]
    assert run_async(logins.rows("bob"))[0].login is None


def test_a_sign_in_is_finished_once_by_its_session() -> None:
    logins, access = made(far=FAR)

    async def scene() -> None:
        await logins.begin("far", "ann", "session", "https://console/callback")
        for session in ("other", ""):
            with pytest.raises(LoginError, match="not begun in this browser"):
                await logins.finish("/callback?state=state-0&code=1", session)
        found = await logins.finish("/callback?state=state-0&code=1", "session")
        assert (found.principal, found.server) == ("ann", "far")
        with pytest.raises(LoginError, match="not begun"):
            await logins.finish("/callback?state=state-0&code=1", "session")

    run_async(scene())
    assert access.flows[0].closed == 1


def test_old_and_too_many_sign_ins_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    logins, access = made(far=FAR)
    at = [0.0]
    monkeypatch.setattr(server_logins, "monotonic", lambda: at[0])

    async def scene() -> None:
        for _ in range(MAX_PENDING + 1):
            await logins.begin("far", "ann", "session", "https://console/callback")
        assert [flow.closed for flow in access.flows[:2]] == [1, 0]
        at[0] = server_logins.PENDING_S
        with pytest.raises(LoginError):
            await logins.finish("/callback?state=state-5&code=1", "session")
        await logins.begin("far", "ann", "session", "https://console/callback")
        assert [flow.closed for flow in access.flows] == [1] * (MAX_PENDING + 1) + [0]
        await logins.close()

    run_async(scene())
    assert access.is_closed
    assert access.flows[-1].closed == 1


def test_unknown_servers_and_failed_beginnings_leave_nothing_open() -> None:
    logins, access = made(far=FAR)

    async def scene() -> None:
        for attempt in (logins.begin("x", "ann", "s", "u"), logins.sign_out("x", "ann")):
            with pytest.raises(LoginError, match="no such remote server"):
                await attempt
        with pytest.raises(LoginError):
            await logins.begin("far", "ann", "session", "bad")
        assert await logins.sign_out("far", "ann")
        assert not await logins.sign_out("far", "bob")

    run_async(scene())
    assert access.flows[0].closed == 1
