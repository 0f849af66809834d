"""Which servers there are, and what a new config changes."""

import json
from pathlib import Path

from tests.support.frames import call
from tests.support.hub import Served, sample, write_config
from tests.support.hub_parts import governed, load, make_hub
from tests.support.waiting import run_async

from thoughtgate.hub.servers import named


def test_the_entry_for_all_others_is_no_server(tmp_path: Path) -> None:
    servers = {"one": sample(), "policy_only": {"expose": {"allow": []}}, "*": {"expose": "all"}}

    assert [one.id for one in named(load(tmp_path, servers).settings)] == ["one"]


def test_only_what_changed_is_replaced(tmp_path: Path) -> None:
    before = load(tmp_path, {"same": sample(), "changed": sample(), "gone": sample()})
    after = load(
        tmp_path,
        {
            "new": sample(),
            "changed": sample("--count", "1"),
            "same": sample(timeout="9s", eager=True),
        },
    )

    async def main() -> None:
        with governed(before, tmp_path / "state") as governor:
            hub = make_hub(before, governor, tmp_path)
            kept = hub.servers["same"]
            changed = await hub.apply(after.settings)

            assert sorted(changed) == ["changed", "gone", "new"]
            assert hub.servers["same"] is kept
            assert kept.settings.timeout_s == 9.0
            assert list(hub.servers) == ["new", "changed", "same"]
            assert hub.servers.get("gone") is None
            await hub.close()

    run_async(main())


def test_a_server_sees_neither_the_gates_variables_nor_other_servers_tokens(tmp_path: Path) -> None:
    servers = {
        "one": sample("--tools", "env", env={"OWN": "1"}, cwd="sub"),
        "far": {
            "url": "https://example.com/mcp",
            "auth": {"type": "bearer", "token_env": "FAR_TOKEN"},
        },
    }
    (tmp_path / "sub").mkdir()
    config = write_config(tmp_path / "c.yaml", servers)
    with Served(config, tmp_path / "state", FAR_TOKEN="secret", PLAIN="2") as hub:
        hub.open()
        seen = json.loads(hub.ask(call(1, "one.env"))["result"]["content"][0]["text"])

    assert (seen["OWN"], seen["PLAIN"]) == ("1", "2")
    assert "FAR_TOKEN" not in seen
    assert not [name for name in seen if name.startswith(("THOUGHTGATE_", "SUB_"))]
