"""Connections through an HTTP proxy, to real servers."""

import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.support.certificates import Authority
from tests.support.connect_proxy import ConnectProxy
from tests.support.http_upstream import HttpUpstream, Received, Reply, free_port
from tests.support.waiting import run_async

from thoughtgate.errors import PeerError
from thoughtgate.transports.http_client import HttpPool, PoolOptions
from thoughtgate.transports.http_proxy import MAX_HEAD, parse_proxy
from thoughtgate.transports.tls import client_context, server_context

Work = Callable[[HttpPool], Awaitable[None]]


def _hello(received: Received) -> Reply:
    return Reply(body=received.path.encode())


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def _secure(authority: Authority) -> HttpUpstream:
    cert, key = authority.issue("far.test")
    return HttpUpstream(_hello, server_context(str(cert), str(key)))


def _run(url: str, proxy: str, work: Work, ca: Path | None = None) -> None:
    async def main() -> None:
        tls = client_context(str(ca)) if ca is not None else None
        pool = HttpPool(url, PoolOptions(tls=tls, proxy=parse_proxy(proxy)))
        try:
            await work(pool)
        finally:
            await pool.close()

    run_async(main())


def test_https_goes_through_a_tunnel_to_the_server_itself(authority: Authority) -> None:
    async def work(pool: HttpPool) -> None:
        assert (await pool.request("GET")).body == b"/mcp?x=1"
        assert (await pool.request("GET")).body == b"/mcp?x=1"

    with _secure(authority) as upstream, ConnectProxy(upstream.port) as proxy:
        _run("https://far.test/mcp?x=1", proxy.url, work, authority.file)

    # The name is the proxy's to resolve, and the connection is used again.
    assert proxy.asked == [("CONNECT", "far.test:443")]


def test_http_goes_to_the_proxy_with_the_whole_url() -> None:
    async def work(pool: HttpPool) -> None:
        assert (await pool.request("GET")).body == b"/mcp"

    with HttpUpstream(_hello) as upstream, ConnectProxy(upstream.port) as proxy:
        _run("http://far.test:8080/mcp", proxy.url, work)

    assert proxy.asked == [("GET", "http://far.test:8080/mcp")]
    assert upstream.received[0].headers["host"] == "far.test:8080"


def test_the_proxy_gets_its_credentials_and_the_server_behind_a_tunnel_does_not(
    authority: Authority,
) -> None:
    async def work(pool: HttpPool) -> None:
        assert (await pool.request("GET")).status == 200
        assert "pass" not in repr(pool.options)

    with (
        _secure(authority) as upstream,
        ConnectProxy(upstream.port, user="ann", password="p@ss") as proxy,
    ):
        url = f"http://ann:p%40ss@127.0.0.1:{proxy.port}"
        _run("https://far.test/mcp", url, work, authority.file)

    assert "proxy-authorization" not in upstream.received[0].headers


def test_wrong_credentials_for_the_proxy_are_told_apart(authority: Authority) -> None:
    async def work(pool: HttpPool) -> None:
        with pytest.raises(PeerError) as raised:
            await pool.request("GET")
        assert raised.value.kind == "upstream_unauthorized"

    with ConnectProxy(1, user="ann", password="right") as proxy:
        url = f"http://ann:wrong@127.0.0.1:{proxy.port}"
        _run("https://far.test/mcp", url, work, authority.file)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nearly",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * (2 * MAX_HEAD),
        b"HTTP/1.1 200",
    ],
    ids=["status", "more than a head", "another protocol", "endless", "cut off"],
)
def test_a_proxy_that_makes_no_tunnel_is_a_failure_of_its_own(
    answer: bytes, authority: Authority
) -> None:
    async def work(pool: HttpPool) -> None:
        with pytest.raises(PeerError, match="HTTP proxy"):
            await pool.request("GET")
        assert isinstance(await pool.probe(), PeerError)

    with ConnectProxy(1) as proxy:
        proxy.answer = answer
        _run("https://far.test/mcp", proxy.url, work, authority.file)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_not_there_is_a_failure_of_its_own(
    scheme: str, authority: Authority
) -> None:
    async def work(pool: HttpPool) -> None:
        with pytest.raises(PeerError, match="HTTP proxy cannot be reached"):
            await pool.request("GET")

    _run(f"{scheme}://far.test/mcp", f"http://127.0.0.1:{free_port()}", work, authority.file)


def test_a_server_behind_a_tunnel_is_verified_like_any_other(authority: Authority) -> None:
    async def work(pool: HttpPool) -> None:
        with pytest.raises(PeerError, match="certificate"):
            await pool.request("GET")

    with _secure(authority) as upstream, ConnectProxy(upstream.port) as proxy:
        _run("https://other.test/mcp", proxy.url, work, authority.file)
    assert upstream.received == []


def test_a_silent_proxy_is_given_up(authority: Authority) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            proxy = parse_proxy(f"http://127.0.0.1:{silent.getsockname()[1]}")
            options = PoolOptions(connect_timeout_s=0.1, tls=client_context(), proxy=proxy)
            pool = HttpPool("https://far.test/mcp", options)
            with pytest.raises(PeerError):
                await pool.request("GET", timeout_s=10)
            await pool.close()

    run_async(main())


@pytest.mark.parametrize("url", ["socks5://h:1", "https://h:1", "h:1", "http://"])
def test_another_kind_of_proxy_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(ValueError, match="not the URL of an HTTP proxy"):
        parse_proxy(url)


def test_a_proxy_without_a_port_has_the_usual_one_and_shows_no_password() -> None:
    proxy = parse_proxy("http://ann:secret@proxy.test")

    assert (proxy.host, proxy.port) == ("proxy.test", 80)
    assert "secret" not in repr(proxy)
    assert "YW5u" not in repr(proxy)
