"""What is settled before a hub runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from tests.support.frames import call
from tests.support.http_hub import serving_http
from tests.support.http_upstream import Received, Reply, result, small_server
from tests.support.hub import sample, write_config
from tests.support.hub_parts import load
from tests.support.small_oauth import SmallOAuth
from tests.support.waiting import run_async

from thoughtgate.errors import ConfigError
from thoughtgate.gate.running_gates import list_gates
from thoughtgate.hub.run import ServePlan, check_plan
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.upstream.oauth.access import OAuthAccess
from thoughtgate.upstream.oauth.challenge import Challenge


def plan(tmp_path: Path, **more: object) -> ServePlan:
    loaded = load(tmp_path, {"one": sample()}, namespaces={"work": ["one"]})
    return ServePlan(loaded, os.environ, str(tmp_path), **more)  # type: ignore[arg-type]  # fields by name


@pytest.mark.requirement("S002-22")
def test_a_sound_plan_passes(tmp_path: Path) -> None:
    check_plan(plan(tmp_path, namespace="work"))
    check_plan(plan(tmp_path, audit="stdout", http=("127.0.0.1", 0)))


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as found:
        check_plan(plan(tmp_path, namespace="nope", audit="stdout"))

    assert [problem.key for problem in found.value.problems] == ["namespaces", "audit.sink"]
    assert "work" in str(found.value)


WATCHED = """
import runpy, sys
from thoughtgate.gate.running_gates import list_gates
from thoughtgate.record.writer import RecordWriter

state, seen, *sys.argv[1:] = sys.argv[1:]

def watched(name):
    original = getattr(RecordWriter, name)
    def watch(self, *given):
        with open(seen, "a") as file:
            file.write(f"{name} {len(list_gates(state))}\\n")
        original(self, *given)
        with open(seen, "a") as file:
            file.write(f"{name} {len(list_gates(state))}\\n")
    setattr(RecordWriter, name, watch)

watched("write")
watched("close")
runpy.run_module("thoughtgate", run_name="__main__")
"""


def test_a_hub_is_announced_for_as_long_as_its_record_is_open(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"one": sample()})
    seen = tmp_path / "seen"
    words = [str(tmp_path), str(seen), "serve", "--stdio", "-c", str(config)]
    words += ["--state-dir", str(tmp_path)]
    subprocess.run(
        [sys.executable, "-c", WATCHED, *words],
        env={**os.environ, "THOUGHTGATE_STATE_DIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=True,
    )

    lines = seen.read_text().splitlines()
    assert set(lines) == {"write 1", "close 1"}
    assert lines[-2:] == ["close 1", "close 1"]
    assert list_gates(str(tmp_path)) == []


class _CallsNeedLogin(SmallOAuth):
    """Anybody may list its tools; only calls need a login."""

    def _mcp(self, received: Received) -> Reply:
        method = (received.message or {}).get("method")
        if method == "initialize":
            info = {"name": "remote", "version": "1"}
            able = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
            return result(received, {**able, "serverInfo": info})
        if method in {"tools/call", "server/discover"}:
            return super()._mcp(received) if method == "tools/call" else Reply(400)
        return small_server(received)


def test_an_agent_that_authenticates_never_uses_the_login_of_the_gates_user(
    tmp_path: Path,
) -> None:
    key, redirect = Fernet.generate_key().decode(), "http://127.0.0.1:7/callback"
    (tmp_path / "state").mkdir(mode=0o700)
    with _CallsNeedLogin() as remote:

        async def log_in() -> None:
            access = OAuthAccess(StoreLocation(tmp_path / "state"), {"KEY": key}, "KEY")
            flow = access.login(remote.settings(), "local")
            challenge = Challenge(f"{remote.base}/.well-known/oauth-protected-resource/mcp")
            await flow.finish(remote.redirect(await flow.begin(redirect, challenge)))
            await access.close()

        run_async(log_in())
        with serving_http(
            tmp_path,
            {"search": {"url": f"{remote.base}/mcp"}},
            env={"KEY": key, "AGENTS": "the-agents-token"},
            keys={"tokens_env": "KEY"},
            listen={"transport": "http", "auth": {"type": "bearer", "token_env": "AGENTS"}},
        ) as hub:
            shown = {"Authorization": "Bearer the-agents-token"}
            shown["Mcp_Session_Id"] = hub.open_session(**shown)
            hub.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, **shown)
            answer = hub.post(call(1, "search.echo", {}), **shown).messages[-1]

        assert answer["error"]["data"]["cause"] == "login_required", answer
        assert remote.tool_calls == []
