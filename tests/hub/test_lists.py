"""Lists put together from many servers."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.frames import request
from tests.support.hub import modern, odd, sample, serving
from tests.support.waiting import run_async

from thoughtgate.core.catalogue import NOTHING, Offer
from thoughtgate.errors import PeerError
from thoughtgate.hub import lists
from thoughtgate.hub.lists import HubLists


@pytest.mark.long
@pytest.mark.requirement("S002-56", "S002-16")
def test_fifty_servers_with_a_hundred_tools_each(tmp_path: Path) -> None:
    servers = {f"s{number:02}": sample("--tools", "echo", "--count", "99") for number in range(50)}
    with serving(tmp_path, servers) as hub:
        hub.open()
        hub.send(request(1, "tools/list"))
        tools = hub.receive_answer(1, 60)["result"]["tools"]
        names = [tool["name"] for tool in tools if not tool["name"].startswith("thoughtgate.")]

        assert len(names) == 5000
        assert len(set(names)) == 5000
        assert names == sorted(names, key=lambda name: name.split(".")[0])
        for number in (0, 17, 49):
            assert (
                hub.text(number + 10, f"s{number:02}.tool_42", {"text": f"{number}"}) == f"{number}"
            )
        hub.close_stdin()
        assert hub.wait(30) == 0
        hub.assert_nothing_left()


def test_resources_prompts_and_templates_are_put_together(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample(), "odd": odd("chatty")}) as hub:
        hub.open()
        resources = hub.ask(request(1, "resources/list"))["result"]["resources"]
        templates = hub.ask(request(2, "resources/templates/list"))["result"]["resourceTemplates"]
        prompts = hub.ask(request(3, "prompts/list"))["result"]["prompts"]
        read = hub.ask(request(4, "resources/read", {"uri": "note:///draft"}))["result"]
        got = hub.ask(
            request(5, "prompts/get", {"name": "one.summarise", "arguments": {"note": "x"}})
        )

    assert [entry["uri"] for entry in resources][-1] == "odd://1"
    assert len(resources) == 4
    assert [entry["uriTemplate"] for entry in templates] == ["note:///{name}"]
    assert [(one["name"], one["description"]) for one in prompts] == [
        ("one.summarise", "[one] Ask for a summary of a note")
    ]
    assert "old draft" in read["contents"][0]["text"]
    assert "x" in got["result"]["messages"][0]["content"]["text"]


def test_what_is_hidden_is_in_no_list(tmp_path: Path) -> None:
    servers = {"one": sample(expose={"block": ["echo", "note:///draft", "summarise"]})}
    with serving(tmp_path, servers) as hub:
        hub.open()
        uris = [one["uri"] for one in hub.ask(request(1, "resources/list"))["result"]["resources"]]
        prompts = hub.ask(request(2, "prompts/list"))["result"]["prompts"]
        hidden = hub.ask(request(3, "resources/read", {"uri": "note:///draft"}))

        assert "one.echo" not in hub.names(4)
    assert uris == ["note:///welcome", "note:///budget"]
    assert prompts == []
    assert hidden["error"]["data"]["kind"] == "not_exposed"


def test_a_list_for_a_modern_client_is_private_and_says_how_long_it_holds(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        first = hub.ask(modern(1, "tools/list"))["result"]
        second = hub.ask(modern(2, "tools/list"))["result"]

    assert (first["resultType"], first["ttlMs"], first["cacheScope"]) == ("complete", 0, "private")
    assert first["tools"] == second["tools"]


def test_a_servers_own_pages_are_followed(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--page", "3")}) as hub:
        hub.open()

        assert len(hub.names()) == 14


class Wedged:
    """A server whose lists come when the test says so."""

    id = "wedged"

    def __init__(self, answer: Callable[["Wedged"], Any]) -> None:
        self.settings = SimpleNamespace(enabled=True, start_timeout_s=60.0)
        self.standing = SimpleNamespace(failures=0)
        self.asked: list[str] = []
        self.go = asyncio.Event()
        self._answer = answer

    def is_fresh(self, method: str) -> bool:
        return method == "never"

    async def offer(self, method: str) -> Offer:
        self.asked.append(method)
        await self._answer(self)
        return NOTHING


async def _waits(server: Wedged) -> None:
    await server.go.wait()


async def _times_out(server: Wedged) -> None:
    if not server.go.is_set():
        raise PeerError("upstream_timeout", "tools/list was not answered in time")


@pytest.mark.parametrize("answer", [_waits, _times_out])
def test_a_list_waits_once_for_a_server_that_does_not_answer(
    answer: Callable[[Wedged], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed: list[str] = []

    async def main() -> None:
        server: Any = Wedged(answer)
        made = HubLists(None, lambda _, capability: changed.append(capability))  # type: ignore[arg-type]
        monkeypatch.setattr(lists, "DISCOVERY_S", 0.01)
        await made.collect("tools/list", [server])
        # From now on, whoever waits for this server waits longer than the test.
        monkeypatch.setattr(lists, "DISCOVERY_S", 1000.0)
        async with asyncio.timeout(10):
            for method in ("tools/list", "prompts/list", "tools/list"):
                await made.collect(method, [server])
            server.go.set()
            while "tools" not in changed:
                await made.collect("tools/list", [server])
                await asyncio.sleep(0.005)
            # It has answered, so the next list waits for it again.
            server.go.clear()
            waiting = asyncio.ensure_future(made.collect("resources/list", [server]))
            while "resources/list" not in server.asked:  # noqa: ASYNC110  a list of the test
                await asyncio.sleep(0)
            if answer is _waits:
                assert not waiting.done()
                server.go.set()
            await waiting

    run_async(main())
