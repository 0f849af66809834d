"""Lists, what is hidden from them, and word of their changes."""

import pytest
from tests.faces.agents import SPEC
from tests.faces.face import Gate
from tests.faces.record_view import event, wait_for_event
from tests.faces.servers import PROMPTS, RESOURCES, TOOLS

LISTS = {
    # method: member, key, what the server offers, what is hidden
    "tools/list": ("tools", "name", TOOLS, "hidden_tool"),
    "resources/list": ("resources", "uri", RESOURCES, "face:///hidden"),
    "prompts/list": ("prompts", "name", PROMPTS, "hidden_prompt"),
}


@pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("method", LISTS)
def test_list_is_filtered(gate: Gate, method: str, *, modern: bool) -> None:
    member, key, offered, hidden = LISTS[method]
    start = len(gate.records())
    agent = gate.agent()
    listed = agent.names(method, member, modern=modern, key=key)
    offered_now = [name for name in offered if name != hidden]
    assert [name for name in listed if not name.startswith("grown_")] == offered_now
    found = wait_for_event(gate, start, "tools_list", lambda one: one["list"]["method"] == method)
    grown = len(listed) - len(offered_now)
    facts = {
        "method": method,
        "offered": len(offered) + grown,
        "returned": len(listed),
        "hidden": [hidden],
        "enforced": True,
    }
    assert found == event("tools_list", list=facts)


@pytest.mark.parametrize("method", LISTS)
def test_development_profile_shows_what_is_hidden(observing: Gate, method: str) -> None:
    member, key, offered, hidden = LISTS[method]
    start = len(observing.records())
    assert observing.agent().names(method, member, key=key) == list(offered)
    found = wait_for_event(
        observing, start, "tools_list", lambda one: one["list"]["method"] == method
    )
    assert (found["list"]["hidden"], found["list"]["enforced"]) == ([hidden], False)


def test_entries_keep_what_the_server_says(gate: Gate) -> None:
    agent = gate.agent()
    tools = agent.ask("tools/list")["result"]["tools"]
    regional = next(one for one in tools if one["name"] == f"{agent.prefix}regional")
    schema = {"region": {"type": "string", "x-mcp-header": "Region"}}
    assert regional["inputSchema"] == {"type": "object", "properties": schema}
    assert regional["description"].endswith("The tool regional")


def test_word_of_a_changed_list(gate: Gate) -> None:
    agent = gate.agent()
    assert "grown_one" not in agent.names("tools/list", "tools")
    agent.call("echo", {"do": "grow", "name": "grown_one", "mark": "grow"})
    agent.inbox.message("notifications/tools/list_changed")
    gate.wait(lambda: "grown_one" in agent.names("tools/list", "tools"), "the new tool in the list")
    assert "result" in agent.call("grown_one", {"mark": "grown-called"})


@pytest.mark.parametrize("modern", [True], ids=["2026-07-28"])
def test_word_of_a_changed_list_to_a_listener(gate: Gate, *, modern: bool) -> None:
    agent = gate.agent()
    wanted = {"notifications": {"toolsListChanged": True}}
    ident = agent.request("subscriptions/listen", wanted, modern=True)
    agent.inbox.message("notifications/subscriptions/acknowledged")
    agent.call("echo", {"do": "grow", "name": "grown_two", "mark": "grow-two"}, modern=True)
    told = agent.inbox.message("notifications/tools/list_changed")
    assert told["params"]["_meta"][f"{SPEC}subscriptionId"] == ident
