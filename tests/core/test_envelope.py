"""From a record to a sealed line: the envelope, the sequence, the chain."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.json_values import json_objects

from thoughtgate.core import envelope as module
from thoughtgate.core.envelope import (
    GENESIS,
    MAX_KEPT,
    TRAFFIC,
    Envelope,
    Run,
    SessionPeers,
    expected_chain,
    render_time,
    seal,
    stated_chain,
)
from thoughtgate.core.record_events import Record

FULL = Run(
    "run-1",
    agent_id="a",
    client="claude",
    env="ci",
    host_id="h",
    proc_id="7",
    shim_id="s",
    principal="me",
    workload={"repo": "r"},
    profile="development",
)


def _record(**body: Any) -> Record:
    return Record("message", 1_700_000_000.9999, "srv \u2028", "1", body)


@pytest.mark.requirement("EVT-001", "EVT-002", "ID-001", "S000-F-024")
def test_a_line_has_every_member_of_the_envelope() -> None:
    line, chain = seal(Envelope(FULL).wrap(_record(x={"y": 1})), GENESIS)
    body = json.loads(line)

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert body == {
        "v": "1.3",
        "type": "message",
        "ts": "2023-11-14T22:13:20.999Z",
        "run_id": "run-1",
        "agent_id": "a",
        "client": "claude",
        "env": "ci",
        "source": {"host_id": "h", "proc_id": "7", "shim_id": "s"},
        "profile": "development",
        "principal": "me",
        "workload": {"repo": "r"},
        "session_id": "1",
        "seq": 1,
        "server_name": "srv \u2028",
        "x": {"y": 1},
        "chain": chain,
    }


@pytest.mark.requirement("ID-002")
def test_a_run_without_further_facts_leaves_them_out() -> None:
    body = json.loads(seal(Envelope(Run("r")).wrap(_record()), GENESIS)[0])

    assert "principal" not in body
    assert "workload" not in body
    assert (body["agent_id"], body["client"], body["env"]) == ("unknown",) * 3


@pytest.mark.requirement("EVT-005")
def test_the_sequence_counts_from_one_without_gaps() -> None:
    envelope = Envelope(FULL)
    numbers = [json.loads(envelope.wrap(_record()) + b"}")["seq"] for _ in range(5)]

    assert numbers == [1, 2, 3, 4, 5]


@given(json_objects(), st.text(max_size=5), st.floats(0, 4_102_444_800))
@settings(max_examples=100, deadline=None)
def test_any_body_is_one_line_whose_chain_can_be_checked(
    body: dict[str, Any], server: str, at: float
) -> None:
    opened = Envelope(FULL).wrap(Record("message", at, server, "1", {"body": body}))
    line, chain = seal(opened, GENESIS)
    stated = stated_chain(line[:-1])

    assert stated is not None
    covered, said = stated
    assert said == chain == expected_chain(covered, GENESIS)
    assert chain == hashlib.sha256(GENESIS.encode() + covered).hexdigest()
    assert json.loads(line)["body"] == body
    assert expected_chain(covered, chain) != chain


def test_a_changed_byte_changes_the_chain() -> None:
    line, chain = seal(Envelope(FULL).wrap(_record(x=1)), GENESIS)
    stated = stated_chain(line[:-1].replace(b'"x":1', b'"x":2'))

    assert stated is not None
    assert expected_chain(stated[0], GENESIS) != chain


@pytest.mark.parametrize("line", [b"", b"{}", b'{"chain":"x"}', b"x" * 200, b"\xff" * 200])
def test_a_line_without_a_seal_states_no_chain(line: bytes) -> None:
    assert stated_chain(line) is None


def test_half_a_surrogate_from_the_environment_is_still_a_line() -> None:
    line, _ = seal(Envelope(Run("r", agent_id="\udc80")).wrap(_record()), GENESIS)

    assert json.loads(line)["agent_id"] == "\udc80"


def test_a_line_is_one_line_to_readers_that_split_at_other_characters() -> None:
    line, chain = seal(Envelope(FULL).wrap(_record(x="\u2028\u2029\u0085")), GENESIS)
    stated = stated_chain(line[:-1])

    assert len(line.decode().splitlines()) == 1
    assert json.loads(line)["x"] == "\u2028\u2029\u0085"
    assert stated is not None
    assert expected_chain(stated[0], GENESIS) == chain


def test_names_of_many_servers_are_not_remembered_without_end() -> None:
    envelope = Envelope(FULL)
    for number in range(MAX_KEPT * 2 + 1):
        line = envelope.wrap(Record("message", 1.0, f"srv{number}", "1", {}))
        assert f'"srv{number}"'.encode() in line

    assert len(envelope._parts) <= MAX_KEPT


def test_another_encoder_may_write_the_body() -> None:
    [line] = Envelope(FULL).wrap_all([_record(x=1)], lambda _: b'{"x": 2}')
    assert line.endswith(b',"x": 2')


@given(st.integers(0, 4_102_444_800_000))
@settings(max_examples=100, deadline=None)
def test_times_are_utc_with_milliseconds(milliseconds: int) -> None:
    at = milliseconds / 1000
    moment = datetime.fromtimestamp(int(at * 1000) // 1000, UTC)

    assert render_time(at).startswith(moment.strftime("%Y-%m-%dT%H:%M:%S."))
    assert render_time(at).endswith("Z")
    assert len(render_time(at)) == len("2023-11-14T22:13:20.999Z")


def test_events_of_a_session_say_who_its_agent_is() -> None:
    peers = SessionPeers()
    calls, traffic = Envelope(FULL, peers=peers), Envelope(FULL, TRAFFIC, peers)

    def peer(envelope: Envelope, session: str) -> Any:
        line = envelope.wrap(Record("message", 1.0, "up", session, {"message": {}}))
        return json.loads(line + b"}").get("peer")

    assert peer(calls, "1") is None
    peers.introduce("1", {"client": 'a "b" 1', "address": ""})
    peers.introduce("1", {"principal": "me"})
    peers.introduce("1", {"principal": "me"})
    for envelope in (calls, traffic):
        assert peer(envelope, "1") == {"client": 'a "b" 1', "principal": "me"}
        assert peer(envelope, "2") is None


def test_so_many_agents_are_remembered_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SESSIONS", 2)
    monkeypatch.setattr(module, "MAX_KEPT", 2)
    peers = SessionPeers()
    envelope = Envelope(FULL, peers=peers)
    for number in range(4):
        peers.introduce(str(number), {"client": "x"})
        for kind in ("a", "b", "c"):
            envelope.wrap(Record(kind, 1.0, "up", str(number), {}))
    assert [peers.rendered(str(number)) != "" for number in range(4)] == [False, False, True, True]
