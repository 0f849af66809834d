"""How many listens a client may have."""

import json
from pathlib import Path

from tests.support.hub import sample
from tests.support.hub_parts import governed, join, load, make_hub
from tests.support.waiting import run_async

from thoughtgate.hub.client import MAX_LISTENS, Listen
from thoughtgate.hub.subscriptions import HubListens


def test_a_client_has_only_so_many_listens(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"one": sample()})

    async def main() -> list[int]:
        with governed(loaded, tmp_path / "state") as governor:
            hub = make_hub(loaded, governor, tmp_path)
            client, frames = join(hub)
            listens = HubListens(hub)
            for number in range(MAX_LISTENS):
                client.listens[number] = Listen({}, {})
            await listens.open(client, "more", {"notifications": {"toolsListChanged": True}})
            listens.close(client, 0)
            listens.close(client, 0)
            await listens.open(client, "more", {"notifications": {"toolsListChanged": True}})
            await hub.close()
            return [json.loads(data)["error"]["code"] for data, _ in frames.replies]

    assert run_async(main()) == [-32602]
