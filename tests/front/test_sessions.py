"""Sessions over HTTP: sealed to their agent, ended, expired."""

import json
from pathlib import Path

import pytest
from tests.support.http_gate import Gate, call_of, config_for
from tests.support.http_upstream import HttpUpstream, Received, Reply, event, result

from thoughtgate.front.session_handshake import Handshake
from thoughtgate.front.sessions import LIFE_S, MAX_SEALED_ID, SessionLimit, SessionTable
from thoughtgate.gate.keys import KeyRing

KEYS = KeyRing([b"k" * 32])
HELLO = Handshake(2_000_000_000, "2025-06-18", ("agent", "1"), {"roots": {}})


class _Driver:
    """As much of a driver as the table looks at."""

    def __init__(self, *, busy: bool = False) -> None:
        self.is_busy = busy


def _table(*, limit: int = 3, idle_s: float = 1000.0) -> SessionTable:
    return SessionTable(KEYS, SessionLimit(limit), idle_s=idle_s)


def test_a_session_is_found_by_the_agent_that_opened_it() -> None:
    table = _table()
    entry = table.open("up-1", "alice", _Driver(), HELLO)  # type: ignore[arg-type]  # a stand-in
    assert table.find(entry.ident, "alice") is entry
    assert table.by_name == {entry.name: entry}
    assert entry.upstream == "up-1"
    assert entry.ident != "up-1"
    assert entry.ends_at == HELLO.opened_at + LIFE_S
    assert len(table) == 1


def test_nobody_else_finds_it_even_with_its_id() -> None:
    table = _table()
    entry = table.open("up-1", "alice", _Driver(), HELLO)  # type: ignore[arg-type]  # a stand-in
    assert table.find(entry.ident, "mallory") is None
    assert table.read(entry.ident, "mallory") is None


def test_another_worker_knows_a_session_by_its_seal_alone() -> None:
    ident = _table().seal("up.with.dots", "alice", HELLO)
    assert _table().find(ident, "alice") is None
    assert _table().read(ident, "alice") == ("up.with.dots", HELLO)
    assert _table().read(ident, "mallory") is None
    forged = SessionTable(KeyRing([b"x" * 32]), SessionLimit(3), idle_s=1.0)
    assert forged.read(ident, "alice") is None
    rotated = SessionTable(KeyRing([b"x" * 32, b"k" * 32]), SessionLimit(3), idle_s=1.0)
    assert rotated.read(ident, "alice") == ("up.with.dots", HELLO)


def test_no_other_spelling_of_an_id_is_the_session() -> None:
    table = _table()
    ident = table.seal("up-1", "alice", HELLO)
    for place in range(len(ident)):
        for other in ("a", "A", "."):
            altered = ident[:place] + other + ident[place + 1 :]
            assert altered == ident or table.read(altered, "alice") is None
    assert table.read(ident.upper(), "alice") is None
    assert table.read(f"{ident}=", "alice") is None


def test_a_session_that_ended_or_is_too_old_cannot_be_continued() -> None:
    table = _table()
    entry = table.open("up-1", "alice", _Driver(), HELLO)  # type: ignore[arg-type]  # a stand-in
    assert table.read(entry.ident, "alice") is None, "it is known, not continued"
    table.forget(entry.ident)
    assert table.read(entry.ident, "alice") is None
    assert table.by_name == {}
    assert table.read(table.seal("up-1", "alice", Handshake(1_000)), "alice") is None


@pytest.mark.parametrize("ident", ["", "x", "x.y", "x" * MAX_SEALED_ID + ".y", ".", "é.ü", "a.b.é"])
def test_an_id_that_was_never_given_is_unknown(ident: str) -> None:
    assert _table().find(ident, "alice") is None
    assert _table().read(ident, "alice") is None


def test_the_longest_idle_session_makes_room() -> None:
    table = _table(limit=2)
    first = table.open("1", "a", _Driver(busy=True), HELLO)  # type: ignore[arg-type]  # a stand-in
    second = table.open("2", "a", _Driver(), HELLO)  # type: ignore[arg-type]  # as above
    third = table.open("3", "a", _Driver(), HELLO)  # type: ignore[arg-type]  # as above
    assert table.entries() == [first, third]
    assert table.forget(second.ident) is None


def test_the_limit_holds_over_all_tables_of_a_listener() -> None:
    limit = SessionLimit(2)
    tables = [SessionTable(KEYS, limit, idle_s=1000.0) for _ in range(3)]
    oldest, _, newest = [
        table.open(str(number), "a", _Driver(), HELLO)  # type: ignore[arg-type]  # a stand-in
        for number, table in enumerate(tables)
    ]
    assert [len(table) for table in tables] == [0, 1, 1]
    assert tables[0].find(oldest.ident, "a") is None
    tables[1].touch(tables[1].entries()[0].ident)
    assert limit.make_room()
    assert newest not in tables[2].entries()


def test_a_session_in_use_makes_no_room() -> None:
    table = _table(limit=1)
    table.open("1", "a", _Driver(busy=True), HELLO)  # type: ignore[arg-type]  # a stand-in
    assert not table.limit.make_room()
    assert len(table) == 1


def test_a_session_that_is_being_opened_has_its_place() -> None:
    table, opening = _table(limit=1), _Driver()
    table.limit.reserve(opening)  # type: ignore[arg-type]  # a stand-in
    assert not table.limit.make_room()
    assert table.open("1", "a", opening, HELLO) in table.entries()  # type: ignore[arg-type]  # as above
    assert not table.limit.release(opening)  # type: ignore[arg-type]  # as above


def test_the_sessions_of_a_table_that_is_no_longer_used_do_not_count() -> None:
    limit = SessionLimit(1)
    table = SessionTable(KEYS, limit, idle_s=1000.0)
    table.open("1", "a", _Driver(busy=True), HELLO)  # type: ignore[arg-type]  # a stand-in
    limit.remove(table)
    limit.remove(table)
    assert limit.make_room()


def test_sessions_that_nobody_uses_expire_unless_something_is_open() -> None:
    table = _table(idle_s=-1.0)
    busy = table.open("1", "a", _Driver(busy=True), HELLO)  # type: ignore[arg-type]  # a stand-in
    idle = table.open("2", "a", _Driver(), HELLO)  # type: ignore[arg-type]  # as above
    assert table.expire() == [idle]
    assert table.entries() == [busy]


def _server(received: Received) -> Reply:
    """A server with one session, which it calls s-1."""
    known = received.headers.get("mcp-session-id") == "s-1"
    if received.method != "POST":
        note = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
        return Reply(parts=[event(note)]) if received.method == "GET" else Reply(204)
    message = received.message
    if message.get("method") == "initialize":
        reply = result(received, {"protocolVersion": "2025-06-18", "capabilities": {}})
        reply.headers = {"mcp-session-id": "s-1"}
        return reply
    if not known:
        return Reply(404)
    if "id" not in message or "method" not in message:
        return Reply(202)
    if message["method"] == "tools/call" and message["params"]["name"] == "ask":
        question = {"jsonrpc": "2.0", "id": 50, "method": "elicitation/create", "params": {}}
        done = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
        return Reply(parts=[event(question), event(done)])
    return result(received, {})


AUTH = "listen:\n  transport: http\n  auth: {type: jwt, jwks_url: 'http://127.0.0.1:9/', issuer: i, audience: a}\n"


def test_a_session_lives_from_initialize_to_delete(tmp_path: Path) -> None:
    with HttpUpstream(_server) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        opened = gate.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        ident = opened.headers["mcp-session-id"]
        assert ident.startswith("s-1.")
        session = {"mcp-session-id": ident}
        assert gate.post(call_of("echo"), session).status == 200
        stream = gate.request("GET", headers={**session, "accept": "text/event-stream"})
        assert stream.events[0]["method"] == "notifications/tools/list_changed"
        assert gate.request("GET", headers={**session, "accept": "application/json"}).status == 406
        assert gate.request("DELETE", headers=session).status == 204
        assert gate.post(call_of("echo", ident=2), session).status == 404
        connected = gate.records("agent_connected")
        assert connected[0]["agent"] == {"method": "none", "identity": "local"}
        assert connected[0]["session_id"] == "1"
        calls = gate.records("tool_call_start")
        assert calls[0]["session_id"] == "1"


def test_an_unknown_session_is_404_and_never_reaches_the_server(tmp_path: Path) -> None:
    with HttpUpstream(_server) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        for ident in ("s-1", "s-1.aaaaaaaaaaaaaaaaaaaaaaaa", "nonsense"):
            session = {"mcp-session-id": ident, "accept": "text/event-stream"}
            assert gate.post(call_of("echo"), session).status == 404
            assert gate.request("GET", headers=session).status == 404
            assert gate.request("DELETE", headers=session).status == 404
        assert upstream.received == []


def test_only_what_the_server_asked_may_be_answered(tmp_path: Path) -> None:
    with HttpUpstream(_server) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        opened = gate.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        answer = gate.post(call_of("ask", ident=2), session)
        assert answer.events[0]["method"] == "elicitation/create"
        said = {"jsonrpc": "2.0", "id": 50, "result": {"action": "accept"}}
        assert gate.post(said, session).status == 202
        assert gate.post(said, session).status == 400
        sent = [json.loads(one.body) for one in upstream.received]
        assert sent.count(said) == 1


def test_an_id_in_use_in_a_session_is_refused(tmp_path: Path) -> None:
    import threading

    go = threading.Event()

    def slow(received: Received) -> Reply:
        reply = _server(received)
        if received.tool == "slow":
            reply.wait = go
        return reply

    with HttpUpstream(slow) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        opened = gate.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        session = {"mcp-session-id": opened.headers["mcp-session-id"]}
        first: list[int] = []
        thread = threading.Thread(
            target=lambda: first.append(gate.post(call_of("slow", ident=5), session).status)
        )
        thread.start()
        from tests.support.waiting import wait_for

        wait_for(lambda: upstream.calls("slow"), what="the first call")
        second = gate.post(call_of("echo", ident=5), session)
        assert (second.status, second.error["code"]) == (400, -32600)
        go.set()
        thread.join(10)
        assert first == [200]
