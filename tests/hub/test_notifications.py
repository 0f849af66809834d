"""What servers say unasked reaches the clients concerned, and no others."""

from pathlib import Path
from typing import Any

from tests.support.frames import call, notification, request
from tests.support.hub import Served, modern, odd, sample, serving
from tests.support.waiting import wait_for


def until(hub: Served, ident: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the messages up to an answer, and the answer."""
    seen: list[dict[str, Any]] = []
    while True:
        body = hub.receive()
        if "method" not in body and body.get("id") == ident:
            return seen, body
        seen.append(body)


def test_log_messages_say_which_server_they_are_from_and_obey_the_level(tmp_path: Path) -> None:
    with serving(tmp_path, {"odd": odd("chatty")}) as hub:
        hub.open()
        hub.send(call(1, "odd.work"))
        everything, _ = until(hub, 1)
        hub.ask(request(2, "logging/setLevel", {"level": "info"}))
        hub.send(call(3, "odd.work"))
        filtered, _ = until(hub, 3)

    logs = [one["params"] for one in everything if one["method"] == "notifications/message"]
    assert [(one["level"], one["logger"]) for one in logs] == [
        ("info", "odd.odd"),
        ("debug", "odd"),
    ]
    assert [one["params"]["level"] for one in filtered] == ["info"]


def test_a_modern_client_hears_logs_only_if_its_request_asks(tmp_path: Path) -> None:
    level = {"io.modelcontextprotocol/logLevel": "info"}
    with serving(tmp_path, {"odd": odd("chatty")}) as hub:
        hub.send(modern(1, "tools/call", {"name": "odd.work"}))
        silent, _ = until(hub, 1)
        hub.send(modern(2, "tools/call", {"name": "odd.work"}, **level))
        heard, _ = until(hub, 2)

    assert silent == []
    assert [one["params"]["level"] for one in heard] == ["info"]


def test_changes_of_a_resource_reach_who_subscribed(tmp_path: Path) -> None:
    with serving(tmp_path, {"odd": odd("chatty")}) as hub:
        hub.open()
        hub.ask(request(1, "logging/setLevel", {"level": "emergency"}))
        before, _ = _called(hub, 2)
        subscribed = hub.ask(request(3, "resources/subscribe", {"uri": "odd://1"}))
        during, _ = _called(hub, 4)
        hub.ask(request(5, "resources/unsubscribe", {"uri": "odd://1"}))
        after, _ = _called(hub, 6)

    assert subscribed["result"] == {}
    assert before == after == []
    assert [(one["method"], one["params"]) for one in during] == [
        ("notifications/resources/updated", {"uri": "odd://1"})
    ]


def _called(hub: Served, ident: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    hub.send(call(ident, "odd.work"))
    return until(hub, ident)


def test_a_modern_client_hears_what_it_listens_for_with_its_subscription(tmp_path: Path) -> None:
    wanted = {"toolsListChanged": True, "resourceSubscriptions": ["odd://1"], "other": 1}
    with serving(tmp_path, {"odd": odd("chatty"), "one": sample()}) as hub:
        hub.send(modern("ear", "subscriptions/listen", {"notifications": wanted}))
        acknowledged = hub.receive()
        hub.send(modern(1, "tools/call", {"name": "odd.work"}))
        heard, _ = until(hub, 1)
        hub.send(modern(2, "tools/call", {"name": "one.grow", "arguments": {"name": "new"}}))
        changed = [hub.receive(), hub.receive()]
        hub.send(notification("notifications/cancelled", {"requestId": "ear"}))
        hub.send(modern(3, "tools/call", {"name": "odd.work"}))
        silent, _ = until(hub, 3)

    tag = "io.modelcontextprotocol/subscriptionId"
    accepted = {"toolsListChanged": True, "resourceSubscriptions": ["odd://1"]}
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"] == {"notifications": accepted, "_meta": {tag: "ear"}}
    assert heard[0]["params"] == {"uri": "odd://1", "_meta": {tag: "ear"}}
    assert {"notifications/tools/list_changed"} == {
        one["method"] for one in changed if "method" in one
    }
    assert silent == []


def test_a_listen_for_a_denied_resource_does_not_hear_of_it(tmp_path: Path) -> None:
    rules = [{"resource": "odd://*", "action": "deny"}]
    wanted = {"resourceSubscriptions": ["odd://1"]}
    with serving(tmp_path, {"odd": odd("chatty")}, rules=rules) as hub:
        hub.send(modern(1, "subscriptions/listen", {"notifications": wanted}))
        acknowledged = hub.receive()
        wrong = hub.ask(
            modern(2, "subscriptions/listen", {"notifications": {"resourceSubscriptions": 1}})
        )
        decisions = [one for one in hub.records() if one["type"] == "tool_call_decision"]

    assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": []}
    assert wrong["error"]["code"] == -32602
    assert decisions[0]["decision"]["action"] == "BLOCK"


def test_changed_roots_are_passed_on_to_legacy_servers(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(tmp_path, {"one": sample("--era", "legacy", "--log", str(log))}) as hub:
        hub.open({"roots": {"listChanged": True}})
        hub.names()
        hub.send(notification("notifications/roots/list_changed"))
        wait_for(lambda: "roots/list_changed" in log.read_text())
