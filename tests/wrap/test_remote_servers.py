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

from thoughtgate.wrap.remote_servers import Remotes, remove_orphans
from thoughtgate.wrap.remotes_file import remotes_path

URL = "https://example.com/mcp"


def _servers(tmp_path: Path, entry: dict[str, Any], env: dict[str, str], agent: str) -> Any:
    scene = Scene(tmp_path, agent=agent, env=env)
    path = scene.home / ".claude.json"
    scene.write(path, {"mcpServers": {"far": entry}})
    place = tmp_path / "remotes.json"
    Remotes(scene.plan(), env).save(place)
    return json.loads(place.read_text("utf-8"))["servers"] if place.exists() else None


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

    assert _servers(tmp_path, entry, env, "claude-code") == {"remote-1": expected}


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "sse", "url": URL},
        {"url": URL, "oauth": {"clientId": "x"}},
        {"url": URL, "headersHelper": "run-me"},
        {"url": URL, "bearer_token_env_var": "NOT_SET"},
        {"url": URL, "headers": {"Authorization": "Bearer ${input:token}"}},
    ],
)
def test_what_only_the_agent_can_reach_stays_with_it(tmp_path: Path, entry: dict[str, Any]) -> None:
    assert _servers(tmp_path, entry, {}, "claude-code") is None


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
