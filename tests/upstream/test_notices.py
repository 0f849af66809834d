"""Requests whose responses nobody waits for: their number is limited."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.http_gate import Gate, config_for, http_post
from tests.support.http_upstream import HttpUpstream, Received, Reply, event
from tests.support.waiting import wait_for

from thoughtgate.front import post
from thoughtgate.upstream.notices import Notices


class _Notice:
    def __init__(self) -> None:
        self.is_over = False
        self.is_aborted = False

    def abort(self) -> None:
        self.is_over = self.is_aborted = True


def test_the_oldest_is_given_up_above_the_limit() -> None:
    kept, sent = Notices(limit=3), [_Notice() for _ in range(5)]
    for one in sent:
        kept.add(one)
    assert [one.is_aborted for one in sent] == [True, True, False, False, False]
    assert len(kept) == 3


def test_an_answered_one_does_not_count() -> None:
    kept, sent = Notices(limit=2), [_Notice() for _ in range(4)]
    for one in sent:
        kept.add(one)
        one.is_over = one is not sent[0]
    assert not any(one.is_aborted for one in sent)


class _Silent:
    """A server that asks the agent, and never completes a response that nobody waits for."""

    def __init__(self) -> None:
        self.told = 0
        self.end = threading.Event()

    def __call__(self, received: Received) -> Reply:
        message: Any = received.message
        if message.get("method") == "tools/call":
            ask = {"jsonrpc": "2.0", "id": f"s{self.told}", "method": "roots/list"}
            done = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
            return Reply(parts=[event(ask), event(done)])
        self.told += 1
        return Reply(parts=[b": wait\n\n", b": end\n\n"], wait=self.end)


def _refuse(gate: Gate) -> None:
    assert len(gate.call("echo").events) == 1


def _tell(gate: Gate) -> None:
    assert gate.post([{"jsonrpc": "2.0", "method": "notifications/x"}]).status == 202


@pytest.mark.promise("bounded-memory")
@pytest.mark.parametrize("cause", [_refuse, _tell])
def test_a_server_cannot_make_the_gate_keep_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: Callable[[Gate], None]
) -> None:
    monkeypatch.setattr(Notices.__init__, "__defaults__", (4,))
    server, rules = _Silent(), "rules:\n  - {roots: '*', action: deny}\n"
    with (
        HttpUpstream(server) as upstream,
        Gate(tmp_path, config_for(upstream.url, rules)) as gate,
    ):
        for number in range(1, 11):
            cause(gate)
            wait_for(lambda count=number: server.told == count, what="the notice at the server")  # type: ignore[misc]
        wait_for(lambda: upstream.broken == 6, what="the end of the oldest")
        server.end.set()


@pytest.mark.promise("bounded-memory")
def test_a_server_cannot_keep_the_notification_of_an_agent_that_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post, "ORPHAN_S", 0.05)
    server = _Silent()
    with HttpUpstream(server) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        with gate.raw() as agent:
            host = {"host": f"127.0.0.1:{gate.port}"}
            told = {"jsonrpc": "2.0", "method": "notifications/x"}
            agent.sendall(http_post(told, headers=host))
            wait_for(lambda: server.told == 1, what="the notification at the server")
        wait_for(lambda: upstream.broken == 1, what="the end of the request")
        server.end.set()
