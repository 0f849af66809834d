"""A pool with credentials for each principal."""

import asyncio
from collections.abc import Awaitable, Callable
from threading import Event

import pytest
from tests.support.http_upstream import HttpUpstream, Received, Reply
from tests.support.waiting import run_async

from thoughtgate.errors import PeerError, upstream_error
from thoughtgate.transports.authorized_pool import AuthorizedPool
from thoughtgate.transports.http_client import PoolOptions
from thoughtgate.transports.http_heads import ResponseHead


class Tokens:
    """Tokens that tests decide on."""

    def __init__(self, **lines: str | None) -> None:
        self.lines = lines
        self.replaced: list[tuple[str, bytes, int]] = []
        self.next = "new"
        self.is_ours = True

    def header(self, principal: str) -> bytes | None:
        name = self.lines.get(principal, "")
        return None if name is None else _line(name)

    async def obtain(self, principal: str) -> bytes:
        await asyncio.sleep(0)
        if principal == "nobody":
            raise upstream_error("renewal_failed", "not now")
        return _line("obtained")

    def handles(self, head: ResponseHead) -> bool:
        assert head.status in {401, 403}
        return self.is_ours

    async def replace(self, principal: str, refused: bytes, head: ResponseHead) -> bytes:
        await asyncio.sleep(0)
        self.replaced.append((principal, refused, head.status))
        if not self.next:
            raise self.refusal(principal, head)
        return _line(self.next)

    def refusal(self, principal: str, head: ResponseHead) -> PeerError:
        return upstream_error("login_required", f"{principal} must sign in", status=head.status)


def _line(name: str) -> bytes:
    return b"authorization: Bearer %b\r\n" % name.encode() if name else b""


def _only(*good: str) -> Callable[[Received], Reply]:
    def answer(received: Received) -> Reply:
        token = received.headers.get("authorization", "").removeprefix("Bearer ")
        return Reply(body=token.encode()) if token in good else Reply(401, b"secret body")

    return answer


def _run(
    server: HttpUpstream, tokens: Tokens, work: Callable[[AuthorizedPool], Awaitable[None]]
) -> None:
    async def main() -> None:
        pool = AuthorizedPool(server.url, PoolOptions(), tokens)
        try:
            await work(pool)
        finally:
            await pool.close()

    run_async(main())


def test_each_principal_has_its_own_credentials() -> None:
    async def work(pool: AuthorizedPool) -> None:
        for who, token in (("ann", b"a"), ("bob", b"b"), ("eve", b"obtained")):
            answer = await pool.request("POST", [(b"x-one", b"1")], b"body", principal=who)
            assert (answer.status, answer.body) == (200, token)

    with HttpUpstream(_only("a", "b", "obtained")) as server:
        _run(server, Tokens(ann="a", bob="b", eve=None), work)
    assert [one.body for one in server.received] == [b"body"] * 3
    assert server.received[0].headers["x-one"] == "1"


def test_a_refused_request_is_sent_once_more() -> None:
    tokens = Tokens(ann="old")

    async def work(pool: AuthorizedPool) -> None:
        answer = await pool.request("POST", body=b"call", principal="ann")
        assert (answer.status, answer.body) == (200, b"new")
        assert (await pool.request("GET", principal="ann")).status == 200

    with HttpUpstream(_only("new")) as server:
        _run(server, tokens, work)
    assert tokens.replaced == [("ann", _line("old"), 401)] * 2
    assert [one.body for one in server.received] == [b"call", b"call", b"", b""]


def test_a_request_that_is_refused_again_fails_with_what_to_do() -> None:
    async def work(pool: AuthorizedPool) -> None:
        for _ in range(2):
            with pytest.raises(PeerError, match="ann must sign in") as failed:
                await pool.request("POST", body=b"call", principal="ann")
            assert (failed.value.kind, failed.value.cause) == (
                "upstream_unauthorized",
                "login_required",
            )
            assert "secret" not in str(failed.value)

    with HttpUpstream(_only("good")) as server:
        _run(server, Tokens(ann="old"), work)
    assert len(server.received) == 4


def test_without_other_credentials_it_fails_at_once() -> None:
    tokens = Tokens()
    tokens.next = ""

    async def work(pool: AuthorizedPool) -> None:
        with pytest.raises(PeerError, match="must sign in"):
            await pool.request("POST", principal="ann")
        with pytest.raises(PeerError, match="not now"):
            await pool.request("POST", principal="nobody")

    tokens.lines["nobody"] = None
    with HttpUpstream(_only()) as server:
        _run(server, tokens, work)
    assert len(server.received) == 1


def test_a_refusal_that_is_not_about_them_is_passed_on() -> None:
    tokens = Tokens(ann="old")
    tokens.is_ours = False

    async def work(pool: AuthorizedPool) -> None:
        for _ in range(3):
            answer = await pool.request("POST", principal="ann")
            assert (answer.status, answer.body) == (401, b"secret body")

    with HttpUpstream(_only()) as server:
        _run(server, tokens, work)
    assert not tokens.replaced


def test_an_answer_that_is_cut_off_is_not_sent_again() -> None:
    async def work(pool: AuthorizedPool) -> None:
        with pytest.raises(PeerError) as failed:
            await pool.request("POST", principal="ann")
        assert failed.value.cause != "login_required"

    with HttpUpstream(
        lambda _: Reply(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")
    ) as server:
        _run(server, Tokens(ann="a"), work)
    assert len(server.received) == 1


def test_the_rest_of_a_refusal_is_not_waited_for() -> None:
    endless = b"HTTP/1.1 401 No\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n"
    never = Event()

    def answer(received: Received) -> Reply:
        if received.headers["authorization"] == "Bearer new":
            return Reply(body=b"done")
        return Reply(raw=endless, wait=never)

    async def work(pool: AuthorizedPool) -> None:
        assert (await pool.request("POST", principal="ann")).body == b"done"
        assert pool.open_connections == 1

    with HttpUpstream(answer) as server:
        _run(server, Tokens(ann="old"), work)


def test_a_header_with_a_line_end_fails() -> None:
    async def work(pool: AuthorizedPool) -> None:
        failed: list[PeerError] = []

        class Receiver:
            def started(self, head: ResponseHead) -> None: ...
            def received(self, chunk: bytes) -> None: ...
            def ended(self) -> None: ...
            def failed(self, error: PeerError) -> None:
                failed.append(error)

        pool.send(b"POST", [(b"a", b"b\r\nc: d")], b"", Receiver(), b"", "ann")
        await asyncio.sleep(0)
        assert [error.kind for error in failed] == ["invalid_request"]

    with HttpUpstream(_only("a")) as server:
        _run(server, Tokens(ann="a"), work)
    assert not server.received


def test_closing_fails_requests_that_wait_for_credentials() -> None:
    class Slow(Tokens):
        async def obtain(self, principal: str) -> bytes:
            await asyncio.Event().wait()
            return principal.encode()

    async def work(pool: AuthorizedPool) -> None:
        waiting = asyncio.ensure_future(pool.request("POST", principal="ann"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await pool.close()
        with pytest.raises(PeerError, match="closing"):
            await waiting

    with HttpUpstream(_only()) as server:
        _run(server, Slow(ann=None), work)
