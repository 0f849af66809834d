"""Lists put together from many servers."""

from pathlib import Path

import pytest
from tests.support.frames import request
from tests.support.hub import modern, odd, sample, serving


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
