"""Who is signed in, and which servers need it."""

from pathlib import Path
from typing import Any

from thoughtgate.gate.clock import now
from thoughtgate.status.server_logins import (
    describe_login,
    find_needed_logins,
    gather_logins,
    login_command,
    login_object,
)
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.upstream.oauth.tokens import SignedIn

LOGIN = SignedIn("local", "search", "https://as.example", ("a",), 1.0, 0.0, is_renewable=False)


def test_a_store_without_logins_has_none(tmp_path: Path) -> None:
    assert gather_logins(StoreLocation(tmp_path), {}) == []


def test_the_text_says_until_when() -> None:
    assert describe_login(login_object(LOGIN)).endswith("until the server ends it")
    assert describe_login(login_object(LOGIN._replace(is_renewable=True, expires_at=1.0))).endswith(
        "the gate renews it"
    )
    fresh = LOGIN._replace(is_renewable=True, expires_at=now() + 60)
    assert "the gate renews it before 2" in describe_login(login_object(fresh))
    assert "until 2" in describe_login(login_object(LOGIN._replace(expires_at=now() + 60)))
    over = describe_login(login_object(LOGIN._replace(expires_at=1.0)))
    assert over.endswith("it has expired; run: thoughtgate login search")


def test_servers_that_gates_cannot_use_without_a_login_are_named() -> None:
    causes = {"b": "login_required", "a": "dns_failed"}
    servers: list[dict[str, Any]] = [
        {"id": name, "error": {"cause": cause}} for name, cause in causes.items()
    ]
    servers.append({"id": "c", "error": None})
    gates = [{"servers": servers}, {"servers": servers}, {}]

    assert find_needed_logins(gates) == ["b"]


def test_the_command_names_the_config_of_the_gate_that_needs_the_login() -> None:
    needed = [{"id": "search", "error": {"cause": "login_required"}}]
    other: dict[str, Any] = {"config": "/etc/other.yaml", "servers": [{"id": "search"}]}
    built_in: dict[str, Any] = {"config": None, "servers": needed}
    named = {"config": "/etc/my gate.yaml", "servers": needed}

    assert login_command("search", [other, built_in]) == "thoughtgate login search"
    assert login_command("search", [other, named]) == (
        "thoughtgate login search -c '/etc/my gate.yaml'"
    )
    reason = "the server needs a login (HTTP 401); run: thoughtgate login search --principal agent"
    shared = {"config": "/etc/gate.yaml", "servers": [{**needed[0], "reason": reason}]}
    assert login_command("search", [shared]) == (
        "thoughtgate login search --principal agent -c /etc/gate.yaml"
    )
