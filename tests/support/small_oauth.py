"""A small authorization server and MCP server on one origin, for what a real one would not do.

It issues numbered tokens, rotates refresh tokens, refuses one that was used before, and keeps
every request. ``metadata`` and ``resource`` are what it says about itself; tests change them.
"""

import base64
import json
import threading
from collections import Counter
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

from tests.support.http_upstream import HttpUpstream, Received, Reply, small_server

from thoughtgate.config.settings import ServerSettings

_METADATA = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")


class SmallOAuth(HttpUpstream):
    """Both servers; ``url`` is the MCP endpoint."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        base = self.base
        self.resource: dict[str, Any] | None = {
            "resource": f"{base}/mcp",
            "authorization_servers": [base],
            "scopes_supported": ["read"],
        }
        self.metadata: dict[str, Any] | None = {
            "issuer": base,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/token",
            "registration_endpoint": f"{base}/register",
            "revocation_endpoint": f"{base}/revoke",
            "device_authorization_endpoint": f"{base}/device",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
        }
        self.lasts = 3600
        self.challenge = (
            f'Bearer resource_metadata="{base}/.well-known/oauth-protected-resource/mcp"'
        )
        self.accepts_tokens = True
        """Whether the MCP server accepts any token at all."""
        self.missing_scope = ""
        """Requests are refused with 403 until a token has this scope."""
        self.token_reply: Reply | None = None
        """What the token endpoint answers, instead of tokens."""
        self.pending = 0
        """How often a device is told to wait."""
        self.valid: dict[str, str] = {}
        """Access tokens that the MCP server accepts, with their scopes."""
        self.refresh_tokens: dict[str, str] = {}
        self.spent: set[str] = set()
        self.reused: list[str] = []
        self.grants: Counter[str] = Counter()
        self.forms: list[dict[str, str]] = []
        self.clients: list[tuple[str, str]] = []
        """The id and secret of each request to the token endpoint."""
        self.registered: list[dict[str, Any]] = []
        self.revoked: list[str] = []
        self._lock = threading.Lock()
        self._count = 0

    @property
    def base(self) -> str:
        """The origin."""
        return f"http://127.0.0.1:{self.port}"

    def settings(self, **fields: Any) -> ServerSettings:
        """Return the settings of the MCP server."""
        return ServerSettings("search", url=f"{self.base}/mcp", **fields)

    def redirect(self, link: str, **changed: str | None) -> str:
        """Return the path and query of the redirect that a user's consent leads to."""
        asked = dict(parse_qsl(urlsplit(link).query))
        fields: dict[str, str | None] = {
            "code": f"code:{asked.get('scope', '')}",
            "state": asked["state"],
            "iss": self.base,
            **changed,
        }
        query = urlencode({name: value for name, value in fields.items() if value is not None})
        return f"{urlsplit(asked['redirect_uri']).path}?{query}"

    @property
    def tool_calls(self) -> list[Received]:
        """What the MCP server executed."""
        return [
            one for one in self.received if one.path == "/mcp" and self._scopes(one) is not None
        ]

    def secrets(self) -> list[str]:
        """Every token that was ever issued."""
        return [*self.valid, *self.refresh_tokens, *self.spent]

    def _answer(self, received: Received) -> Reply:
        path = received.path.partition("?")[0]
        if path == "/mcp":
            return self._mcp(received)
        if path.startswith("/.well-known/oauth-protected-resource"):
            return _json(self.resource)
        if path in _METADATA:
            return _json(self.metadata)
        if path == "/register":
            self.registered.append(received.message)
            return _json({"client_id": f"client-{len(self.registered)}"}, 201)
        return self._form(received, path)

    def _form(self, received: Received, path: str) -> Reply:
        form = {name: values[0] for name, values in parse_qs(received.body.decode()).items()}
        self.forms.append(form)
        if path == "/revoke":
            self.revoked.append(form["token"])
            return _json({})
        if path == "/device":
            uri = f"{self.base}/enter"
            return _json(
                {
                    "device_code": "d",
                    "user_code": "AB-CD",
                    "verification_uri": uri,
                    "interval": 0.01,
                }
            )
        return self._token(received, form) if path == "/token" else Reply(404)

    def _scopes(self, received: Received) -> str | None:
        return self.valid.get(received.headers.get("authorization", "").removeprefix("Bearer "))

    def _mcp(self, received: Received) -> Reply:
        scopes = self._scopes(received)
        if scopes is None or not self.accepts_tokens:
            return Reply(401, headers={"www-authenticate": self.challenge})
        if self.missing_scope and self.missing_scope not in scopes.split():
            challenge = f'Bearer error="insufficient_scope", scope="{self.missing_scope}"'
            return Reply(403, headers={"www-authenticate": challenge})
        return small_server(received)

    def _token(self, received: Received, form: dict[str, str]) -> Reply:
        with self._lock:
            basic = received.headers.get("authorization", "").removeprefix("Basic ")
            pair = base64.b64decode(basic).decode().split(":") if basic else ["", ""]
            self.clients.append((unquote(pair[0]), unquote(pair[1])))
            if self.token_reply is not None:
                return self.token_reply
            grant = form["grant_type"]
            if grant.endswith("device_code") and self.pending:
                self.pending -= 1
                return _json({"error": "authorization_pending"}, 400)
            scope = form.get("scope", form.get("code", "")).removeprefix("code:")
            if grant == "refresh_token":
                token = form["refresh_token"]
                if token in self.spent:
                    self.reused.append(token)
                if token not in self.refresh_tokens:
                    return _json({"error": "invalid_grant"}, 400)
                scope = self.refresh_tokens.pop(token)
                self.spent.add(token)
            self.grants[grant] += 1
            self._count += 1
            access, renewal = f"access-{self._count}-secret", f"refresh-{self._count}-secret"
            self.valid[access] = scope
            answer: dict[str, Any] = {
                "access_token": access,
                "token_type": "Bearer",
                "scope": scope,
            }
            if self.lasts:
                answer["expires_in"] = self.lasts
            if grant != "client_credentials":
                self.refresh_tokens[renewal] = scope
                answer["refresh_token"] = renewal
            return _json(answer)


def _json(value: Any, status: int = 200) -> Reply:
    return Reply(404) if value is None else Reply(status, json.dumps(value).encode())
