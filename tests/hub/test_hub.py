"""The hub's parts and what they share."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.hub import Served, sample, serving, write_config
from tests.support.hub_parts import governed, join, load, make_hub
from tests.support.policy_changes import decide_change
from tests.support.waiting import run_async, wait_for

from thoughtgate.core.record_events import NOWHERE
from thoughtgate.errors import PeerError
from thoughtgate.hub.client import Client
from thoughtgate.hub.hub import Hub, hide_nowhere
from thoughtgate.policy.policy import Policy
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.upstream.connect import ServerSetup
from thoughtgate.upstream.login_access import LoginAccess

SERVERS = {"one": sample(), "two": sample(isolation="session"), "off": sample(enabled=False)}


def test_the_namespace_says_which_servers_there_are(tmp_path: Path) -> None:
    loaded = load(tmp_path, SERVERS, namespaces={"work": ["two", "one"]})

    async def main() -> None:
        with governed(loaded, tmp_path / "state") as governor:
            hub = make_hub(loaded, governor, tmp_path)

            assert [one.id for one in hub.supervisors] == ["two", "one"]
            assert hub.server_ids == ["thoughtgate", "two", "one"]
            assert hub.describe_namespaces()["selection"] == "only"
            assert "two (two), one (one)" in hub.instructions()
            await hub.close()

    run_async(main())


def test_each_principal_has_a_connection_with_its_own_login(tmp_path: Path) -> None:
    remote = {"url": "https://mcp.example/mcp", "auth": {"type": "oauth"}}
    loaded = load(tmp_path, {"one": sample(), "remote": remote})

    async def main() -> None:
        with governed(loaded, tmp_path / "state") as governor:
            logins = LoginAccess(StoreLocation(tmp_path / "state"), {})
            around = ServerSetup({}, str(tmp_path), logins=logins)
            hub = Hub(loaded.settings, governor, around, principal="local")
            clients: dict[str, list[Client]] = {}
            for name in ("local", "ann", "ann", "bob"):
                client, _ = join(hub, sole=False)
                client.principal = name
                clients.setdefault(name, []).append(client)
            local, first, second, other = (
                *clients["local"],
                *clients["ann"],
                *clients["bob"],
            )

            assert hub.relay(local, "remote") is hub.servers["remote"]
            assert hub.relay(first, "remote") is hub.relay(second, "remote")
            assert hub.relay(first, "remote") is not hub.relay(other, "remote")
            assert hub.relay(first, "remote") is not hub.servers["remote"]
            assert hub.relay(first, "one") is hub.relay(other, "one")
            own = hub.relay(first, "remote")
            assert own is not None
            assert hub.supervisors_for(first) == [hub.servers["one"], own]
            assert hub.notices._audience(own.private_to) == [first, second]
            await hub.close()

    run_async(main())


def test_the_connection_with_the_oldest_login_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thoughtgate.hub.hub.MAX_LOGINS", 2)
    remote = {"url": "https://mcp.example/mcp", "auth": {"type": "oauth"}}
    loaded = load(tmp_path, {"remote": remote})

    async def main() -> None:
        with governed(loaded, tmp_path / "state") as governor:
            logins = LoginAccess(StoreLocation(tmp_path / "state"), {})
            around = ServerSetup({}, str(tmp_path), logins=logins)
            hub = Hub(loaded.settings, governor, around, principal="local")
            client, _ = join(hub, sole=False)
            relays = {}
            for at, name in enumerate(("ann", "bob", "eve")):
                client.principal = name
                relays[name] = relay = hub.relay(client, "remote")
                assert relay is not None
                relay.used_at = float(at)
            for name in ("bob", "eve"):
                client.principal = name
                assert hub.relay(client, "remote") is relays[name]
            client.principal = "ann"
            assert hub.relay(client, "remote") is not relays["ann"]
            await hub.close()

    run_async(main())


def test_a_session_of_its_own_gets_a_server_of_its_own(tmp_path: Path) -> None:
    loaded = load(tmp_path, SERVERS)

    async def main() -> None:
        with governed(loaded, tmp_path / "state") as governor:
            hub = make_hub(loaded, governor, tmp_path)
            first, _ = join(hub, sole=False)
            second, _ = join(hub, sole=False)

            assert hub.relay(first, "one") is hub.relay(second, "one")
            assert hub.relay(first, "two") is not hub.relay(second, "two")
            assert hub.relay(first, "two") is hub.relay(first, "two")
            assert hub.relay(first, "absent") is None
            await hub.leave(first)
            assert first.is_gone
            await hub.close()

    run_async(main())


def test_a_disabled_server_is_never_started(tmp_path: Path) -> None:
    loaded = load(tmp_path, SERVERS)

    async def main() -> None:
        with governed(loaded, tmp_path / "state") as governor:
            hub = make_hub(loaded, governor, tmp_path)
            with pytest.raises(PeerError, match="disabled"):
                await hub.start_server("off")
            with pytest.raises(PeerError, match="there are: one, two, off"):
                await hub.stop_server("absent")
            with pytest.raises(PeerError, match="no config file"):
                await hub.reload()
            await hub.close()

    run_async(main())


def test_a_call_that_names_no_server_is_denied_as_hidden() -> None:
    policy = hide_nowhere(Policy(default="forward"))

    assert not policy.visibility.allows(NOWHERE, "anything")
    assert policy.visibility.allows("one", "anything")


# A config read again while the hub runs: only what changed restarts.

ONE: dict[str, Any] = sample("--tools", "echo")


def pids(hub: Served) -> dict[str, Any]:
    number = time.monotonic_ns()
    return {
        ident: hub.server(ident, number + at).get("pid") for at, ident in enumerate(("one", "two"))
    }


def test_a_changed_file_is_taken_over_and_unchanged_servers_go_on(tmp_path: Path) -> None:
    servers = {"one": ONE, "two": sample("--tools", "echo")}
    with serving(tmp_path, servers, reload="auto") as hub:
        hub.open()
        assert hub.names(1) == ["one.echo", "two.echo"]
        before = pids(hub)
        write_config(hub.config, {"one": ONE, "two": sample("--tools", "add")})
        wait_for(lambda: hub.names(time.monotonic_ns()) == ["one.echo", "two.add"])

        after = pids(hub)
        assert after["one"] == before["one"]
        assert after["two"] != before["two"]


def test_a_hangup_signal_reads_the_file_again(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": ONE}, reload=False) as hub:
        hub.open()
        hub.names(1)
        write_config(hub.config, {"two": ONE}, reload=False)
        hub.signal(signal.SIGHUP)
        decide_change(hub.state)
        wait_for(lambda: hub.names(time.monotonic_ns()) == ["two.echo"])

        assert hub.kind(2, "one.echo", {"text": "x"}) == "not_exposed"


def test_a_bad_file_changes_nothing_and_says_so(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": ONE}) as hub:
        hub.open()
        hub.names(1)
        hub.config.write_text("schema: 1\ndefault: sometimes\n", "utf-8")
        hub.wait_for_stderr("config not reloaded")

        assert "default" in hub.stderr
        assert hub.text(2, "one.echo", {"text": "x"}) == "x"
        hub.config.unlink()
        write_config(hub.config, {"one": ONE}, rules=[{"tool": "echo", "action": "deny"}])
        wait_for(lambda: "policy    reloaded from" in hub.stderr)
        assert hub.kind(3, "one.echo", {"text": "x"}) == "governance_denied"
        changed = [one for one in hub.records() if one["type"] == "policy_changed"]
        loaded = [one["policy"]["loaded"] for one in changed]
        assert (loaded[0], loaded[-1], loaded.count(True)) == (False, True, 1)


def test_what_only_policy_reads_restarts_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": ONE}) as hub:
        hub.open()
        hub.names(1)
        pid = hub.server("one", 2)["pid"]
        changed = {**ONE, "name": "Renamed", "timeout": "5s", "expose": {"block": ["nothing"]}}
        write_config(hub.config, {"one": changed})
        wait_for(lambda: "[Renamed]" in hub.tools(time.monotonic_ns())[0]["description"])

        assert hub.server("one", 3)["pid"] == pid


def test_a_file_that_is_replaced_by_rename_is_noticed(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": ONE}, reload="auto") as hub:
        hub.open()
        hub.names(1)
        other = write_config(tmp_path / "new.yaml", {"two": ONE})
        other.replace(hub.config)
        wait_for(lambda: hub.names(time.monotonic_ns()) == ["two.echo"])
