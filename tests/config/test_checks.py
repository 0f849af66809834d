"""What keys must agree on with one another."""

from typing import Any

import pytest

from thoughtgate.config.checks import check, is_loopback
from thoughtgate.config.document import dotted

SLACK = {"channel": "slack", "slack": {"channel": "#ops"}}


def found(data: dict[str, Any]) -> dict[str, str]:
    return {dotted(path): words for path, words in check(data)}


@pytest.mark.parametrize(
    ("ids", "separator", "wrong"),
    [
        (["git", "git-hub"], ".", []),
        (["git", "git-hub"], "-", ["git-hub"]),
        (["a", "a_"], "__", ["a_"]),
        (["a", "b-c"], "-", []),
        (["thoughtgate-x"], "-", ["thoughtgate-x"]),
        (["git", "git-hub"], 5, []),
    ],
)
def test_no_server_can_list_a_tool_under_the_name_of_anothers(
    ids: list[str], separator: Any, wrong: list[str]
) -> None:
    data = {"servers": {one: {"command": "x"} for one in ids}, "separator": separator}
    assert list(found(data)) == [f"servers.{one}" for one in wrong]


def server(**fields: Any) -> dict[str, Any]:
    return {"servers": {"a": fields}}


def listen(**fields: Any) -> dict[str, Any]:
    return {"listen": {"transport": "http", **fields}}


def console(sign_in: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Return a console with sign-in."""
    token = {"issuer": "i", "audience": "a", "jwks_url": "https://h/k"}
    given = {"jwt": token, **(sign_in or {})}
    return {"console": {"public_url": "https://c.example", "sign_in": given, **fields}}


_TLS = {"certificate": "c.pem", "key": "k.pem"}


@pytest.mark.parametrize(
    "data",
    [
        console(),
        console(public_url="http://localhost:7777"),
        console(host="0.0.0.0", tls=_TLS),
        console({"trusted_proxies": ["0.0.0.0/0"]}, host="0.0.0.0", tls=_TLS),
        console({"trusted_proxies": ["10.0.0.0/8", "fd00::1"]}, host="10.0.0.1"),
        console({"sign_out_url": "/oauth2/sign_out"}),
        console({"sign_out_url": "https://idp.example/logout"}),
        {
            **console(),
            **listen(auth={"type": "jwt", "jwks_url": "https://h", "issuer": "i", "audience": "b"}),
        },
        {"console": {"host": "::1", "port": 7777}},
    ],
)
def test_a_console_on_a_network_may_be_so(data: dict[str, Any]) -> None:
    assert found(data) == {}


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"console": {"host": "0.0.0.0"}}, "console.sign_in"),
        ({"console": {"public_url": "https://c.example"}}, "console.public_url"),
        ({"console": {"tls": _TLS}}, "console.tls"),
        (console(public_url=""), "console.public_url"),
        (console(public_url="http://c.example"), "console.public_url"),
        (console(public_url="https://c.example/gate"), "console.public_url"),
        (console(host="0.0.0.0"), "console.sign_in.trusted_proxies"),
        (console({"trusted_proxies": ["x"]}), "console.sign_in.trusted_proxies[0]"),
        (console({"trusted_proxies": ["::1", "::/0"]}), "console.sign_in.trusted_proxies[1]"),
        (console({"header": "Cookie"}), "console.sign_in.header"),
        (console({"sign_out_url": "//evil.example"}), "console.sign_in.sign_out_url"),
        (console({"sign_out_url": "javascript:x"}), "console.sign_in.sign_out_url"),
        (
            console({"jwt": {"issuer": "i", "audience": "a", "jwks_url": "http://h/k"}}),
            "console.sign_in.jwt.jwks_url",
        ),
        (
            {
                **console(),
                **listen(
                    auth={"type": "jwt", "jwks_url": "https://h", "issuer": "i", "audience": "a"}
                ),
            },
            "console.sign_in.jwt.audience",
        ),
        ({"approval": {"a": {"approvers": ["ann", "group:"]}}}, "approval.a.approvers[1]"),
    ],
)
def test_a_console_that_strangers_could_use_is_refused(data: dict[str, Any], key: str) -> None:
    assert set(found(data)) == {key}


def test_a_group_may_have_as_many_members_as_are_required() -> None:
    signed_in = {"console": {"sign_in": {"issuer": "https://sso.example.org"}}}
    workflow = {"approval": {"a": {"approvers": ["group:sre"], "required": 2}}}
    assert "approval.a.required" not in found({**workflow, **signed_in})


def test_approvers_who_must_sign_in_need_a_sign_in() -> None:
    lonely = {"approval": {"a": {"approvers": ["group:sre", "user:ann@example.org"]}}}
    assert "console.sign_in" in found(lonely)["approval.a.approvers"]
    assert found({"approval": {"a": {"approvers": ["group:sre", "ann"]}}}) == {}


@pytest.mark.parametrize(
    "data",
    [
        {},
        server(command="x", args=["y"]),
        server(url="https://h/mcp", auth={"token_env": "T"}),
        server(url="http://localhost:1/mcp", auth={"token_env": "T"}),
        server(url="http://h/mcp"),
        server(expose={"allow": []}),
        {"servers": {"a": {}, "*": {"expose": {"block": ["x"]}}}, "rules": [{"server": "zz"}]},
        {"servers": {"a": {}}, "rules": [{"server": ["a", "z*", "thoughtgate"]}]},
        {"rules": [{"server": "anything", "action": "deny"}]},
        {"rules": [{"tool": "x", "kind": "tool"}]},
        {"rules": [{"action": "approve", "approval": "default"}]},
        {"rules": [{"action": "approve", "scope": "tools:write"}]},
        {"rules": [{"action": "policy"}], "cedar": {"policies": ["x"]}},
        {"limits": [{"budget": 0}]},
        {"approval": {"a": SLACK, "b": {"timeout": "5s"}}},
        listen(host="127.0.0.1"),
        listen(host="::1"),
        listen(host="0.0.0.0", auth={"type": "bearer", "token_env": "T"}),
        listen(auth={"type": "jwt", "jwks_url": "https://h/k", "audience": "x", "issuer": "i"}),
        listen(auth={"type": "ip_allowlist", "allow": ["10.0.0.1", "fd00::/8"]}),
        listen(public_url="https://gate.example"),
        {"audit": {"sink": "stdout"}, "listen": {"transport": "http"}},
        {"store": "postgresql://gate@h/d"},
        {"tasks": {"ttl": "1m", "max_ttl": "1h"}},
        {"namespaces": {"n": ["a"]}, "default_namespace": "n", "servers": {"a": {}}},
    ],
)  # fmt: skip
def test_what_fits_together_is_left_alone(data: dict[str, Any]) -> None:
    assert found(data) == {}


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"servers": {"a.b": {}}}, "servers.a.b"),
        ({"servers": {"a/b": {}}}, "servers.a/b"),
        ({"servers": {"": {}}}, "servers."),
        ({"servers": {" a": {}}}, "servers. a"),
        ({"servers": {"a\n": {}}}, "servers.a\n"),
        ({"servers": {"_a": {}}}, "servers._a"),
        ({"servers": {"ThoughtGate": {}}}, "servers.ThoughtGate"),
        ({"servers": {"a": {}, "A": {}}}, "servers.A"),
        ({"servers": {"*": {"command": "x"}}}, "servers.*"),
        (server(command="x", url="https://h"), "servers.a.command"),
        (server(args=["x"]), "servers.a.args"),
        (server(auth={"token_env": "T"}), "servers.a.auth"),
        (server(url="ftp://h"), "servers.a.url"),
        (server(url="https://"), "servers.a.url"),
        (server(url="https://[bad"), "servers.a.url"),
        (server(url="https://h:0/"), "servers.a.url"),
        (server(url="https://h:99999/"), "servers.a.url"),
        (server(url="https://u:p@h/"), "servers.a.url"),
        (server(url="http://h/", auth={"token_env": "T"}), "servers.a.url"),
        (server(url="http://h/", headers={"authorization": "x"}), "servers.a.url"),
        (server(timeout="1ms"), "servers.a.timeout"),
        ({"rules": [{"tool": "x", "prompt": "y"}]}, "rules[0]"),
        ({"rules": [{"tool": "x", "kind": "prompt"}]}, "rules[0].kind"),
        ({"servers": {"a": {}}, "rules": [{"server": "b"}]}, "rules[0].server"),
        ({"servers": {"a": {}}, "limits": [{"server": ["b"], "budget": 1}]}, "limits[0].server"),
        ({"rules": [{"id": "x"}, {"id": "x"}]}, "rules[1].id"),
        ({"rules": [{"action": "policy"}]}, "rules[0].action"),
        ({"default": "policy"}, "default"),
        ({"rules": [{"action": "forward", "annotations": {"a": 1}}]}, "rules[0].annotations"),
        ({"rules": [{"action": "deny", "approval": "default"}]}, "rules[0].approval"),
        ({"rules": [{"action": "approve", "approval": "x"}]}, "rules[0].approval"),
        ({"limits": [{"tool": "x"}]}, "limits[0]"),
        ({"approval": {"a": {"channel": "slack"}}}, "approval.a.slack"),
        ({"approval": {"a": {"slack": {"channel": "x"}}}}, "approval.a.slack"),
        ({"approval": {"a": {"timeout": "1s"}}}, "approval.a.timeout"),
        ({"approval": {"a": {"approvers": ["x", "x"], "required": 2}}}, "approval.a.required"),
        (
            {"approval": {"a": {"channel": "webhook", "webhook": {"url": "http://h"}}}},
            "approval.a.webhook.url",
        ),
        ({"listen": {"auth": {"type": "bearer", "token_env": "T"}}}, "listen.auth"),
        (listen(host="0.0.0.0"), "listen.auth"),
        (listen(host="gate.example"), "listen.auth"),
        ({"rules": [{"action": "deny", "scope": "a"}]}, "rules[0].scope"),
        (listen(auth={"type": "bearer"}), "listen.auth.token_env"),
        (listen(auth={"type": "bearer", "token_env": "T", "allow": []}), "listen.auth.allow"),
        (
            listen(auth={"type": "ip_allowlist", "allow": ["10.0.0.0/8", "x"]}),
            "listen.auth.allow[1]",
        ),
        (listen(auth={"type": "ip_allowlist", "allow": []}), "listen.auth.allow"),
        (
            listen(auth={"type": "jwt", "jwks_url": "http://h", "issuer": "i", "audience": "x"}),
            "listen.auth.jwks_url",
        ),
        (
            listen(auth={"type": "jwt", "jwks_url": "https://h", "issuer": "i"}),
            "listen.auth.audience",
        ),
        (
            listen(auth={"type": "jwt", "jwks_url": "https://h", "audience": "x"}),
            "listen.auth.issuer",
        ),
        (
            listen(
                auth={
                    "type": "jwt",
                    "jwks_url": "https://h",
                    "audience": "x",
                    "issuer": "https://i#",
                }
            ),
            "listen.auth.issuer",
        ),
        (listen(public_url="gate"), "listen.public_url"),
        (listen(port=5, admin_port=5), "listen.admin_port"),
        ({"namespaces": {"n": ["a"]}}, "namespaces.n[0]"),
        ({"default_namespace": "x"}, "default_namespace"),
        ({"audit": {"sink": "stdout"}}, "audit.sink"),
        ({"audit": {"sink": "stderr", "file": "x"}}, "audit.file"),
        ({"store": "mysql://h"}, "store"),
        ({"tasks": {"ttl": "2h", "max_ttl": "1h"}}, "tasks.ttl"),
        ({"telemetry": {"otlp": {"endpoint": "h:4318"}}}, "telemetry.otlp.endpoint"),
    ],
)
def test_what_does_not_fit_together_is_named(data: dict[str, Any], key: str) -> None:
    assert set(found(data)) == {key}


@pytest.mark.parametrize(
    "data",
    [
        {"servers": 5, "rules": {}, "limits": 1, "approval": [], "listen": "x", "namespaces": 3},
        {"servers": {"a": 5}, "rules": [5], "limits": [None], "approval": {"a": 5}},
        {"servers": {"a": {"url": 5, "timeout": 5, "headers": 5}}, "namespaces": {"n": 5}},
        {"listen": {"auth": {"type": 5}}, "store": 5, "tasks": {"ttl": "x"}},
        {"rules": [{"action": ["deny"], "annotations": {"a": 1}}], "namespaces": {"n": [[]]}},
        {"rules": [{"server": 5, "kind": 5, "approval": 5, "action": "approve"}]},
        {"console": {"sign_in": {"jwt": 5, "header": 5, "trusted_proxies": 5}, "public_url": 5}},
        {"console": {"host": 5, "sign_in": 5}, "approval": {"a": {"approvers": [5]}}},
    ],
)
def test_wrong_types_are_left_for_the_models(data: dict[str, Any]) -> None:
    assert all(words for words in found(data).values())


@pytest.mark.parametrize(
    ("host", "expected"),
    [("localhost", True), ("127.0.0.9", True), ("[::1]", True), ("0.0.0.0", False), ("h", False)],
)
def test_loopback_is_known_without_looking_a_name_up(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"rules": [{"tool": None, "action": "forward"}]}, "rules[0].tool"),
        (server(command="x", expose={"allow": None}), "servers.a.expose.allow"),
        (listen(auth=None), "listen.auth"),
    ],
)
def test_a_key_without_a_value_never_means_everything(data: dict[str, Any], key: str) -> None:
    assert "is empty" in found(data)[key]


def test_a_condition_may_compare_with_null() -> None:
    assert not found({"rules": [{"tool": "x", "when": {"a": None}, "action": "deny"}]})


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"command": "a\0b"}, "command"),
        ({"command": "x", "cwd": "\0"}, "cwd"),
        ({"command": "x", "args": ["a", "\0"]}, "args[1]"),
        ({"command": "x", "env": {"A=B": "c"}}, "env.A=B"),
        ({"command": "x", "env": {"A": "\0"}}, "env.A"),
        ({"url": "http://h/", "headers": {"A": "x\r\nB: y"}}, "headers.A"),
        ({"url": "http://h/", "headers": {"A:": "x"}}, "headers.A:"),
        ({"url": "http://h/", "headers": {"Host": "other"}}, "headers.Host"),
        ({"url": "http://h/", "headers": {"content-length": "0"}}, "headers.content-length"),
        ({"url": "http://h/", "headers": {"Transfer-Encoding": "x"}}, "headers.Transfer-Encoding"),
        ({"url": "http://h/", "headers": {"Mcp-Session-Id": "x"}}, "headers.Mcp-Session-Id"),
        ({"url": "http://h/\r\nX: y"}, "url"),
        ({"url": "http://h/a b"}, "url"),
    ],
)
def test_no_value_runs_over_into_the_next(fields: dict[str, Any], key: str) -> None:
    assert f"servers.a.{key}" in found(server(**fields))


@pytest.mark.parametrize(
    ("limit", "key"),
    [
        ({"duplicate": "0s"}, "duplicate"),
        ({"breaker": {"failures": 1, "within": "0s"}}, "breaker.within"),
        ({"breaker": {"failures": 1, "cooldown": "0ms"}}, "breaker.cooldown"),
    ],
)
def test_a_limit_over_no_time_is_refused(limit: dict[str, Any], key: str) -> None:
    assert f"limits[0].{key}" in found({"limits": [limit]})


@pytest.mark.parametrize(
    ("data", "key", "instead"),
    [
        (server(url="https://u:p@h/mcp"), "servers.a.url", "; use auth with token_env"),
        (
            {"telemetry": {"otlp": {"endpoint": "https://u:p@h:4318"}}},
            "telemetry.otlp.endpoint",
            "; use headers",
        ),
        (listen(public_url="https://u:p@h"), "listen.public_url", ""),
    ],
)
def test_where_a_password_in_an_address_belongs_is_said(
    data: dict[str, Any], key: str, instead: str
) -> None:
    assert found(data)[key] == f"must not contain a user name or password{instead}"


def test_a_channel_is_built_in_or_installed() -> None:
    data = {"approval": {"a": {"channel": "pigeon"}, "b": {"channel": "raven", "options": {}}}}
    wrong = {dotted(path): words for path, words in check(data, lambda: ["raven", "crow"])}

    assert wrong == {
        "approval.a.channel": "no channel 'pigeon'; built in: console, terminal, slack, webhook,"
        " elicitation; from installed packages: crow, raven"
    }
    assert found(data)["approval.b.channel"].endswith("from installed packages: none")


def test_the_installed_channels_are_not_looked_for_without_need() -> None:
    def look() -> list[str]:
        raise AssertionError

    data = {"approval": {"a": SLACK, "b": {}, "c": {"channel": 5}, "d": {"channel": ""}, "e": 1}}
    assert [*check(data, look)] == []


def test_options_are_for_installed_channels() -> None:
    assert found({"approval": {"a": {"options": {}}, "b": {**SLACK, "options": {"x": 1}}}}) == {
        "approval.a.options": "only for channels that a package provides; console is built in",
        "approval.b.options": "only for channels that a package provides; slack is built in",
    }


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"tls": {"ca": "c.pem"}, "proxy": "http://p:3128", "max_answer": "64KiB"}, []),
        ({"proxy": "none"}, []),
        ({"proxy": "environment"}, []),
        ({"proxy": "http://u:p@proxy/"}, []),
        ({"proxy": "socks5://p:1"}, ["proxy"]),
        ({"proxy": "https://p:1"}, ["proxy"]),
        ({"proxy": "http://p:1/path"}, ["proxy"]),
        ({"proxy": "http://p:99999"}, ["proxy"]),
        ({"proxy": "p:1"}, ["proxy"]),
        ({"tls": {"client_cert": "c.pem"}}, ["tls.client_key"]),
        ({"tls": {"client_key": "k.pem"}}, ["tls.client_cert"]),
        ({"max_answer": 65_535}, ["max_answer"]),
        ({"max_answer": "much"}, []),
        ({"url": "http://h/mcp", "tls": {"ca": "c.pem"}}, ["tls"]),
    ],
)
def test_how_an_http_server_is_reached(fields: dict[str, Any], wrong: list[str]) -> None:
    data = server(**{"url": "https://h/mcp", **fields})
    assert list(found(data)) == [f"servers.a.{one}" for one in wrong]


@pytest.mark.parametrize("key", ["transport", "tls", "proxy", "max_answer"])
def test_keys_of_http_servers_are_refused_for_others(key: str) -> None:
    values = {"transport": "sse", "tls": {"ca": "c"}, "proxy": "none", "max_answer": "1MiB"}
    assert found(server(command="x", **{key: values[key]})) == {f"servers.a.{key}": "requires url"}


def test_the_password_of_a_proxy_is_not_quoted() -> None:
    words = found(server(url="https://h/mcp", proxy="https://u:secret@p:1"))
    assert "secret" not in str(words)


def test_clients_are_known_by_certificates_only_if_they_must_show_one() -> None:
    tls = {"cert": "c.pem", "key": "k.pem"}
    key = "listen.tls.client_ca"
    assert list(found(listen(auth={"type": "mtls"}, tls=tls))) == [key]
    assert list(found(listen(auth={"type": "mtls"}))) == [key]
    assert found(listen(auth={"type": "mtls"}, tls={**tls, "client_ca": "ca.pem"})) == {}
    assert list(found({"listen": {"tls": tls}})) == ["listen.tls"]
