"""From names and URIs to servers."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.frames import call, request
from tests.support.http_hub import serving_http
from tests.support.hub import odd, sample, serving
from tests.support.otlp_receiver import otlp_receiver
from tests.support.proxy_process import read_records


def complete(ident: int, ref: dict[str, str]) -> dict[str, object]:
    argument = {"name": "note", "value": ""}
    return request(ident, "completion/complete", {"ref": ref, "argument": argument})


def test_a_resource_is_read_from_its_owner_without_listing_first(tmp_path: Path) -> None:
    with serving(tmp_path, {"odd": odd("chatty"), "one": sample("--era", "legacy")}) as hub:
        hub.open()
        listed = hub.ask(request(1, "resources/read", {"uri": "note:///budget"}))
        templated = hub.ask(request(2, "resources/read", {"uri": "note:///unlisted"}))
        nowhere = hub.ask(request(3, "resources/read", {"uri": "other://x"}))

    assert "12,000" in listed["result"]["contents"][0]["text"]
    assert templated["error"]["code"] == -32002
    assert nowhere["error"]["data"]["kind"] == "not_exposed"


def test_completions_go_to_the_owner_of_what_they_complete(tmp_path: Path) -> None:
    rules = [{"prompt": "summarise", "server": "two", "action": "deny"}]
    with serving(tmp_path, {"one": sample(), "two": sample()}, rules=rules) as hub:
        hub.open()
        prompt = hub.ask(complete(1, {"type": "ref/prompt", "name": "one.summarise"}))
        template = hub.ask(complete(2, {"type": "ref/resource", "uri": "note:///{name}"}))
        denied = hub.ask(complete(3, {"type": "ref/prompt", "name": "two.summarise"}))
        wrong = hub.ask(complete(4, {"type": "ref/prompt"}))

    assert prompt["result"]["completion"]["values"] == ["budget", "draft", "welcome"]
    assert template["result"]["completion"]["values"] == ["budget", "draft", "welcome"]
    assert denied["error"]["data"]["kind"] == "governance_denied"
    assert wrong["error"]["code"] == -32602


def test_a_task_is_not_passed_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(tmp_path, {"one": sample("--log", str(log))}) as hub:
        hub.open()
        params = {"name": "one.echo", "arguments": {"text": "x"}, "task": {"ttl": 1000}}
        answer = hub.ask(request(1, "tools/call", params))
        task_id = answer["result"]["task"]["taskId"]
        result = hub.ask(request(2, "tasks/result", {"taskId": task_id}))

    assert result["result"]["content"][0]["text"] == "x"
    assert "ttl" not in log.read_text()


UNKNOWN = (
    call(1, "one.unknown"),
    call(1, "thoughtgate.unknown"),
    call(1, "elsewhere.unknown"),
    request(1, "prompts/get", {"name": "one.unknown"}),
    request(1, "prompts/get", {"name": "thoughtgate.servers_list"}),
    request(1, "resources/read", {"uri": "unknown://x"}),
    complete(1, {"type": "ref/prompt", "name": "one.unknown"}),
)


PROFILES = pytest.mark.parametrize("profile", ["production", "development"])


@pytest.mark.parametrize("asked", UNKNOWN, ids=lambda one: one["method"])
def test_a_name_that_nobody_offers_is_blocked_as_a_hidden_one_is(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    servers = {"one": sample(expose={"block": ["add"]}), "two": sample()}
    with serving(tmp_path, servers) as hub:
        hub.open()
        hidden = hub.ask(call(1, "one.add"))
        unknown = hub.ask(asked)
        records = hub.records()

    judged = [one["decision"] for one in records if one["type"] == "tool_call_decision"]
    ended = [one for one in records if one["type"] == "tool_call_end"]
    told = [answer["error"] for answer in (hidden, unknown)]
    for error in told:
        del error["data"]["tool"], error["data"]["correlation_id"]
    assert told[0] == told[1]
    assert [(one["action"], one["gate"]) for one in judged] == [("BLOCK", "visibility")] * 2
    assert [one["error"]["class"] for one in ended] == ["policy_block"] * 2


@pytest.mark.parametrize("asked", UNKNOWN, ids=lambda one: one["method"])
def test_a_name_that_nobody_offers_is_blocked_in_the_development_profile_too(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    hiding = sample(expose={"allow": ["echo"]})
    with serving(tmp_path, {"one": hiding, "two": sample()}, profile="development") as hub:
        hub.open()
        unknown = hub.ask(asked)
        observed = hub.text(2, "one.add", {"a": 1, "b": 2})
        records = hub.records()

    judged = [one["decision"] for one in records if one["type"] == "tool_call_decision"]
    [ended, _] = [one for one in records if one["type"] == "tool_call_end"]
    assert unknown["error"]["data"]["kind"] == "not_exposed"
    assert observed == "3"
    assert [(one["action"], one["enforced"]) for one in judged] == [
        ("BLOCK", True),
        ("BLOCK", False),
    ]
    assert ["outcome" in one for one in judged] == [False, True]
    assert ended["error"]["class"] == "policy_block"


@PROFILES
def test_an_unknown_name_is_a_decision_and_nothing_upstream(tmp_path: Path, profile: str) -> None:
    with otlp_receiver() as receiver:
        telemetry = {"otlp": {"endpoint": receiver.endpoint}, "metrics": True}
        servers = {"one": sample()}
        with serving_http(tmp_path, servers, telemetry=telemetry, profile=profile) as hub:
            answer = hub.modern(1, "tools/call", {"name": "one.unknown", "arguments": {}})
            metrics = hub.send("GET", path="/metrics").body.decode()

    assert answer.messages[0]["error"]["data"]["kind"] == "not_exposed"
    assert 'thoughtgate_decisions_total{gate="visibility",outcome="deny"} 1.0' in metrics
    assert 'mcp_upstream_requests_total{status="error"} 0.0' in metrics
    assert "thoughtgate_upstream_requests_total{" not in metrics
    assert [span.name for span in receiver.spans] == ["mcp.request"]


def test_a_list_that_only_the_judge_saw_is_not_on_record(tmp_path: Path) -> None:
    with serving_http(tmp_path, {"one": sample()}, telemetry={"metrics": True}) as hub:
        called = hub.modern(1, "tools/call", {"name": "one.add", "arguments": {"a": 1, "b": 2}})
        unasked = hub.send("GET", path="/metrics").body.decode()
        before = read_records(tmp_path, "tools_list")
        hub.modern(2, "tools/list")
        asked = hub.send("GET", path="/metrics").body.decode()
        after = read_records(tmp_path, "tools_list")

    assert called.messages[0]["result"]["content"][0]["text"] == "3"
    assert 'mcp_requests_total{method="tools/list"' not in unasked
    assert before == []
    assert 'mcp_requests_total{method="tools/list"' in asked
    assert {one["server_name"] for one in after} == {"one", "thoughtgate"}
