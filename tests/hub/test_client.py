"""What is open between a client and the hub, and the client's sessions with servers."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import thoughtgate
from tests.support.frames import call, notification, request
from tests.support.hub import Served, modern, sample, serving
from tests.support.hub_parts import connect, governed, load
from tests.support.waiting import run_async, wait_for
from tests.support.warm_command import run_warm

from thoughtgate.core.commands import ToAgent
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.errors import PeerError
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.outbox import Outbox
from thoughtgate.hub.client import (
    HIDDEN,
    MAX_OPEN,
    Carried,
    Client,
    Listen,
    RelayLeg,
    ServerSession,
)
from thoughtgate.hub.engine import HubEngine
from thoughtgate.wire.message import REQUEST, RESPONSE, Message
from thoughtgate.wire.replies import render

APPROVE = [{"tool": "transfer", "action": "approve"}]


def approvals(hub: Served) -> list[dict[str, Any]]:
    done = subprocess.run(
        thoughtgate("approvals", "list", "--json"),
        env={
            "THOUGHTGATE_STATE_DIR": str(hub.state),
            "PATH": "/usr/bin:/bin",
            "HOME": str(hub.state),
        },
        capture_output=True,
        timeout=20,
        check=True,
    )
    listed: list[dict[str, Any]] = json.loads(done.stdout)
    return listed


def answer(hub: Served, *words: str) -> None:
    """Answer in another terminal: this process plays the agent."""
    env = {"THOUGHTGATE_STATE_DIR": str(hub.state), "HOME": str(hub.state)}
    run_warm("approvals", *words, env=env).check_returncode()


def test_rules_judge_the_server_and_the_original_name(tmp_path: Path) -> None:
    rules = [{"tool": "echo", "server": "two", "action": "deny"}]
    with serving(tmp_path, {"one": sample(), "two": sample()}, rules=rules) as hub:
        hub.open()

        assert hub.text(1, "one.echo", {"text": "x"}) == "x"
        assert hub.kind(2, "two.echo", {"text": "x"}) == "governance_denied"


def test_a_hidden_an_unknown_and_a_foreign_tool_look_the_same(tmp_path: Path) -> None:
    log = tmp_path / "log"
    open_to_all = sample("--tools", "echo")
    servers = {"one": sample("--log", str(log), expose={"allow": ["echo"]}), "two": open_to_all}
    with serving(tmp_path, servers) as hub:
        hub.open()
        hidden = hub.ask(call(1, "one.add", {"a": 1, "b": 2}))
        assert not log.exists()
        unlisted = hub.ask(call(6, "two.nothing"))
        hub.text(2, "one.echo", {"text": "x"})
        unknown = hub.ask(call(3, "one.nothing"))
        foreign = hub.ask(call(4, "other.add"))

        shapes = []
        for reply in (hidden, unknown, foreign, unlisted):
            data = reply["error"]["data"]
            shapes.append(
                (reply["error"]["code"], reply["error"]["message"], list(data), data["gate"])
            )
        assert len(set(map(str, shapes))) == 1
        assert shapes[0][0] == -32015
        assert hub.names(5) == ["one.echo", "two.echo"]
        assert "tools/call" in log.read_text()
        assert "nothing" not in log.read_text()


class Vanished:
    """A way to a server that has just ceased to offer the tool."""

    async def relay(self, session: ServerSession, call: Carried) -> Message:
        """Say so."""
        del session, call
        raise PeerError(HIDDEN, "")


def test_a_tool_that_disappears_after_its_verdict_was_not_called(tmp_path: Path) -> None:
    loaded = load(tmp_path, {"one": sample()})
    params = {"name": "echo", "arguments": {}}
    body = request(1, "tools/call", params)

    async def ask(governor: Governor) -> list[tuple[bytes, Any]]:
        engine = HubEngine(governor, 5)
        client, frames = connect(engine.outbox)
        session = ServerSession(
            engine.driven, engine.watch, client, SessionSettings("one", "1"), Vanished().relay
        )
        message = Message(REQUEST, 1, "tools/call", body, render(body))
        session.ask(message, params, "one.echo", frames, "")
        engine.outbox.flush()
        carried = session.calls[1].task
        assert carried is not None
        await carried
        engine.close()
        return frames.replies

    with governed(loaded, tmp_path / "state") as governor:
        [(reply, _)] = run_async(ask(governor))

    lines = (tmp_path / "state" / "audit.jsonl").read_bytes().splitlines()
    [ended] = [one for one in map(json.loads, lines) if one["type"] == "tool_call_end"]
    assert json.loads(reply)["error"]["data"]["kind"] == "not_exposed"
    assert (ended["error"]["class"], ended["error"]["kind"]) == ("policy_block", "not_exposed")


def test_annotations_are_known_before_the_first_call_is_judged(tmp_path: Path) -> None:
    rules = [{"tool": "*", "annotations": {"destructiveHint": True}, "action": "deny"}]
    with serving(tmp_path, {"one": sample()}, rules=rules) as hub:
        hub.open()

        assert hub.kind(1, "one.delete_note", {"name": "draft"}) == "governance_denied"


def test_a_held_call_waits_for_a_person_and_stops_nobody(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}, rules=APPROVE) as hub:
        hub.open()
        hub.send(call(1, "one.transfer", {"amount": 5}))
        [asked] = wait_for(lambda: approvals(hub))
        while_held = hub.text(2, "one.echo", {"text": "on"})
        answer(hub, "approve", asked["id"])
        approved = hub.receive_answer(1)

        assert (asked["server"], asked["tool"], asked["arguments"]) == (
            "one",
            "transfer",
            {"amount": 5},
        )
        assert while_held == "on"
        assert "transferred 5" in approved["result"]["content"][0]["text"]
        kinds = [one["type"] for one in hub.records()]
        assert kinds.index("approval_requested") < kinds.index("approval_decided")


def test_a_denied_and_a_withdrawn_call_are_not_made(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(tmp_path, {"one": sample("--log", str(log))}, rules=APPROVE) as hub:
        hub.open()
        hub.send(call(1, "one.transfer", {"amount": 5}))
        [asked] = wait_for(lambda: approvals(hub))
        answer(hub, "deny", asked["id"], "--reason", "no")
        denied = hub.receive_answer(1)
        hub.send(call(2, "one.transfer", {"amount": 6}))
        wait_for(lambda: approvals(hub))
        hub.send(notification("notifications/cancelled", {"requestId": 2}))
        wait_for(lambda: not approvals(hub))

        assert denied["error"]["data"]["kind"] == "approval_rejected"
        assert "transfer" not in [
            json.loads(json.loads(line)["line"]).get("params", {}).get("name")
            for line in log.read_text().splitlines()
        ]


def test_a_client_that_leaves_withdraws_what_it_asked_for(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}, rules=APPROVE) as hub:
        hub.open()
        hub.send(call(1, "one.transfer", {"amount": 5}))
        wait_for(lambda: approvals(hub))
        hub.close_stdin()
        assert hub.wait() == 0
        assert approvals(hub) == []
        ends = [one for one in hub.records() if one["type"] == "tool_call_end"]
        assert ends[0]["status"] == "CANCELLED"


def test_only_so_many_calls_are_held_over_all_servers(tmp_path: Path) -> None:
    servers = {"one": sample(), "two": sample()}
    with serving(tmp_path, servers, rules=APPROVE, holds=2) as hub:
        hub.open()
        hub.names()
        for ident, server in enumerate(("one", "two", "one"), 1):
            hub.send(call(ident, f"{server}.transfer", {"amount": ident}))
        refused = hub.receive_answer(3)

        assert refused["error"]["data"]["kind"] == "service_unavailable"
        assert len(approvals(hub)) == 2


def test_limits_count_calls_through_the_hub(tmp_path: Path) -> None:
    limits = [{"tool": "echo", "server": "one", "budget": 2}]
    with serving(tmp_path, {"one": sample()}, limits=limits) as hub:
        hub.open()
        hub.text(1, "one.echo", {"text": "a"})
        hub.text(2, "one.echo", {"text": "b"})
        error = hub.ask(call(3, "one.echo", {"text": "c"}))["error"]
        shifted = hub.ask(modern(4, "tools/call", {"name": "one.echo", "arguments": {"text": "d"}}))

    assert (error["code"], error["data"]["kind"]) == (-32009, "budget")
    assert shifted["error"]["code"] == -31009


def test_every_call_is_on_record_before_it_is_made(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()
        hub.text(1, "one.echo", {"text": "x"})
        records = hub.records()

    of_call = [one for one in records if one["type"].startswith("tool_call")]
    assert [one["type"] for one in of_call] == [
        "tool_call_start",
        "tool_call_decision",
        "tool_call_end",
    ]
    assert of_call[0]["call"]["server_name"] == "one"
    assert of_call[0]["call"]["tool_name"] == "echo"
    assert of_call[2]["status"] == "OK"
    assert records[0]["type"] == "run_start"


def test_the_error_of_a_server_passes_as_it_is(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--error-on", "echo")}) as hub:
        hub.open()
        error = hub.ask(call(1, "one.echo", {"text": "x"}))["error"]

    assert error == {
        "code": -32050,
        "message": "this tool was told to answer with an error",
        "data": {"tool": "echo"},
    }


@pytest.mark.requirement("S002-33")
def test_a_failed_tool_is_the_servers_own_result(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()
        result = hub.ask(call(1, "one.fail"))["result"]

    assert result == {
        "content": [{"type": "text", "text": "this tool always fails"}],
        "isError": True,
    }


def test_in_the_development_profile_nothing_is_refused_by_policy(tmp_path: Path) -> None:
    with serving(
        tmp_path, {"one": sample(expose={"allow": ["add"]})}, profile="development"
    ) as hub:
        hub.open()

        assert hub.text(1, "one.echo", {"text": "x"}) == "x"
        assert hub.kind(2, "nowhere.echo") == "not_exposed"
        assert hub.ask(request(3, "ping"))["result"] == {}


class Status:
    """An owner that only looks at the status."""

    def __init__(self) -> None:
        self.statuses: list[int] = []

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Take the answer."""
        del data, headers
        self.statuses.append(status)

    def told(self, data: bytes) -> None:
        """Nothing comes before it."""


@pytest.mark.parametrize("modern", [True, False])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"result": {}}, 200),
        ({"result": {"text": '"error"'}}, 200),
        ({"error": {"code": -32601, "message": ""}}, 404),
        ({"error": {"code": -32602, "message": ""}}, 400),
        ({"error": {"code": -32022, "message": ""}}, 400),
        ({"error": {"code": -31003, "message": ""}}, 200),
        ({"error": "odd"}, 200),
    ],
)
def test_the_status_of_an_answer_follows_from_the_servers_error_since_2026(
    tmp_path: Path, body: dict[str, Any], status: int, modern: bool
) -> None:
    loaded = load(tmp_path, {"one": sample()})
    data = render({"jsonrpc": "2.0", "id": 1, **body})

    async def answer(governor: Governor) -> list[int]:
        engine, owner = HubEngine(governor, 5), Status()
        client, _ = connect(engine.outbox)
        session = ServerSession(
            engine.driven, engine.watch, client, SessionSettings("one", "1"), Vanished().relay
        )
        leg = RelayLeg(owner, session, Carried(1, "tools/call", {}, modern))
        leg.reply = Message(RESPONSE, 1, "", {"id": 1, **body}, data)
        leg.take(ToAgent(data, 1))
        engine.outbox.flush()
        engine.close()
        return owner.statuses

    with governed(loaded, tmp_path / "state") as governor:
        assert run_async(answer(governor)) == [status if modern else 200]


# The client.


def client() -> Client:
    return connect(Outbox(lambda: True, lambda _: None))[0]


def test_ids_are_taken_while_anything_of_them_is_open() -> None:
    one: Any = client()
    one.work["a"] = object()
    one.routes[1] = object()
    one.listens["l"] = Listen({}, {})

    assert [one.is_open(ident) for ident in ("a", 1, "l", "1", "b")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_a_client_with_too_much_open_is_full() -> None:
    one: Any = client()
    assert not one.is_full
    one.routes.update((number, None) for number in range(MAX_OPEN))
    assert one.is_full


def test_questions_get_ids_of_their_own() -> None:
    one = client()

    assert [one.next_question(), one.next_question()] == ["thoughtgate-1", "thoughtgate-2"]


def test_an_introduction_is_kept_as_far_as_it_is_sound() -> None:
    async def main() -> None:
        one = client()
        one.introduce("nonsense", "nonsense")
        assert (one.capabilities, one.says_it_is) == ({}, "")
        one.introduce({"roots": {}}, {"name": "editor", "version": "2"})
        assert (one.capabilities, one.says_it_is) == ({"roots": {}}, "editor 2")
        assert one.introduced.is_set()

    run_async(main())


def test_replies_and_notices_are_told_apart() -> None:
    one, frames = connect(Outbox(lambda: True, lambda _: None))
    one.reply(b"a", 1)
    one.tell(b"b", None)

    assert frames.replies == [(b"a", 1)]
    assert frames.told_frames == [(b"b", None)]


def test_a_request_that_the_hub_works_on_is_answered_when_its_client_is_stopped() -> None:
    async def main() -> None:
        one, frames = connect(Outbox(lambda: True, lambda _: None))
        one.work[7] = task = asyncio.ensure_future(asyncio.sleep(60))
        one.stop("the session has ended", 0.0)
        assert await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), 10)
        assert task.cancelled()
        ((reply, ident),) = frames.replies
        error = json.loads(reply)["error"]
        assert (ident, error["data"]["reason"]) == (7, "the session has ended")
        assert error["data"]["kind"] == "upstream_connection_failed"

    run_async(main())
