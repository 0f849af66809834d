"""Remote servers behind the gate: reached by a proxy, judged by the service, secrets kept."""

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_files import Scene
from tests.support.commands import sample_server, thoughtgate
from tests.support.stdio_peer import StdioPeer
from tests.support.wraps import Machine, kind_of, text_of

from thoughtgate.config.load import load_settings
from thoughtgate.wrap.remote_servers import Remotes, remove_orphans
from thoughtgate.wrap.remotes_file import remotes_path

URL = "https://example.com/mcp"


def _servers(tmp_path: Path, entry: dict[str, Any], env: dict[str, str], agent: str) -> Any:
    scene = Scene(tmp_path, agent=agent, env=env)
    path = scene.home / ".claude.json"
    scene.write(path, {"mcpServers": {"far": entry}})
    place = tmp_path / "remotes.json"
    Remotes(scene.plan(), env).save(place)
    if not place.exists():
        return None
    servers = json.loads(place.read_text("utf-8"))["servers"]
    # The governance service compares the definitions, not the proxy behind it.
    assert servers.pop("*") == {"definitions": "off"}
    return servers


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"url": URL}, {"url": URL}),
        ({"type": "http", "url": "${BASE}/mcp"}, {"url": URL}),
        (
            {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${TOKEN}"}},
            {"url": URL, "headers": {"Authorization": "Bearer hush"}},
        ),
        (
            # Clients ignore what would change where a request goes or where it ends.
            {"url": URL, "headers": {"Host": "evil.example", "Content-Length": "0", "X-A": "a"}},
            {"url": URL, "headers": {"X-A": "a"}},
        ),
        (
            {"url": URL, "oauth": {"clientId": "known", "scopes": ["a", "b"]}},
            {"url": URL, "auth": {"type": "oauth", "client_id": "known", "scopes": ["a", "b"]}},
        ),
        (
            {"url": URL, "auth": {"CLIENT_ID": "known", "scopes": ["a"]}},
            {"url": URL, "auth": {"type": "oauth", "client_id": "known", "scopes": ["a"]}},
        ),
        (
            {"url": URL, "oauth": {"scope": "a b"}},
            {"url": URL, "auth": {"type": "oauth", "scopes": ["a", "b"]}},
        ),
        ({"url": URL, "scopes": ["a"]}, {"url": URL, "auth": {"type": "oauth", "scopes": ["a"]}}),
        ({"url": URL, "oauth": {"enabled": True}}, {"url": URL}),
        ({"url": URL, "oauth": False}, {"url": URL}),
        (
            {"url": URL, "bearer_token_env_var": "TOKEN", "env_http_headers": {"X-A": "BASE"}},
            {
                "url": URL,
                "headers": {"X-A": "https://example.com", "Authorization": "Bearer hush"},
            },
        ),
    ],
)
def test_an_address_and_its_headers_are_filled_in(
    tmp_path: Path, entry: dict[str, Any], expected: dict[str, Any]
) -> None:
    env = {"TOKEN": "hush", "BASE": "https://example.com"}

    assert _servers(tmp_path, entry, env, "claude-code") == {"far": expected}


@pytest.mark.parametrize(
    "entry",
    [
        {"url": URL, "oauth": {"clientId": "x", "clientSecret": "y"}},
        {"url": URL, "oauth": {"clientId": "x", "callbackPort": 8080}},
        {"url": URL, "oauth": {"clientId": {"an": "object"}}},
        {"url": URL, "auth": {"type": "something else"}},
        {"url": URL, "scopes": [1]},
        {"url": URL, "authProviderType": "google_credentials"},
        {"url": URL, "headersHelper": "run-me"},
        {"url": URL, "bearer_token_env_var": "NOT_SET"},
        {"url": URL, "headers": {"Authorization": "Bearer ${input:token}"}},
    ],
)
def test_what_only_the_agent_can_reach_stays_with_it(tmp_path: Path, entry: dict[str, Any]) -> None:
    assert _servers(tmp_path, entry, {}, "claude-code") is None


def test_an_entry_keeps_its_name_if_it_can_be_an_id(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="claude-code")
    names = ("far", "Far", "my server", "thoughtgate")
    entries = {name: {"url": f"{URL}/{at}"} for at, name in enumerate(names)}
    scene.write(scene.home / ".claude.json", {"mcpServers": entries})
    place = tmp_path / "remotes.json"
    Remotes(scene.plan(), {}).save(place)

    assert list(json.loads(place.read_text("utf-8"))["servers"])[1:] == [
        "far",
        "remote-2",
        "remote-3",
        "remote-4",
    ]


def test_a_server_of_the_older_transport_is_reached_by_the_gate(tmp_path: Path) -> None:
    entry = {"type": "sse", "url": URL}

    assert _servers(tmp_path, entry, {}, "claude-code") == {"far": {"url": URL}}


def test_the_operators_proxy_is_kept_for_the_gate(tmp_path: Path) -> None:
    env = {"HTTPS_PROXY": "http://proxy.test:3128"}
    expected = {"url": URL, "proxy": "http://proxy.test:3128"}

    assert _servers(tmp_path, {"url": URL}, env, "claude-code") == {"far": expected}


def test_a_proxy_that_only_the_agent_can_use_leaves_the_server_to_it(tmp_path: Path) -> None:
    env = {"ALL_PROXY": "socks5://proxy.test:1080"}

    assert _servers(tmp_path, {"url": URL}, env, "claude-code") is None


def test_the_file_is_private_and_removed_with_its_run(tmp_path: Path) -> None:
    scene = Scene(tmp_path, agent="claude-code")
    scene.write(scene.home / ".claude.json", {"mcpServers": {"far": {"url": URL}}})
    environ = {"THOUGHTGATE_STATE_DIR": str(scene.state)}
    for key in ("dead", "alive"):
        Remotes(scene.plan(), {}).save(remotes_path(key, environ))
    path = remotes_path("dead", environ)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    remove_orphans(environ, frozenset({"alive"}))

    assert not path.exists()
    assert remotes_path("alive", environ).exists()
    remove_orphans({"THOUGHTGATE_STATE_DIR": str(tmp_path / "nowhere")}, frozenset())


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[str]:
    """An HTTP server that wants a token; yields its address."""
    config = tmp_path / "upstream.yaml"
    command, *args = sample_server()
    settings = {
        "schema": 1,
        "default": "forward",
        "servers": {"sample": {"command": command, "args": args}},
        "listen": {"transport": "http", "auth": {"type": "bearer", "token_env": "UPSTREAM_TOKEN"}},
    }
    config.write_text(json.dumps(settings), "utf-8")
    env = {"THOUGHTGATE_STATE_DIR": str(tmp_path / "upstream"), "UPSTREAM_TOKEN": "hush-hush-hush"}
    listening = ["proxy", "-c", str(config), "--listen", "127.0.0.1:0"]
    with StdioPeer(thoughtgate(*listening), env=env) as peer:
        peer.wait_for_stderr("listening on")
        found = re.search(r"http://127\.0\.0\.1:\d+/mcp", peer.stderr)
        assert found is not None, peer.stderr
        yield found.group(0)


def test_a_remote_server_is_governed_like_any_other(tmp_path: Path, upstream: str) -> None:
    machine = Machine(
        tmp_path, "schema: 1\ndefault: forward\nrules: [{server: far, tool: add, action: deny}]\n"
    )
    headers = {"Authorization": "Bearer hush-hush-hush"}
    far = {"type": "http", "url": upstream, "headers": headers, "note": "kept"}
    original = machine.write_config({"far": far})
    with machine.wrap() as run:
        run.open()
        for pid in run.peer.descendants():
            assert b"hush" not in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert "hush" not in run.order("text")["said"]
        assert text_of(run.call("echo", {"text": "over there"}, server="far")) == "over there"
        assert kind_of(run.call("add", {"a": 1, "b": 2}, server="far")) == "governance_denied"
        assert run.finish() == 0
        run.assert_nothing_left()
    assert machine.config.read_bytes() == original
    assert "NOT GOVERNED" not in run.stderr
    assert [one["server_name"] for one in machine.events("tool_call_end")] == ["far", "far"]
    assert list((machine.state / "remotes").iterdir()) == []
    assert "hush" not in machine.record.read_text("utf-8")


CONFIG = {
    "servers": {
        "far": {
            "url": URL,
            "timeout": "90s",
            "transport": "sse",
            "proxy": "none",
            "tls": {"ca": "ca.pem"},
            "auth": {"token_env": "FAR_TOKEN"},
        }
    }
}


@pytest.mark.parametrize("is_same", [True, False])
def test_the_config_says_how_the_server_of_the_same_url_is_reached(
    tmp_path: Path, is_same: bool
) -> None:
    env = {"FAR_TOKEN": "hush", "HTTPS_PROXY": "http://proxy.example:3128"}
    scene = Scene(tmp_path, agent="claude-code", env=env)
    url = URL if is_same else "https://elsewhere.example/mcp"
    scene.write(scene.home / ".claude.json", {"mcpServers": {"far": {"url": url}}})
    document = {"schema": 1, "default": "forward", **CONFIG}
    config = tmp_path / "gate.json"
    config.write_text(json.dumps(document))
    place = tmp_path / "remotes.json"
    plan = scene.plan()

    settings = load_settings(
        config.read_text(), file=str(config), env=env, read_text=lambda path: Path(path).read_text()
    )
    remotes = Remotes(plan, env, settings, str(config))
    remotes.save(place)

    far = json.loads(place.read_text("utf-8"))["servers"]["far"]
    assert (far["url"], far["timeout"]) == (url, "90000ms")
    assert remotes.relayed(plan) == {"far"}
    if not is_same:
        # Another server gets neither our certificates nor our credentials.
        assert set(far) == {"url", "timeout", "proxy"}
        assert remotes.own_variables(plan) == {}
        return
    assert (far["transport"], far["proxy"]) == ("sse", "none")
    assert far["tls"] == {"ca": str(tmp_path / "ca.pem")}
    assert far["auth"] == {"type": "bearer", "token_env": "FAR_TOKEN"}
    assert remotes.own_variables(plan) == {"far": {"FAR_TOKEN": "hush"}}
    assert "hush" not in place.read_text("utf-8")
