"""The sample server, as a real process: both eras, its tools, and its bad manners."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import sample_server
from tests.support.frames import call, envelope, initialize, notification, request, result
from tests.support.stdio_peer import StdioPeer


@pytest.fixture
def server() -> Iterator[StdioPeer]:
    with StdioPeer(sample_server()) as peer:
        yield peer


def _text(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


def _modern(ident: int, method: str, **params: Any) -> dict[str, Any]:
    return request(ident, method, {**params, "_meta": envelope()})


def test_initialize_settles_on_the_revision_that_was_asked(server: StdioPeer) -> None:
    answer = server.ask(initialize(version="2025-06-18"))

    assert answer["result"]["protocolVersion"] == "2025-06-18"
    assert answer["result"]["serverInfo"]["name"] == "thoughtgate-sample"


def test_an_unknown_revision_gets_the_latest_of_its_era(server: StdioPeer) -> None:
    assert server.ask(initialize(version="1999-01-01"))["result"]["protocolVersion"] == "2025-11-25"


def test_discover_tells_the_modern_revisions(server: StdioPeer) -> None:
    found = server.ask(_modern(1, "server/discover"))["result"]

    assert found["supportedVersions"] == ["2026-07-28"]
    assert found["resultType"] == "complete"


def test_a_modern_list_says_how_long_it_may_be_kept(server: StdioPeer) -> None:
    found = server.ask(_modern(1, "tools/list"))["result"]

    assert (found["ttlMs"], found["cacheScope"]) == (0, "public")


def test_an_unsupported_modern_revision_is_refused(server: StdioPeer) -> None:
    params = {"_meta": envelope(version="2099-01-01")}
    answer = server.ask(request(1, "tools/list", params))

    assert answer["error"]["code"] == -32022
    assert answer["error"]["data"]["requested"] == "2099-01-01"


def test_an_era_can_be_switched_off() -> None:
    with StdioPeer(sample_server("--era", "modern")) as modern:
        assert modern.ask(initialize())["error"]["code"] == -32601
    with StdioPeer(sample_server("--era", "legacy")) as legacy:
        assert legacy.ask(_modern(1, "server/discover"))["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        ("echo", {"text": "hi"}, "hi"),
        ("add", {"a": 2, "b": 3}, "5"),
        ("read_note", {"name": "draft"}, "An old draft that nobody needs any more."),
        ("write_note", {"name": "n", "text": "t"}, "written"),
        ("delete_note", {"name": "draft"}, "deleted draft"),
        ("transfer", {"amount": 5, "to": "ann"}, "transferred 5 to ann"),
        ("big", {"bytes": 3}, "xxx"),
        ("slow", {"seconds": 0}, "slept 0.0 s"),
    ],
)
def test_a_tool_answers(server: StdioPeer, tool: str, arguments: dict[str, Any], text: str) -> None:
    assert _text(server.ask(call(1, tool, arguments))) == text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("fail", {}), ("read_note", {"name": "none"}), ("delete_note", {"name": "none"})],
)
def test_a_tool_that_fails_says_so_in_its_result(
    server: StdioPeer, tool: str, arguments: dict[str, Any]
) -> None:
    assert server.ask(call(1, tool, arguments))["result"]["isError"] is True


def test_the_environment_can_be_read_back() -> None:
    with StdioPeer(sample_server(), env={"SEEN": "yes"}) as server:
        assert json.loads(_text(server.ask(call(1, "env"))))["SEEN"] == "yes"


def test_slow_tells_how_far_it_is(server: StdioPeer) -> None:
    params = {"name": "slow", "arguments": {"seconds": 0.04}, "_meta": {"progressToken": "t"}}
    server.send(request(1, "tools/call", params))

    told = [server.receive() for _ in range(3)]

    assert [body["params"]["progress"] for body in told] == [1, 2, 3]
    assert server.receive()["id"] == 1


def test_a_cancelled_call_is_not_answered(server: StdioPeer) -> None:
    server.send(call(1, "slow", {"seconds": 0.05}))
    server.send(notification("notifications/cancelled", {"requestId": 1}))
    server.send(request(2, "ping"))

    assert server.receive()["id"] == 2
    assert server.finish() == 0
    assert server.remaining_lines() == []


@pytest.mark.parametrize(
    ("tool", "method"),
    [
        ("sample", "sampling/createMessage"),
        ("roots", "roots/list"),
        ("elicit", "elicitation/create"),
    ],
)
def test_a_tool_asks_the_client_and_answers_with_what_it_said(
    server: StdioPeer, tool: str, method: str
) -> None:
    server.send(call(1, tool, {"prompt": "p", "question": "q"}))
    asked = server.receive()
    assert asked["method"] == method

    server.send(result(asked["id"], {"said": "this"}))

    assert json.loads(_text(server.receive())) == {"said": "this"}


def test_a_modern_tool_asks_through_its_result(server: StdioPeer) -> None:
    first = server.ask(_modern(1, "tools/call", name="roots", arguments={}))["result"]
    assert first["resultType"] == "input_required"
    assert first["inputRequests"]["roots"]["method"] == "roots/list"

    answers: dict[str, Any] = {"roots": {"roots": []}}
    params = {"name": "roots", "arguments": {}, "inputResponses": answers}
    second = server.ask(_modern(2, "tools/call", **params))

    assert json.loads(_text(second)) == {"roots": []}


def test_resources_and_prompts_are_served(server: StdioPeer) -> None:
    uris = [
        entry["uri"] for entry in server.ask(request(1, "resources/list"))["result"]["resources"]
    ]
    read = server.ask(request(2, "resources/read", {"uri": uris[0]}))
    prompt = server.ask(
        request(3, "prompts/get", {"name": "summarise", "arguments": {"note": "x"}})
    )

    assert read["result"]["contents"][0]["uri"] == uris[0]
    assert "x" in prompt["result"]["messages"][0]["content"]["text"]


def test_what_is_not_there_is_refused(server: StdioPeer) -> None:
    missing = [
        call(1, "nothing"),
        request(2, "resources/read", {"uri": "note:///none"}),
        request(3, "prompts/get", {"name": "none"}),
        request(4, "no/such"),
    ]

    assert [server.ask(body)["error"]["code"] for body in missing] == [
        -32602,
        -32002,
        -32602,
        -32601,
    ]


def test_a_new_tool_is_announced(server: StdioPeer) -> None:
    server.send(call(1, "grow", {"name": "more"}))

    assert server.receive()["method"] == "notifications/tools/list_changed"
    assert server.receive()["id"] == 1
    names = [tool["name"] for tool in server.ask(request(2, "tools/list"))["result"]["tools"]]
    assert "more" in names


def test_a_modern_listener_is_told_of_changes() -> None:
    with StdioPeer(sample_server("--era", "modern")) as server:
        server.send(_modern(7, "subscriptions/listen", notifications={"toolsListChanged": True}))
        assert server.receive()["method"] == "notifications/subscriptions/acknowledged"

        server.send(_modern(8, "tools/call", name="grow", arguments={}))

        told = server.receive()
        assert told["method"] == "notifications/tools/list_changed"
        assert told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 7


def test_the_tools_and_their_number_can_be_chosen() -> None:
    with StdioPeer(sample_server("--tools", "echo,mine", "--count", "2")) as server:
        listed = server.ask(request(1, "tools/list"))["result"]["tools"]

    assert [tool["name"] for tool in listed] == ["echo", "mine", "tool_1", "tool_2"]


def test_a_list_comes_in_pages() -> None:
    with StdioPeer(sample_server("--tools", "a,b,c", "--page", "2")) as server:
        first = server.ask(request(1, "tools/list"))["result"]
        rest = server.ask(request(2, "tools/list", {"cursor": first["nextCursor"]}))["result"]

    assert [tool["name"] for tool in first["tools"] + rest["tools"]] == ["a", "b", "c"]
    assert "nextCursor" not in rest


def test_every_line_received_is_logged(tmp_path: Path) -> None:
    log = tmp_path / "seen.jsonl"
    with StdioPeer(sample_server("--log", str(log))) as server:
        server.write_line(b"not json")
        server.ask(request(1, "ping"))

    lines = [json.loads(line)["line"] for line in log.read_text().splitlines()]
    assert lines[0] == "not json"
    assert json.loads(lines[1])["method"] == "ping"


def test_it_crashes_errs_or_stays_silent_as_told() -> None:
    flags = ("--error-on", "add", "--never-answer", "slow", "--crash-on", "echo")
    with StdioPeer(sample_server(*flags)) as server:
        assert server.ask(call(1, "add"))["error"]["code"] == -32050
        server.send(call(2, "slow"))
        assert server.ask(request(3, "ping"))["id"] == 3
        server.send(call(4, "echo"))

        assert server.wait() == 70


def test_garbage_and_standard_error_are_printed() -> None:
    with StdioPeer(sample_server("--garbage", "--stderr", "hello there")) as server:
        assert server.read_line() == b"Welcome to the sample server!"
        server.wait_for_stderr("hello there")


def test_it_outlives_its_input_and_a_polite_request() -> None:
    with StdioPeer(sample_server("--ignore-eof", "--ignore-sigterm")) as server:
        server.ask(request(1, "ping"))
        server.signal(signal.SIGTERM)
        server.ask(request(2, "ping"))
        server.close_stdin()

        assert server.process.poll() is None


def test_a_grandchild_stays_behind() -> None:
    with StdioPeer(sample_server("--spawn-grandchild")) as server:
        server.ask(request(1, "ping"))
        server.close_stdin()
        server.wait()

        assert len(server.descendants()) == 1
        server.destroy()
        server.assert_nothing_left()


def test_the_exit_code_can_be_chosen() -> None:
    with StdioPeer(sample_server("--exit-code", "3")) as server:
        assert server.finish() == 3
