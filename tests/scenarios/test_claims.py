"""Policies on what an agent's token says of it, wherever agents come over HTTP."""

import http.client
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from tests.support.commands import sample_server, thoughtgate
from tests.support.http_gate import modern_call_of, modern_headers
from tests.support.http_upstream import HttpUpstream, Reply
from tests.support.proxy_process import environment
from tests.support.stages import port_of, served
from tests.support.stdio_peer import StdioPeer

KEY = ec.generate_private_key(ec.SECP256R1())
AUDIENCE = "https://gate.example/mcp"
ISSUER = "https://issuer.example"
CEDAR = """\
permit(principal, action, resource);
forbid(principal, action, resource) when { context.claims has team && context.claims.team == "red" };
"""


def _keys() -> bytes:
    entry = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key()))
    return json.dumps({"keys": [{**entry, "kid": "one", "alg": "ES256"}]}).encode()


def _token(team: str, scope: str = "") -> str:
    claims = {"sub": "ann", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 600, "team": team}
    claims["scope"] = scope
    return jwt.encode(claims, KEY, "ES256", headers={"kid": "one"})


def _call(port: int, tool: str, team: str, scope: str = "") -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    headers = {**modern_headers(tool), "authorization": f"Bearer {_token(team, scope)}"}
    headers |= {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    body = json.dumps(modern_call_of(tool, {"text": "x"}))
    connection.request("POST", "/mcp", body, headers)
    text = connection.getresponse().read().decode()
    connection.close()
    line = next((line[5:] for line in text.splitlines() if line.startswith("data:")), text)
    return json.loads(line)


@pytest.mark.parametrize(
    ("command", "tool"),
    [(["proxy", "--listen"], "echo"), (["serve", "--http"], "sample.echo")],
    ids=["proxy", "serve"],
)
def test_a_policy_sees_the_claims_of_a_signed_token(
    tmp_path: Path, command: list[str], tool: str
) -> None:
    (tmp_path / "p.cedar").write_text(CEDAR, "utf-8")
    with HttpUpstream(lambda _: Reply(body=_keys())) as issuer:
        config = tmp_path / "thoughtgate.yaml"
        config.write_text(
            "schema: 1\ndefault: deny\nrules: [{tool: '*', action: policy}]\n"
            "cedar: {policies: [p.cedar]}\n"
            "listen: {transport: http, auth: {type: jwt, "
            f"jwks_url: '{issuer.url}', issuer: '{ISSUER}', audience: '{AUDIENCE}'}}}}\n"
            + served(sample_server()),
            "utf-8",
        )
        name, flag = command
        started = thoughtgate(name, "-c", str(config), flag, "127.0.0.1:0")
        with StdioPeer(started, env=environment(tmp_path)) as gate:
            port = port_of(gate)
            assert _call(port, tool, "blue")["result"]["content"][0]["text"] == "x"
            assert _call(port, tool, "red")["error"]["data"]["kind"] == "policy_denied"


@pytest.mark.parametrize(
    ("command", "tool"),
    [(["proxy", "--listen"], "echo"), (["serve", "--http"], "sample.echo")],
    ids=["proxy", "serve"],
)
def test_a_rule_needs_scopes_of_the_token(tmp_path: Path, command: list[str], tool: str) -> None:
    with HttpUpstream(lambda _: Reply(body=_keys())) as issuer:
        config = tmp_path / "thoughtgate.yaml"
        config.write_text(
            "schema: 1\ndefault: deny\nrules: [{tool: echo, action: forward, scope: tools:write}]\n"
            "listen: {transport: http, auth: {type: jwt, "
            f"jwks_url: '{issuer.url}', issuer: '{ISSUER}', audience: '{AUDIENCE}'}}}}\n"
            + served(sample_server()),
            "utf-8",
        )
        name, flag = command
        started = thoughtgate(name, "-c", str(config), flag, "127.0.0.1:0")
        with StdioPeer(started, env=environment(tmp_path)) as gate:
            port = port_of(gate)
            assert _call(port, tool, "blue")["error"]["data"]["missing_scopes"] == ["tools:write"]
            assert "result" in _call(port, tool, "blue", scope="tools:read tools:write")
