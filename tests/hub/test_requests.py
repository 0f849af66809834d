"""Both eras as the hub's own clients."""

import json
import os
import threading
from pathlib import Path

import pytest
from tests.support.frames import call, envelope, initialize, request
from tests.support.hub import Served, modern, sample, serving


@pytest.mark.requirement("S002-21")
@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_legacy_revision_is_answered_as_asked(tmp_path: Path, version: str) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        assert hub.ask(initialize(0, version))["result"]["protocolVersion"] == version


def test_a_client_that_probes_and_falls_back_is_served(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        unknown = hub.ask(request("probe", "server/discover", {"_meta": envelope("2099-01-01")}))
        bare = hub.ask(request("bare", "server/discover"))
        result = hub.open()

        assert unknown["error"]["code"] == -32022
        assert unknown["error"]["data"]["supported"] == ["2026-07-28"]
        assert bare["error"]["code"] == -32022
        assert result["protocolVersion"] == "2025-11-25"
        assert hub.text(1, "one.echo", {"text": "x"}) == "x"


@pytest.mark.parametrize(
    "method",
    ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"],
)
def test_what_the_modern_era_has_no_more_is_not_found(tmp_path: Path, method: str) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        assert hub.ask(modern(1, method))["error"]["code"] == -32601


def test_a_modern_request_without_capabilities_is_refused(tmp_path: Path) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    with serving(tmp_path, {"one": sample()}) as hub:
        answer = hub.ask(request(1, "tools/list", {"_meta": meta}))

    assert answer["error"]["code"] == -32602


def test_ids_keep_their_type(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()
        hub.names()
        hub.send(call(1, "one.echo", {"text": "number"}))
        hub.send(call("1", "one.echo", {"text": "string"}))
        told = {type(answer["id"]): answer for answer in (hub.receive(), hub.receive())}

    assert told[int]["result"]["content"][0]["text"] == "number"
    assert told[str]["result"]["content"][0]["text"] == "string"


def test_capabilities_shrink_to_what_the_servers_have_once_they_are_known(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        before = hub.ask(modern(1, "server/discover"))["result"]["capabilities"]
        hub.ask(modern(2, "tools/list"))
        after = hub.ask(modern(3, "server/discover"))["result"]["capabilities"]

    assert before == after
    assert set(after) == {"tools", "resources", "prompts", "completions", "extensions"}


def test_a_client_that_asks_faster_than_it_is_answered_is_held_back(tmp_path: Path) -> None:
    count = 11_000
    lines = b"".join(
        json.dumps(call(number, "one.echo", {"text": "x"})).encode() + b"\n"
        for number in range(count)
    )
    with serving(tmp_path, {"one": sample()}, "--log-level", "error") as hub:
        hub.open()
        hub.names()
        writer = threading.Thread(target=_write_all, args=(hub, lines))
        writer.start()
        answered = {hub.receive(60)["id"] for _ in range(count)}
        writer.join(10)

    assert answered == set(range(count))


def _write_all(hub: Served, data: bytes) -> None:
    assert hub.process.stdin is not None
    view = memoryview(data)
    while view:
        view = view[os.write(hub.process.stdin.fileno(), view[:65536]) :]


def test_pipelined_requests_are_all_answered(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()
        hub.names()
        for number in range(500):
            hub.send(call(number + 1, "one.echo", {"text": str(number)}))
        answers = {}
        for _ in range(500):
            answer = hub.receive()
            answers[answer["id"]] = answer["result"]["content"][0]["text"]

    assert answers == {number + 1: str(number) for number in range(500)}
