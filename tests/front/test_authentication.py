"""Who may connect."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.support.certificates import Authority
from tests.support.http_gate import (
    ACCEPT,
    Gate,
    call_of,
    config_for,
    http_post,
    modern_call_of,
    modern_headers,
    read_until,
)
from tests.support.http_upstream import HttpUpstream, Received, Reply, result, text_result
from tests.support.waiting import run_async

from thoughtgate.config.listen_settings import ListenAuth
from thoughtgate.core.repeated_events import MAX_EACH
from thoughtgate.errors import ConfigError
from thoughtgate.front import authentication
from thoughtgate.front.authentication import (
    Authenticator,
    Identity,
    KeySet,
    Rejection,
    normalise,
    open_authenticator,
    resource_metadata,
)
from thoughtgate.transports.tls import server_context

NOTHING: set[bytes] = set()
TOKEN = "a-token-of-thirty-two-characters"


def _bearer(value: bytes) -> dict[bytes, bytes]:
    return {b"authorization": value}


def test_without_authentication_everybody_is_the_same_agent() -> None:
    assert Authenticator(None, anonymous="ann").check("127.0.0.1", {}, NOTHING) == Identity(
        "ann", "none"
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "header absent"),
        (b"Basic abc", "header not a bearer credential"),
        (b"Bearer ", "header not a bearer credential"),
        (b"Bearer wrong", "token wrong"),
        (b"Bearer " + TOKEN[:-1].encode(), "token wrong"),
        (b"Bearer " + TOKEN.encode() + b"x", "token wrong"),
    ],
)
def test_a_wrong_token_is_rejected_without_repeating_it(value: bytes | None, reason: str) -> None:
    authenticator = Authenticator(ListenAuth("bearer"), TOKEN)
    headers = _bearer(value) if value is not None else {}
    said = authenticator.check("1.2.3.4", headers, NOTHING)
    assert said == Rejection(401, "bearer", reason, b"Bearer")


def test_the_right_token_is_let_in_once() -> None:
    authenticator = Authenticator(ListenAuth("bearer"), TOKEN)
    headers = _bearer(b"Bearer " + TOKEN.encode())
    assert authenticator.check("1.2.3.4", headers, NOTHING) == Identity("agent", "bearer")
    twice = authenticator.check("1.2.3.4", headers, {b"authorization"})
    assert isinstance(twice, Rejection)
    assert twice.reason == "header given twice"


@pytest.mark.parametrize(
    ("peer", "allow", "inside"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("::ffff:10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "::ffff:10.0.0.0/104", True),
        ("11.1.2.3", "::ffff:10.0.0.0/104", False),
        ("::1", "::1/128", True),
        ("fe80::1%eth0", "fe80::/10", True),
        ("10.0.0.5", "10.0.0.5/32", True),
        ("10.0.0.5", "10.0.0.9/24", True),
        ("", "0.0.0.0/0", False),
        ("::1", "0.0.0.0/0", False),
    ],
)
def test_an_address_is_inside_a_range_or_not(peer: str, allow: str, inside: bool) -> None:
    authenticator = Authenticator(ListenAuth("ip_allowlist", allow=(allow,)))
    said = authenticator.check(peer, {}, NOTHING)
    assert isinstance(said, Identity) is inside
    if isinstance(said, Rejection):
        assert said.status == 403
        assert "outside allowlist" in said.reason


def test_both_means_both() -> None:
    authenticator = Authenticator(ListenAuth("both", allow=("10.0.0.0/8",)), TOKEN)
    right = _bearer(b"Bearer " + TOKEN.encode())
    assert isinstance(authenticator.check("10.1.1.1", right, NOTHING), Identity)
    assert isinstance(authenticator.check("11.1.1.1", right, NOTHING), Rejection)
    assert isinstance(authenticator.check("10.1.1.1", {}, NOTHING), Rejection)


def test_an_address_that_is_none_is_none() -> None:
    assert normalise("not an address") is None


@pytest.mark.parametrize("value", ["", "  "])
def test_a_token_that_is_not_set_stops_the_start(value: str) -> None:
    auth = ListenAuth("bearer", token_env="AGENT")
    with pytest.raises(ConfigError, match="AGENT is not set"):
        open_authenticator(auth, {"AGENT": value}, anonymous="x", metadata_url="")


# Signed tokens.

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
ISSUER = "https://issuer.example"
AUDIENCE = "https://gate.example/mcp"


def _key_set(*keys: tuple[str, Any]) -> bytes:
    found = []
    for kid, key in keys:
        entry = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key()))
        found.append({**entry, "kid": kid, "alg": "ES256", "use": "sig"})
    return json.dumps({"keys": found}).encode()


def _token(key: Any = KEY, *, kid: str = "one", alg: str = "ES256", **claims: Any) -> bytes:
    full = {"sub": "ann", "aud": AUDIENCE, "iss": ISSUER, "exp": time.time() + 60, **claims}
    full = {name: value for name, value in full.items() if value is not None}
    return b"Bearer " + jwt.encode(full, key, alg, headers={"kid": kid}).encode()


@pytest.fixture
def issuer() -> Iterator[HttpUpstream]:
    with HttpUpstream(lambda _: Reply(body=_key_set(("one", KEY)))) as running:
        yield running


def _authenticator(issuer: HttpUpstream) -> tuple[Authenticator, KeySet]:
    auth = ListenAuth("jwt", jwks_url=issuer.url, issuer=ISSUER, audience=AUDIENCE)
    authenticator, keys = open_authenticator(
        auth, {}, anonymous="x", metadata_url="http://g/.well-known/x"
    )
    assert keys is not None
    return authenticator, keys


def _checked(issuer: HttpUpstream, value: bytes) -> Identity | Rejection | None:
    async def main() -> Identity | Rejection | None:
        authenticator, keys = _authenticator(issuer)
        await keys.fetch()
        try:
            return authenticator.check("1.2.3.4", _bearer(value), NOTHING)
        finally:
            await keys.close()

    return run_async(main())


def test_a_signed_token_names_its_principal(issuer: HttpUpstream) -> None:
    who = _checked(issuer, _token())

    assert isinstance(who, Identity)
    assert who[:2] == (f"{ISSUER}#ann", "jwt")
    assert who.name == "ann"
    assert who.claims is not None
    assert who.claims["sub"] == "ann"


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: _token(exp=time.time() - 3600), "token expired"),
        (lambda: _token(aud="https://other.example"), "token meant for somebody else"),
        (lambda: _token(aud=None), "token not acceptable"),
        (lambda: _token(exp=None), "token not acceptable"),
        (lambda: _token(iss="https://evil.example"), "token from another issuer"),
        (lambda: _token(iss=None), "token not acceptable"),
        (lambda: _token(OTHER), "token not acceptable"),
        (lambda: _token(sub=None), "token names nobody"),
        (lambda: _token(sub="n" * 300), "an unusable name"),
        (lambda: _token(sub=5), "token not acceptable"),
        # No store or terminal can tell these apart from others, or keep them.
        (lambda: _token(sub="a\nb"), "an unusable name"),
        (lambda: _token(sub="a\x00"), "an unusable name"),
        (lambda: _token(sub="a\u202eb"), "an unusable name"),
        (lambda: _token(sub="\ud800"), "an unusable name"),
        (lambda: b"Bearer not.a.token", "token not acceptable"),
        (lambda: b"Bearer " + b"x" * 20_000, "token not acceptable"),
        (
            lambda: _token("a shared secret of more than thirty-two bytes", alg="HS256"),
            "not accepted",
        ),
        (
            lambda: (
                b"Bearer " + jwt.encode({"sub": "x"}, "", "none", headers={"kid": "one"}).encode()
            ),
            "",
        ),
        (lambda: _token(kid="unknown"), "unknown key"),
    ],
)
def test_a_token_that_proves_nothing_is_rejected(
    issuer: HttpUpstream, make: Callable[[], bytes], reason: str
) -> None:
    said = _checked(issuer, make())  # made now: one from the collection may have expired by now
    assert isinstance(said, Rejection)
    assert said.status == 401
    assert reason in said.reason
    assert b"resource_metadata=" in said.challenge


def test_keys_are_fetched_when_they_are_needed_and_not_too_often(issuer: HttpUpstream) -> None:
    async def main() -> None:
        authenticator, keys = _authenticator(issuer)
        assert authenticator.check("1.2.3.4", _bearer(_token()), NOTHING) is None
        await keys.fetch()
        assert isinstance(authenticator.check("1.2.3.4", _bearer(_token()), NOTHING), Identity)
        unknown = authenticator.check("1.2.3.4", _bearer(_token(kid="two")), NOTHING)
        assert isinstance(unknown, Rejection)
        await keys.close()

    run_async(main())
    assert len(issuer.received) == 1


@pytest.mark.parametrize(
    "reply", [Reply(500), Reply(body=b"{}"), Reply(body=b"oops"), Reply(raw=b"")]
)
def test_an_issuer_that_fails_leaves_everybody_outside(reply: Reply) -> None:
    with HttpUpstream(lambda _: reply) as issuer:
        assert not isinstance(_checked(issuer, _token()), Identity)


def test_the_issuers_keys_may_be_behind_a_private_ca(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.issue("127.0.0.1")
    config = str(tmp_path / "thoughtgate.yaml")

    async def main(url: str, ca: str) -> Identity | Rejection | None:
        auth = ListenAuth("jwt", jwks_url=url, ca=ca, issuer=ISSUER, audience=AUDIENCE)
        authenticator, keys = open_authenticator(
            auth, {}, anonymous="x", metadata_url="", file=config
        )
        assert keys is not None
        await keys.fetch()
        try:
            return authenticator.check("1.2.3.4", _bearer(_token()), NOTHING)
        finally:
            await keys.close()

    tls = server_context(str(cert), str(key))
    with HttpUpstream(lambda _: Reply(body=_key_set(("one", KEY))), tls) as issuer:
        assert isinstance(run_async(main(issuer.url, "ca.pem")), Identity)
        assert not isinstance(run_async(main(issuer.url, "")), Identity)
        with pytest.raises(ConfigError, match=r"listen\.auth\.ca"):
            run_async(main(issuer.url, "missing.pem"))


@pytest.mark.parametrize(
    ("certificate", "principal"),
    [
        ({"subject": ((("commonName", "bot"),),)}, "CN=bot"),
        ({"subjectAltName": (("URI", "spiffe://e/bot"),)}, "spiffe://e/bot"),
        ({"subject": ()}, None),
        ({"subject": ((("commonName", "b\x1bt"),),)}, None),
        ({"subject": ((("commonName", "b" * 300),),)}, None),
        (None, None),
    ],
)
def test_a_client_is_known_by_the_name_in_its_certificate(
    certificate: dict[str, Any] | None, principal: str | None
) -> None:
    authenticator = Authenticator(ListenAuth("mtls"))

    who = authenticator.check("1.2.3.4", {}, NOTHING, lambda: certificate)

    if principal is None:
        assert isinstance(who, Rejection)
        assert (who.status, who.method) == (403, "mtls")
    else:
        assert who == Identity(f"cert:{principal}", "mtls")


def test_the_metadata_names_resource_and_issuer() -> None:
    auth = ListenAuth("jwt", issuer=ISSUER, audience=AUDIENCE)
    document = json.loads(resource_metadata("https://gate.example/mcp", auth) or b"")
    assert document["resource"] == "https://gate.example/mcp"
    assert document["authorization_servers"] == [ISSUER]
    assert "scopes_supported" not in document
    scoped = json.loads(resource_metadata("x", auth, {"b", "a"}) or b"")
    assert scoped["scopes_supported"] == ["a", "b"]
    assert resource_metadata("x", ListenAuth("bearer")) is None
    assert resource_metadata("x", None) is None


# Through the gateway.


def _answer(received: Received) -> Reply:
    return text_result(received, "in")


def _guarded(tmp_path: Path, upstream: HttpUpstream) -> Gate:
    """A gate that wants a bearer token."""
    auth = "listen: {transport: http, auth: {type: bearer, token_env: AGENT_TOKEN}}\n"
    return Gate(tmp_path, config_for(upstream.url, auth), environ={"AGENT_TOKEN": TOKEN})


def test_a_bearer_token_guards_mcp_but_not_health(tmp_path: Path) -> None:
    with HttpUpstream(_answer) as upstream, _guarded(tmp_path, upstream) as gate:
        assert gate.request("GET", "/health").status == 200
        absent = gate.call("echo")
        assert absent.status == 401
        assert absent.headers["www-authenticate"] == "Bearer"
        wrong = gate.call("echo", headers={"authorization": "Bearer wrong-secret-value"})
        assert wrong.status == 401
        assert upstream.received == []
        right = gate.call("echo", headers={"authorization": f"Bearer {TOKEN}"})
        assert right.status == 200
        assert "authorization" not in upstream.received[0].headers
        rejected = gate.records("agent_auth_rejected")
        assert [one["agent"]["reason"] for one in rejected] == ["header absent", "token wrong"]
        assert all(one["session_id"] == "0" for one in rejected)
        text = json.dumps(gate.records())
        assert TOKEN not in text
        assert "wrong-secret-value" not in text
        assert gate.records("tool_call_start")[0]["call"]["principal"] == "agent"


def test_a_stranger_cannot_fill_the_record_by_being_turned_away(tmp_path: Path) -> None:
    with HttpUpstream(_answer) as upstream, _guarded(tmp_path, upstream) as gate:
        for _ in range(MAX_EACH * 2):
            assert gate.call("echo", headers={"authorization": "Bearer wrong"}).status == 401
    rejected = [one["agent"] for one in gate.records("agent_auth_rejected")]
    assert len(rejected) <= MAX_EACH + 1
    assert sum(one.get("repeated", 1) for one in rejected) == MAX_EACH * 2


def test_signed_tokens_open_the_gate_once_the_issuers_keys_are_there(
    tmp_path: Path, issuer: HttpUpstream
) -> None:
    auth = (
        "listen:\n  transport: http\n  auth:\n    type: jwt\n"
        f"    jwks_url: {issuer.url}\n    issuer: {ISSUER}\n    audience: {AUDIENCE}\n"
    )
    with HttpUpstream(_answer) as upstream, Gate(tmp_path, config_for(upstream.url, auth)) as gate:
        refused = gate.call("echo", headers={"authorization": _token(OTHER).decode()})
        assert refused.status == 401
        assert "resource_metadata=" in refused.headers["www-authenticate"]
        assert upstream.received == []
        assert gate.call("echo", headers={"authorization": _token().decode()}).status == 200
        assert gate.records("tool_call_start")[0]["call"]["principal"] == f"{ISSUER}#ann"
        document = gate.request("GET", "/.well-known/oauth-protected-resource/mcp")
        assert document.json["authorization_servers"] == [ISSUER]


@pytest.mark.parametrize("body", [call_of("pay"), modern_call_of("pay")], ids=["older", "2026"])
def test_a_call_without_its_scopes_gets_403_and_is_told_which(
    tmp_path: Path, issuer: HttpUpstream, body: dict[str, Any]
) -> None:
    auth = (
        "listen:\n  transport: http\n  auth:\n    type: jwt\n"
        f"    jwks_url: {issuer.url}\n    issuer: {ISSUER}\n    audience: {AUDIENCE}\n"
        "rules:\n  - {tool: pay, action: forward, scope: [tools:read, tools:write]}\n"
    )
    headers = modern_headers("pay") if "_meta" in body["params"] else {}
    with HttpUpstream(_answer) as upstream, Gate(tmp_path, config_for(upstream.url, auth)) as gate:
        document = gate.request("GET", "/.well-known/oauth-protected-resource/mcp").json
        assert document["scopes_supported"] == ["tools:read", "tools:write"]
        token = _token(scope="tools:read openid").decode()
        refused = gate.post(body, {**headers, "authorization": token})
        assert refused.status == 403
        challenge = refused.headers["www-authenticate"]
        assert challenge.startswith('Bearer resource_metadata="')
        assert 'error="insufficient_scope", scope="tools:read tools:write"' in challenge
        error = refused.json["error"]
        assert error["code"] in {-32012, -31012}
        assert error["data"]["kind"] == "insufficient_scope"
        assert error["data"]["missing_scopes"] == ["tools:write"]
        assert upstream.received == []
        token = _token(scope="tools:read tools:write").decode()
        assert gate.post(body, {**headers, "authorization": token}).status == 200
        decision = gate.records("tool_call_decision")[0]["decision"]
        assert (decision["action"], decision["rule_id"]) == ("BLOCK", "rules[0]")


def test_a_session_is_of_no_use_to_another_principal(tmp_path: Path, issuer: HttpUpstream) -> None:
    def server(received: Received) -> Reply:
        if received.method != "POST":
            return Reply(204)
        reply = result(received, {"protocolVersion": "2025-03-26", "capabilities": {}})
        reply.headers = {"mcp-session-id": "s-1"}
        return reply

    auth = (
        "listen:\n  transport: http\n  auth:\n    type: jwt\n"
        f"    jwks_url: {issuer.url}\n    issuer: {ISSUER}\n    audience: {AUDIENCE}\n"
    )
    call, answer = call_of("echo"), {"jsonrpc": "2.0", "id": 50, "result": {}}
    with HttpUpstream(server) as upstream, Gate(tmp_path, config_for(upstream.url, auth)) as gate:
        ann = {"authorization": _token().decode()}
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
        session = {"mcp-session-id": gate.post(opening, ann).headers["mcp-session-id"]}
        upstream.received.clear()
        bob = {"authorization": _token(sub="bob").decode(), "accept": ACCEPT, **session}
        found = [
            gate.post(call, bob).status,
            gate.post([call, call], bob).status,
            gate.post(answer, bob).status,
            gate.request("GET", headers={**bob, "last-event-id": "1"}).status,
            gate.request("DELETE", headers=bob).status,
        ]
        checks = [one["frame"]["check"] for one in gate.records("frame_refused")]
        assert upstream.received == []
        twice = http_post(call, headers={**ann, **session, "host": f"127.0.0.1:{gate.port}"})
        with gate.raw() as connection:
            repeated = b"\r\nauthorization: %b\r\n" % ann["authorization"].encode()
            connection.sendall(twice.replace(b"\r\n", repeated, 1))
            assert read_until(connection, b"\r\n").startswith(b"HTTP/1.1 401 ")
        assert upstream.received == []
        assert gate.post(call, {**ann, **session}).status == 200
    assert found == [404] * 5
    assert checks == ["unknown_session"] * 5


def test_keys_that_could_not_be_fetched_at_the_start_are_fetched_for_the_first_request(
    tmp_path: Path, issuer: HttpUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "KEYS_RETRY_S", -1.0)
    issuer.script = lambda _: Reply(503)
    auth = (
        "listen:\n  transport: http\n  auth:\n    type: jwt\n"
        f"    jwks_url: {issuer.url}\n    issuer: {ISSUER}\n    audience: {AUDIENCE}\n"
    )
    with HttpUpstream(_answer) as upstream, Gate(tmp_path, config_for(upstream.url, auth)) as gate:
        headers = {"authorization": _token().decode()}
        assert gate.call("echo", headers=headers).status == 401
        issuer.script = lambda _: Reply(body=_key_set(("one", KEY)))
        assert gate.call("echo", headers=headers).status == 200
