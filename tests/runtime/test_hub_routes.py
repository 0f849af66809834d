"""From names and URIs to servers."""

from pathlib import Path

from tests.support.frames import request
from tests.support.hub import odd, sample, serving


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
