"""Both eras on both sides: results, errors, questions and progress find their way."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.frames import call, envelope, notification, request, result
from tests.support.hub import modern, odd, sample, serving

CAPABLE: dict[str, Any] = {"sampling": {}, "elicitation": {}, "roots": {}}
META_CAPABLE = {"io.modelcontextprotocol/clientCapabilities": CAPABLE}
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


def capable(ident: int, tool: str, arguments: dict[str, Any], **more: Any) -> Any:
    params = {"name": tool, "arguments": arguments, **more}
    return request(ident, "tools/call", {**params, "_meta": {**envelope(), **META_CAPABLE}})


@ERAS
def test_a_legacy_client_is_asked_by_requests(tmp_path: Path, era: str) -> None:
    with serving(tmp_path, {"one": sample("--era", era)}) as hub:
        hub.open(CAPABLE)
        hub.names()
        hub.send(call(1, "one.elicit", {"question": "Sure?"}))
        asked = hub.receive()
        hub.send(result(asked["id"], {"action": "accept", "content": {"answer": "yes"}}))
        told = hub.receive_answer(1)

    assert asked["method"] == "elicitation/create"
    assert asked["params"]["message"] == "Sure?"
    assert '"answer": "yes"' in told["result"]["content"][0]["text"]
    assert "resultType" not in told["result"]


@ERAS
def test_a_modern_client_is_asked_in_the_result(tmp_path: Path, era: str) -> None:
    with serving(tmp_path, {"one": sample("--era", era)}) as hub:
        first = hub.ask(capable(1, "one.sample", {"prompt": "hi"}))["result"]
        [(key, asked)] = first["inputRequests"].items()
        retry = {"inputResponses": {key: {"role": "assistant", "model": "m"}}}
        if "requestState" in first:
            retry["requestState"] = first["requestState"]
        told = hub.ask(capable(2, "one.sample", {"prompt": "hi"}, **retry))["result"]

    assert first["resultType"] == "input_required"
    assert asked["method"] == "sampling/createMessage"
    assert '"model": "m"' in told["content"][0]["text"]
    assert told["resultType"] == "complete"


def test_a_parked_call_belongs_to_its_exact_call_and_is_taken_up_once(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--era", "legacy")}) as hub:
        first = hub.ask(capable(1, "one.sample", {"prompt": "hi"}))["result"]
        [key] = first["inputRequests"]
        retry = {"inputResponses": {key: {}}, "requestState": first["requestState"]}
        other = hub.ask(capable(2, "one.sample", {"prompt": "other"}, **retry))
        made_up = hub.ask(
            capable(3, "one.sample", {"prompt": "hi"}, requestState="thoughtgate:made-up")
        )
        right = hub.ask(capable(4, "one.sample", {"prompt": "hi"}, **retry))
        again = hub.ask(capable(5, "one.sample", {"prompt": "hi"}, **retry))

    for refused in (other, made_up, again):
        assert refused["error"]["data"]["kind"] == "invalid_params"
    assert right["result"]["resultType"] == "complete"


def test_answers_that_are_missing_are_asked_for_again(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--era", "legacy")}) as hub:
        first = hub.ask(capable(1, "one.roots", {}))["result"]
        second = hub.ask(capable(2, "one.roots", {}, requestState=first["requestState"]))["result"]

    assert second["resultType"] == "input_required"
    assert second["inputRequests"] == first["inputRequests"]
    assert second["requestState"] != first["requestState"]


@ERAS
def test_a_client_is_not_asked_for_what_it_does_not_offer(tmp_path: Path, era: str) -> None:
    with serving(tmp_path, {"one": sample("--era", era)}) as hub:
        hub.open({})
        hub.names()
        told = hub.ask(call(1, "one.sample", {"prompt": "x"}))

    if era == "legacy":
        assert told["result"]["isError"] is True
    else:
        assert told["error"]["data"]["server"] == "one"


@ERAS
def test_progress_comes_with_the_clients_own_token(tmp_path: Path, era: str) -> None:
    with serving(tmp_path, {"one": sample("--era", era)}) as hub:
        hub.open()
        hub.names()
        for ident, token in ((1, "mine"), (2, 7)):
            body = call(ident, "one.slow", {"seconds": 0.2})
            body["params"]["_meta"] = {"progressToken": token}
            hub.send(body)
            seen: list[Any] = []
            while (message := hub.receive()).get("id") != ident:
                seen.append(message)

            assert [one["method"] for one in seen] == ["notifications/progress"] * 3
            assert {type(one["params"]["progressToken"]) for one in seen} == {type(token)}
            assert [one["params"]["progress"] for one in seen] == [1, 2, 3]


def test_a_modern_client_gets_what_a_legacy_server_leaves_out(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--era", "legacy")}) as hub:
        hub.ask(modern(1, "resources/list"))
        read = hub.ask(modern(2, "resources/read", {"uri": "note:///welcome"}))["result"]
        missing = hub.ask(modern(3, "resources/read", {"uri": "note:///nothing"}))["error"]

    assert (read["resultType"], read["ttlMs"], read["cacheScope"]) == ("complete", 0, "private")
    assert missing["code"] == -32602


def test_a_call_waits_for_the_clients_answer_longer_than_its_timeout(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--era", "legacy", timeout="1s")}) as hub:
        hub.open(CAPABLE)
        hub.names()
        hub.send(call(1, "one.roots"))
        asked = hub.receive()
        hub.text(2, "one.slow", {"seconds": 0.8})
        hub.text(3, "one.slow", {"seconds": 0.8})
        hub.send(result(asked["id"], {"roots": []}))

        assert "roots" in hub.receive_answer(1)["result"]["content"][0]["text"]


def test_a_question_whose_id_is_zero_is_answered(tmp_path: Path) -> None:
    with serving(tmp_path, {"odd": odd("curious")}) as hub:
        hub.open(CAPABLE)
        hub.send(call(1, "odd.work"))
        asked = hub.receive()
        hub.send(result(asked["id"], {"role": "assistant"}))
        told = hub.receive_answer(1)

    assert told["result"]["content"][0]["text"] == '{"role": "assistant"}'


def test_a_cancelled_call_takes_its_question_back(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--era", "modern")}) as hub:
        hub.open(CAPABLE)
        hub.names()
        hub.send(call(1, "one.elicit", {"question": "?"}))
        asked = hub.receive()
        hub.send(notification("notifications/cancelled", {"requestId": 1}))
        taken_back = hub.receive()

    assert taken_back["method"] == "notifications/cancelled"
    assert taken_back["params"]["requestId"] == asked["id"]


def test_a_response_that_nobody_asked_for_is_dropped_and_recorded(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()
        hub.send(result("never-asked"))
        hub.ask(request(1, "ping"))
        checks = [one["frame"]["check"] for one in hub.records() if one["type"] == "frame_refused"]

    assert checks == ["unknown_response"]


@pytest.mark.promise("serve-unlisted-names")
@pytest.mark.parametrize("way", ["hidelist", "nolist"])
def test_a_tool_that_no_list_has_shown_is_not_called(tmp_path: Path, way: str) -> None:
    with serving(tmp_path, {"bad": odd(way, timeout="1s"), "good": sample()}) as hub:
        hub.open()
        refused = hub.ask(call(1, "bad.work"))["error"]
        fine = hub.text(2, "good.echo", {"text": "fine"})
        again = hub.kind(3, "bad.work")
        log = hub.text(4, "thoughtgate.server_logs", {"server_id": "bad"})
        records = hub.records()

    assert refused["data"]["kind"] == again == "service_unavailable"
    assert "tools/list" in refused["data"]["reason"]
    assert fine == "fine"
    assert "a call arrived" not in log
    ended = [one for one in records if one["type"] == "tool_call_end"]
    assert [one["error"]["kind"] for one in ended if one["call"]["server_name"] == "bad"] == [
        "service_unavailable"
    ] * 2


@pytest.mark.promise("serve-unlisted-names")
def test_a_call_is_made_once_its_list_is_there(tmp_path: Path) -> None:
    with serving(tmp_path, {"odd": odd("chatty")}) as hub:
        hub.open()
        said = hub.text(1, "odd.work")
        log = hub.text(2, "thoughtgate.server_logs", {"server_id": "odd"})

    assert said == "worked"
    assert "a call arrived" in log
