"""The hub's parts and what they share."""

from pathlib import Path

import pytest
from tests.support.hub import sample
from tests.support.hub_parts import governed, join, load, make_hub
from tests.support.waiting import run_async

from thoughtgate.core.record_events import NOWHERE
from thoughtgate.errors import PeerError
from thoughtgate.hub.hub import hide_nowhere
from thoughtgate.policy.policy import Policy

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

    assert not policy.visibility.allows(NOWHERE, "tool", "anything")
    assert policy.visibility.allows("one", "tool", "anything")
