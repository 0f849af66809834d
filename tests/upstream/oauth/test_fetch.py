"""Requests to URLs that a server chooses."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.certificates import Authority
from tests.support.connect_proxy import ConnectProxy
from tests.support.http_upstream import HttpUpstream, Received, Reply
from tests.support.waiting import run_async

from thoughtgate.errors import LoginError
from thoughtgate.transports.http_proxy import parse_proxy
from thoughtgate.transports.tls import client_context, server_context
from thoughtgate.upstream.oauth import fetch
from thoughtgate.upstream.oauth.fetch import (
    LOCAL,
    MAX_ANSWER,
    NOWHERE,
    PRIVATE,
    PUBLIC,
    Fetcher,
    JsonAnswer,
    check_url,
    nearness,
)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("93.184.216.34", PUBLIC),
        ("2606:2800:220:1::1", PUBLIC),
        ("10.1.2.3", PRIVATE),
        ("192.168.0.1", PRIVATE),
        ("100.64.0.1", PRIVATE),
        ("fd00::1", PRIVATE),
        ("127.0.0.1", LOCAL),
        ("127.9.9.9", LOCAL),
        ("::1", LOCAL),
        ("::ffff:127.0.0.1", LOCAL),
        ("::ffff:10.0.0.1", PRIVATE),
        ("64:ff9b::7f00:1", LOCAL),
        ("2002:7f00:1::", LOCAL),
        ("169.254.169.254", NOWHERE),
        ("::ffff:169.254.169.254", NOWHERE),
        ("fe80::1%eth0", NOWHERE),
        ("0.0.0.0", NOWHERE),
        ("::", NOWHERE),
        ("224.0.0.1", NOWHERE),
        ("::7f00:1", NOWHERE),
        ("64:ff9b:1::7f00:1", PRIVATE),
    ],
)
def test_addresses_are_told_apart(address: str, expected: int) -> None:
    assert nearness(address) == expected


@pytest.mark.parametrize(
    "url",
    [
        "http://issuer.example/token",
        "ftp://issuer.example/",
        "file:///etc/passwd",
        "https://user:secret@issuer.example/",
        "https://issuer.example/#part",
        "https://issuer.example/a b",
        "https://issuer.example/\r\nHost: x",
        "javascript:alert(1)",
        "https://" + "a" * 3000,
        "",
    ],
)
def test_a_url_that_is_not_safe_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(LoginError) as refused:
        check_url(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["https://issuer.example/x", "http://127.0.0.1:1/x", "http://localhost/", "http://[::1]/"],
)
def test_https_and_loopback_are_allowed(url: str) -> None:
    assert check_url(url)


def _resolving(monkeypatch: pytest.MonkeyPatch, names: dict[str, list[str]]) -> None:
    async def resolve(origin: Any) -> list[str]:
        await asyncio.sleep(0)
        return names[origin.host]

    monkeypatch.setattr(fetch, "_resolve", resolve)


@pytest.mark.parametrize(
    ("server", "issuer"),
    [
        (["93.184.216.34"], ["127.0.0.1"]),
        (["93.184.216.34"], ["10.0.0.1"]),
        (["93.184.216.34"], ["93.184.216.35", "10.0.0.1"]),
        (["10.0.0.2"], ["127.0.0.1"]),
        (["127.0.0.1"], ["169.254.169.254"]),
        (["169.254.1.1"], ["169.254.169.254"]),
        # A server can add addresses to its own name, and answer with others the next time.
        (["93.184.216.34", "127.0.0.1"], ["127.0.0.1"]),
        (["93.184.216.34", "10.0.0.2"], ["10.0.0.1"]),
        (["127.0.0.1"], ["127.0.0.1"]),
    ],
)
def test_a_server_cannot_send_the_gate_nearer_to_itself(
    monkeypatch: pytest.MonkeyPatch, server: list[str], issuer: list[str]
) -> None:
    _resolving(monkeypatch, {"mcp.example": server, "issuer.example": issuer})
    fetcher = Fetcher("https://mcp.example/mcp")

    with pytest.raises(LoginError, match=r"private network or on this machine.*auth\.issuer"):
        run_async(fetcher.get("https://issuer.example/token?secret"))


def test_the_address_that_was_checked_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    _resolving(monkeypatch, {"127.0.0.1": ["127.0.0.1"], "localhost": ["127.0.0.1"]})
    with HttpUpstream(lambda _: Reply(body=b'{"a": 1}')) as other:
        fetcher = Fetcher("http://127.0.0.1:1/mcp")
        answer = run_async(fetcher.get(f"http://localhost:{other.port}/x"))

    assert answer == JsonAnswer(200, {"a": 1})
    assert other.received[0].headers["host"] == f"localhost:{other.port}"


def test_the_issuer_of_the_config_may_be_anywhere() -> None:
    with HttpUpstream(lambda _: Reply(body=b"{}")) as other:
        base = f"http://127.0.0.1:{other.port}"
        # The name of the server cannot even be resolved.
        fetcher = Fetcher("https://mcp.invalid/mcp", (base,))
        assert run_async(fetcher.get(f"{base}/x")).is_ok


def test_redirects_are_not_followed() -> None:
    with HttpUpstream(lambda _: Reply(302, headers={"location": "/elsewhere"})) as server:
        answer = run_async(Fetcher(server.url).get(f"http://127.0.0.1:{server.port}/x"))

    assert not answer.is_ok
    assert [one.path for one in server.received] == ["/x"]


@pytest.mark.parametrize(
    "body", [b"", b"nothing", b"[]", b'"text"', b"[" * 100_000, b'{"a":' * 10_000]
)
def test_what_is_not_an_object_is_empty(body: bytes) -> None:
    with HttpUpstream(lambda _: Reply(body=body)) as server:
        assert run_async(Fetcher(server.url).get(server.url)).body == {}


def test_an_answer_is_limited() -> None:
    with (
        HttpUpstream(lambda _: Reply(body=b"x" * (MAX_ANSWER + 1))) as server,
        pytest.raises(LoginError, match="too large"),
    ):
        run_async(Fetcher(server.url).get(server.url))


def test_a_server_that_is_not_there_is_named_by_its_origin_only() -> None:
    with pytest.raises(LoginError) as failed:
        run_async(Fetcher("http://127.0.0.1:1/mcp").get("http://127.0.0.1:1/secret?token=x"))
    assert "http://127.0.0.1:1 " in str(failed.value)
    assert "secret" not in str(failed.value)


def test_the_server_is_asked_for_its_challenge() -> None:
    def answer(received: Received) -> Reply:
        return Reply(401, headers={"www-authenticate": 'Bearer scope="a"'})

    with HttpUpstream(answer) as server:
        challenge = run_async(Fetcher(server.url).ask_for_challenge(b"{}"))
    assert challenge is not None
    assert challenge.scopes == ("a",)
    assert server.received[0].method == "POST"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": "invalid_grant"}, "invalid_grant"),
        ({"error": "a b\x1b[31m"}, "HTTP 400"),
        ({"error": "x" * 100}, "HTTP 400"),
        ({"error": 5}, "HTTP 400"),
        ({}, "HTTP 400"),
    ],
)
def test_only_plain_error_codes_are_repeated(body: dict[str, Any], expected: str) -> None:
    assert JsonAnswer(400, body).error == expected


@pytest.mark.parametrize("link", ["http://127.0.0.1:631/admin?do=x", "https://inside.example/"])
def test_a_server_cannot_choose_a_link_into_the_users_network(
    monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    names = {"mcp.example": ["93.184.216.34"], "inside.example": ["10.0.0.1"]}
    _resolving(monkeypatch, {**names, "127.0.0.1": ["127.0.0.1"]})

    with pytest.raises(LoginError, match="in a private network or on this machine"):
        run_async(Fetcher("https://mcp.example/mcp").check_link(link))


def test_a_url_that_is_not_ascii_is_refused() -> None:
    with pytest.raises(LoginError, match="is not ASCII"):
        check_url("https://example.com/\u202e")


@pytest.mark.parametrize("host", ["ex\x9b2Jample.com", "ex\u202eample.com", "a;b", "[::1%25x]"])
def test_a_host_that_could_deceive_people_is_refused(host: str) -> None:
    with pytest.raises(LoginError, match="is not a plain name") as raised:
        check_url(f"https://{host}/")
    assert host not in str(raised.value)


PUBLIC_ADDRESS = "93.184.216.34"


def test_a_tunnel_leads_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _resolving(monkeypatch, {"mcp.example": ["1.1.1.1"], "far.test": [PUBLIC_ADDRESS]})
    authority = Authority(tmp_path)
    cert, key = authority.issue("far.test")
    tls = server_context(str(cert), str(key))
    with (
        HttpUpstream(lambda _: Reply(body=b'{"a": 1}'), tls) as far,
        ConnectProxy(far.port) as proxy,
    ):
        trusted = client_context(str(authority.file))
        leads = parse_proxy(proxy.url)
        fetcher = Fetcher("https://mcp.example/mcp", (), trusted, lambda _url: leads)
        answer = run_async(fetcher.get("https://far.test/x"))
        assert answer == JsonAnswer(200, {"a": 1})
        assert proxy.asked == [("CONNECT", f"{PUBLIC_ADDRESS}:443")]


def test_a_proxy_does_not_lead_nearer_either(monkeypatch: pytest.MonkeyPatch) -> None:
    _resolving(monkeypatch, {"mcp.example": ["1.1.1.1"], "inside.example": ["10.0.0.1"]})
    with ConnectProxy(1) as proxy:
        leads = parse_proxy(proxy.url)
        fetcher = Fetcher("https://mcp.example/mcp", choose_proxy=lambda _url: leads)
        with pytest.raises(LoginError, match="private network"):
            run_async(fetcher.get("https://inside.example/x"))
        assert proxy.asked == []


def test_this_machine_is_reached_without_the_proxy() -> None:
    with HttpUpstream(lambda _: Reply(body=b"{}")) as server, ConnectProxy(1) as proxy:
        leads = parse_proxy(proxy.url)
        assert run_async(Fetcher(server.url, choose_proxy=lambda _url: leads).get(server.url)).is_ok
        assert proxy.asked == []
