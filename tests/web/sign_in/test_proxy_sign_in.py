"""Sign-in through a proxy: real HTTP, real keys, and every kind of token that proves nothing."""

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.support.approvals import a_store
from tests.support.consoles import Client, LocalConsole, RunningConsole
from tests.support.http_upstream import HttpUpstream, Reply
from tests.support.postgres import PostgresServer
from tests.support.sign_in import (
    ANN,
    HEADER,
    ISSUER,
    KEY,
    OTHER_KEY,
    ProxiedClient,
    key_set,
    running_issuer,
    sign_in_config,
    signed_in_as,
    token,
)
from tests.support.waiting import wait_for
from tests.web.conftest import Gate

from thoughtgate.config.console_settings import DEFAULT_CONSOLE
from thoughtgate.front import authentication
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.web.sign_in.proxy_sign_in import (
    MAX_GROUPS,
    beside,
    open_sign_in,
    public_origin,
    read_groups,
)


@pytest.fixture
def issuer() -> Iterator[HttpUpstream]:
    with running_issuer() as running:
        yield running


@pytest.fixture
def console(tmp_path: Path, gate: Gate, issuer: HttpUpstream) -> Iterator[LocalConsole]:
    del gate
    with LocalConsole(tmp_path, sign_in_config(issuer.url)) as served:
        yield served


def port_of(console: LocalConsole) -> int:
    return console.console.port


def test_a_verified_token_signs_in_and_names_the_reviewer(console: LocalConsole) -> None:
    client = ProxiedClient(port_of(console))
    page = client.get("/")

    assert page.status == 200
    assert f"console:{ANN}" in page.text
    cookie = page.headers["set-cookie"].lower()
    assert cookie.startswith(f"__host-thoughtgate_{port_of(console)}=")
    assert "secure" in cookie
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "set-cookie" not in client.get("/").headers


def _confused() -> str:
    """Return a token that is signed with the public key, as if that were a shared secret."""
    public = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    _, claims, _ = token().split(".")
    head = _encoded(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "one"}).encode())
    signed = f"{head}.{claims}"
    return f"{signed}.{_encoded(hmac.digest(public, signed.encode(), hashlib.sha256))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: token(exp=time.time() - 3600), "token expired"),
        (lambda: token(exp=None), "not acceptable"),
        (lambda: token(aud="https://gate.example/mcp"), "meant for somebody else"),
        (lambda: token(aud=None), "not acceptable"),
        (lambda: token(iss="https://evil.example"), "another issuer"),
        (lambda: token(iss=None), "not acceptable"),
        (lambda: token(OTHER_KEY), "not acceptable"),
        (lambda: token(OTHER_KEY, kid="two"), "unknown key"),
        (lambda: jwt.encode({"email": ANN}, "", "none", headers={"kid": "one"}), "not accepted"),
        (_confused, "not accepted"),
        (lambda: token(pad="x" * 20_000), ""),
        (lambda: "not.a.token", "not acceptable"),
        (lambda: f"Bearer {token()}", "not acceptable"),
        (lambda: token(email=None), "names nobody"),
        (lambda: token(email="n" * 300), "an unusable name"),
        (lambda: token(email="ann\u202e"), "an unusable name"),
        (lambda: token(email_verified=False), "not verified"),
        (lambda: token(groups={"sre": True}), "not a list"),
        (lambda: token(groups=["sre", 5]), "not a list"),
        (lambda: token(groups=[f"g{n}" for n in range(MAX_GROUPS + 1)]), "groups"),
    ],
)
def test_a_token_that_proves_nothing_signs_nobody_in(
    console: LocalConsole, gate: Gate, make: Callable[[], str], reason: str
) -> None:
    gate.hold()
    given = make()
    page = ProxiedClient(port_of(console), given).get("/")

    assert page.status in {401, 431}
    assert "set-cookie" not in page.headers
    assert "delete_file" not in page.text
    assert given not in page.text + str(console.refusals)
    if page.status == 401:
        assert HEADER in page.text
        assert any(reason in said and path == "/" for said, path in console.refusals)


def test_without_a_token_the_page_says_what_to_do(console: LocalConsole) -> None:
    page = console.stranger().get("/")

    assert page.status == 401
    assert "https://console.example" in page.text
    assert "thoughtgate console --open" not in page.text
    assert (f"no token in the header {HEADER}", "/") in console.refusals


def test_two_tokens_are_none(console: LocalConsole) -> None:
    page = ProxiedClient(port_of(console)).get("/", {HEADER.lower(): token()})

    assert page.status == 401
    assert (f"more than one header {HEADER}", "/") in console.refusals


@pytest.mark.parametrize(
    "path", ["/", "/inbox", "/live", "/traffic", "/calls", "/servers", "/grants", "/overview"]
)
def test_every_page_wants_the_token_with_every_request(console: LocalConsole, path: str) -> None:
    client = ProxiedClient(port_of(console))
    assert client.get("/").status == 200
    stranger = console.stranger()
    stranger.cookie = client.cookie

    assert stranger.get(path).status == 401


def test_a_redirect_leads_to_the_public_address(console: LocalConsole) -> None:
    answer = ProxiedClient(port_of(console)).get("/calls/", {"Host": "console.example"})

    assert answer.status == 307
    assert answer.headers["location"] == "https://console.example/calls"


def test_one_time_links_are_refused(console: LocalConsole) -> None:
    assert console.console.new_link() == "https://console.example"
    code = console.console.context.sessions.new_link().rpartition("/")[2]
    page = console.stranger().get(f"/login/{code}")

    assert page.status == 401
    assert "no one-time links" in page.text
    assert "set-cookie" not in page.headers
    assert ("sign-in link, but reviewers sign in through a proxy", "/login/") in console.refusals


def test_a_session_belongs_to_its_subject(console: LocalConsole, gate: Gate) -> None:
    path = f"/approvals/{gate.hold()}"
    ann = signed_in_as(port_of(console), ANN)
    form = ann.get("/").token(path)
    bob = signed_in_as(port_of(console), "bob@example.org")
    bob.cookie = ann.cookie

    assert bob.post(path, {"token": form, "decision": "approve"}).status == 401
    assert bob.get("/").status == 200
    assert bob.cookie != ann.cookie
    assert bob.post(path, {"token": form, "decision": "approve"}).status == 403
    assert gate.decided() == {}
    assert ann.post(path, {"token": form, "decision": "approve"}).status == 303
    assert gate.decided() == {"run.1": True}


def test_a_decision_without_a_session_is_refused(console: LocalConsole, gate: Gate) -> None:
    path = f"/approvals/{gate.hold()}"

    assert ProxiedClient(port_of(console)).post(path, {"decision": "approve"}).status == 401
    assert gate.decided() == {}


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://console.example", "http://127.0.0.1", "null"]
)
def test_a_form_of_another_site_is_refused(console: LocalConsole, gate: Gate, origin: str) -> None:
    path = f"/approvals/{gate.hold()}"
    client = ProxiedClient(port_of(console))
    form = client.get("/").token(path)
    plain = Client(port_of(console))
    plain.cookie = client.cookie
    fields = {"token": form, "decision": "approve"}

    refused = plain.post(path, fields, {"Origin": origin, HEADER: client.given})
    assert refused.status == 403
    assert gate.decided() == {}


def test_a_wrong_host_is_refused(console: LocalConsole) -> None:
    plain = Client(port_of(console))

    assert plain.get("/", {"Host": "evil.example", HEADER: token()}).status == 421
    assert plain.get("/", {"Host": "CONSOLE.example", HEADER: token()}).status == 200


def test_signing_out_ends_the_session_and_names_the_proxys_page(
    tmp_path: Path, issuer: HttpUpstream
) -> None:
    out = "    sign_out_url: /oauth2/sign_out\n"
    with LocalConsole(tmp_path, sign_in_config(issuer.url, out)) as served:
        client = ProxiedClient(port_of(served))
        form, before = client.get("/").token("/logout"), client.cookie
        page = client.post("/logout", {"token": form})

        assert page.status == 200
        assert "/oauth2/sign_out" in page.text
        assert "secure" in page.headers["set-cookie"].lower()
        client.cookie = before
        assert "set-cookie" in client.get("/").headers


@pytest.mark.parametrize(
    ("proxies", "status"), [("[10.9.0.0/16]", 403), ("[10.9.0.0/16, 127.0.0.1]", 200)]
)
def test_without_tls_only_trusted_proxies_may_connect(
    tmp_path: Path, issuer: HttpUpstream, proxies: str, status: int
) -> None:
    trusted = f"    trusted_proxies: {proxies}\n"
    with LocalConsole(tmp_path, sign_in_config(issuer.url, trusted)) as served:
        page = ProxiedClient(port_of(served)).get("/")

        assert page.status == status
        if status == 403:
            assert "trusted_proxies" in page.text
            assert "TLS" in page.text
            assert [path for _, path in served.refusals] == ["/"]
            assert ProxiedClient(port_of(served)).get("/static/console.css").status == 403


def test_a_bearer_token_is_read_from_the_authorization_header(
    tmp_path: Path, issuer: HttpUpstream
) -> None:
    config = sign_in_config(issuer.url).replace(f"header: {HEADER}", "header: Authorization")
    with LocalConsole(tmp_path, config) as served:
        plain = Client(port_of(served))

        assert plain.get("/", {"Authorization": f"Bearer {token()}"}).status == 200
        assert plain.get("/", {"Authorization": token()}).status == 401
        assert plain.get("/", {"Authorization": "Basic YTpi"}).status == 401


def test_keys_are_fetched_again_when_a_token_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [Reply(500), Reply(500), Reply(body=key_set(("one", KEY)))]
    with (
        HttpUpstream(lambda _: answers.pop(0)) as failing,
        LocalConsole(tmp_path, sign_in_config(failing.url)) as served,
    ):
        # The attempt at the start failed, and the next may not follow at once.
        assert ProxiedClient(port_of(served)).get("/").status == 401
        assert len(failing.received) == 1
        monkeypatch.setattr(authentication, "KEYS_RETRY_S", 0.0)
        assert ProxiedClient(port_of(served)).get("/").status == 401
        assert ProxiedClient(port_of(served)).get("/").status == 200


@pytest.mark.parametrize(
    ("value", "groups"),
    [
        (None, ()),
        ("", ()),
        ("sre", ("sre",)),
        (["sre", "ops"], ("sre", "ops")),
        ([], ()),
    ],
)
def test_groups_are_a_list_or_one_name(value: Any, groups: tuple[str, ...]) -> None:
    assert read_groups(value) == groups


@pytest.mark.parametrize("value", [5, True, {"a": 1}, ["a", None], ["x" * 300]])
def test_other_groups_are_refused(value: Any) -> None:
    assert isinstance(read_groups(value), str)


def test_the_origin_is_written_as_browsers_write_it() -> None:
    assert public_origin("https://Console.Example:443/") == "https://console.example"
    assert public_origin("https://c.example:8443") == "https://c.example:8443"
    assert public_origin("http://[::1]:80/") == "http://[::1]"


def test_files_are_relative_to_the_config() -> None:
    assert beside("/etc/gate/thoughtgate.yaml", "tls/key.pem") == "/etc/gate/tls/key.pem"
    assert beside("/etc/gate/thoughtgate.yaml", "/run/key.pem") == "/run/key.pem"
    assert beside(None, "key.pem") == "key.pem"


def test_without_sign_in_there_is_nothing_to_open() -> None:
    assert open_sign_in(DEFAULT_CONSOLE) is None


# Who may decide.


@pytest.mark.parametrize(
    ("name", "groups", "may"),
    [
        (ANN, ["sre"], True),
        (ANN, ["dev", "sre"], True),
        (ANN, ["dev"], False),
        (ANN, [], False),
        ("bob@example.org", [], True),
        ("cas@example.org", [], True),
        ("group:sre", [], False),
        ("sre", [], False),
        ("user:bob@example.org", [], False),
    ],
)
def test_approvers_are_decided_by_identity_and_groups(
    console: LocalConsole, gate: Gate, name: str, groups: list[str], *, may: bool
) -> None:
    ident = gate.hold(workflow="signed_in")
    path = f"/approvals/{ident}"
    client = signed_in_as(port_of(console), name, *groups)
    page = client.get(path)

    assert page.status == 200
    assert "delete_file" in page.text
    assert ('value="approve"' in page.text) is may
    assert ("You cannot decide this" in page.text) is not may
    if not may:
        assert "group:sre" in page.text
        sessions = console.console.context.sessions
        cookie = client.cookie.partition("=")[2]
        session = sessions.find(cookie)
        assert session is not None
        found = gate.store.get(ident)
        form = sessions.form_token(session, "decide", ident, getattr(found, "digest", ""))
    else:
        form = page.token(path)
    answer = client.post(path, {"token": form, "decision": "approve"})
    assert answer.status == (303 if may else 403)
    assert gate.decided() == ({"run.1": True} if may else {})


def test_the_groups_at_the_moment_of_the_vote_count(console: LocalConsole, gate: Gate) -> None:
    ident = gate.hold(workflow="signed_in")
    path = f"/approvals/{ident}"
    client = signed_in_as(port_of(console), ANN, "sre")
    form = client.get(path).token(path)
    client.given = token(groups=["dev"])

    assert client.post(path, {"token": form, "decision": "approve"}).status == 403
    assert gate.decided() == {}


def test_a_vote_is_stored_and_recorded_with_its_groups(console: LocalConsole, gate: Gate) -> None:
    ident = gate.hold(workflow="signed_in")
    path = f"/approvals/{ident}"
    client = signed_in_as(port_of(console), ANN, "dev", "sre")
    client.post(path, {"token": client.get(path).token(path), "decision": "approve"})

    ((_, decision),) = gate.approvals.poll(time.time())
    (vote,) = decision.votes
    assert (vote.by, vote.groups, vote.issuer) == (f"console:{ANN}", ("dev", "sre"), ISSUER)


def test_a_remembered_approval_of_a_group_decides_later_calls(
    console: LocalConsole, gate: Gate
) -> None:
    ident = gate.hold(workflow="signed_in", arguments={"path": "/tmp/same"})
    path = f"/approvals/{ident}"
    client = signed_in_as(port_of(console), ANN, "sre")
    fields = {"decision": "approve", "remember": "1h", "scope": "tool"}
    client.post(path, {"token": client.get(path).token(path), **fields})
    assert gate.decided() == {"run.1": True}

    decision = gate.ask(workflow="signed_in", arguments={"path": "/tmp/same"})
    assert decision is not None
    assert decision.approved
    assert decision.votes[0].groups == ("sre",)


def test_a_live_stream_ends_with_its_token(console: LocalConsole) -> None:
    # Within the leeway for three more seconds, enough to connect on a loaded machine.
    client = ProxiedClient(port_of(console), token(exp=time.time() - 27))
    page = client.get("/live")

    assert page.status == 200
    assert page.text.startswith("retry:")


# Several gates.


@pytest.mark.long
def test_the_console_of_any_gate_decides_for_all_gates(
    tmp_path: Path, issuer: HttpUpstream, postgres: PostgresServer
) -> None:
    """Two gates hold calls, and the consoles of two others, on their own ports, decide them."""
    url = postgres.url()
    location = StoreLocation(tmp_path, url)
    stores = [a_store(location), a_store(location)]
    gates = [Gate(store, owner=f"gate|{n}", ids=f"g{n}x") for n, store in enumerate(stores)]
    # Different calls: the same one, asked again while its gate is gone, would be one request.
    idents = [
        each.hold(workflow="signed_in", arguments={"path": f"/tmp/{n}"})
        for n, each in enumerate(gates)
    ]
    consoles = []
    try:
        for name in ("three", "four"):
            state = tmp_path / name
            state.mkdir()
            file = state / "thoughtgate.yaml"
            file.write_text(sign_in_config(issuer.url, rest=f"store: {url}\n"))
            consoles.append(RunningConsole(state, "-c", str(file)))
        first, second = (signed_in_as(each.port, ANN, "sre") for each in consoles)
        for ident in idents:
            assert f"/approvals/{ident}" in first.get("/").text
        path = f"/approvals/{idents[0]}"
        form = {"token": first.get("/").token(path), "decision": "approve"}
        assert first.post(path, form).status == 303
        path = f"/approvals/{idents[1]}"
        form = {"token": second.get("/").token(path), "decision": "deny"}
        assert second.post(path, form).status == 303

        assert wait_for(gates[0].decided) == {"run.1": True}
        assert wait_for(gates[1].decided) == {"run.1": False}
        said = "".join(each.stderr for each in consoles)
        assert url not in said
    finally:
        for each in consoles:
            each.destroy()
        for store in stores:
            store.close()
