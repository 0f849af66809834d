"""The record of a shim's run, read from the real file: order, identity, counts, limits."""

import json
import resource
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import sample_server, shim
from tests.support.frames import call, notification, request
from tests.support.shim_peer import ALLOW_ALL, ShimPeer
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import wait_for

from thoughtgate.wire.canonical import args_hash

ENVELOPE = {
    "v", "type", "ts", "run_id", "agent_id", "client", "env", "source", "profile", "session_id",
    "seq", "server_name", "chain",
}  # fmt: skip

LIMITED = """\
schema: 1
default: forward
servers:
  sample: {expose: {block: [env]}}
rules:
  - {tool: delete_note, action: deny}
  - {tool: transfer, when: {amount: {gt: 100}}, action: deny}
limits:
  - {tool: add, budget: 3}
  - {tool: read_note, rate: 1/h}
  - {tool: write_note, duplicate: 1h}
  - {tool: fail, breaker: {failures: 2, within: 1h, cooldown: 1h}}
"""


def _run_calls(peer: ShimPeer, *bodies: dict[str, Any]) -> list[Any]:
    answers = [peer.ask(body) for body in bodies]
    peer.finish()
    return answers


@pytest.mark.requirement("EVT-001", "EVT-002", "EVT-003", "EVT-004", "EVT-006", "ADAPT-001")
def test_the_events_of_a_call_stand_in_their_order_with_every_field(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        _run_calls(peer, call(1, "echo", {"text": "a"}))
        raw = (peer.state / "audit.jsonl").read_bytes()
        assert raw.endswith(b"\n")
        events = [json.loads(line) for line in raw.splitlines()]
        kinds = [event["type"] for event in events]
        calls = [kind for kind in kinds if kind.startswith("tool_call")]
        assert kinds[0] == "run_start"
        assert kinds[-1] == "run_end"
        assert calls == ["tool_call_start", "tool_call_decision", "tool_call_end"]
        for event in events:
            assert event.keys() >= ENVELOPE
            assert set(event["source"]) == {"host_id", "proc_id", "shim_id"}
            assert event["source"]["proc_id"] == str(peer.pid)
            assert event["server_name"] == "sample"
        assert len({event["run_id"] for event in events}) == 1
        own = [event["call"] for event in events if "call" in event]
        assert {one["tool_name"] for one in own} == {"echo"}
        assert {one["server_name"] for one in own} == {"sample"}
        assert {one["args_hash"] for one in own} == {args_hash({"text": "a"})}
        assert events[kinds.index("tool_call_start")]["call"]["transport"] == "mcp_stdio"


@pytest.mark.requirement("EVT-005", "EVT-004")
def test_a_hundred_calls_have_a_hundred_ids_and_no_gap(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        for number in range(100):
            peer.send(call(number, "echo", {"text": str(number)}))
        peer.answers(100)
        peer.finish()
        events = peer.record()
        starts = peer.events("tool_call_start")
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert len({event["call"]["call_id"] for event in starts}) == 100
        assert [event["call"]["seq"] for event in starts] == list(range(1, 101))
        assert len({event["run_id"] for event in events}) == 1


@pytest.mark.requirement("EVT-007")
def test_the_latency_is_not_below_what_the_tool_took(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, options=["--delay", "0.2"]) as peer:
        _run_calls(peer, call(1, "echo", {"text": "a"}))
        assert peer.events("tool_call_end")[0]["latency_ms"] >= 200


@pytest.mark.requirement("EVT-008")
def test_an_error_of_the_server_is_an_error_with_a_class_and_without_its_words(
    tmp_path: Path,
) -> None:
    with ShimPeer(tmp_path, options=["--error-on", "echo"]) as peer:
        (answer,) = _run_calls(peer, call(1, "echo", {"text": "a"}))
        assert answer["error"]["message"] == "this tool was told to answer with an error"
        (end,) = peer.events("tool_call_end")
        assert end["status"] == "ERROR"
        assert end["error"]["class"] == "upstream_error"
        assert end["error"]["code"] == -32050
        assert "told to" not in json.dumps(end)
        assert "Traceback" not in json.dumps(end)


@pytest.mark.requirement(
    "EVT-009", "POL-003", "POL-004", "POL-005", "POL-006", "POL-009", "POL-010", "ERR-001", "ERR-002",
)  # fmt: skip
def test_the_summary_equals_what_the_events_say_throttles_included(tmp_path: Path) -> None:
    bodies = [call(f"add{n}", "add", {"a": n, "b": 1}) for n in range(4)]
    bodies += [call(f"read{n}", "read_note", {"name": "welcome"}) for n in range(2)]
    bodies += [call(f"write{n}", "write_note", {"name": "n", "text": "t"}) for n in range(2)]
    bodies += [call("write9", "write_note", {"name": "n", "text": "other"})]
    bodies += [call(f"fail{n}", "fail") for n in range(3)]
    bodies += [call("big", "transfer", {"amount": 101}), call("small", "transfer", {"amount": 100})]
    bodies += [call("del", "delete_note", {"name": "draft"}), call("hid", "env")]
    with ShimPeer(tmp_path, LIMITED) as peer:
        answers = {one["id"]: one for one in _run_calls(peer, *bodies)}
        kinds = {
            ident: one["error"]["data"]["kind"] for ident, one in answers.items() if "error" in one
        }
        assert kinds == {
            "add3": "budget",
            "read1": "rate_limited",
            "write1": "duplicate",
            "fail2": "breaker",
            "big": "governance_denied",
            "del": "governance_denied",
            "hid": "not_exposed",
        }
        for ident in ("add3", "read1", "write1", "fail2"):
            assert answers[ident]["error"]["code"] == -32009
        assert answers["read1"]["error"]["data"]["retry_after"] > 0
        assert "retry_after" not in answers["add3"]["error"]["data"]
        ends = peer.events("tool_call_end")
        blocked = [one for one in ends if one.get("error", {}).get("class") == "policy_block"]
        throttled = [
            one
            for one in peer.events("tool_call_decision")
            if one["decision"]["action"] == "THROTTLE"
        ]
        summary = peer.record()[-1]["run"]["summary"]
        assert summary["calls_total"] == len(ends) == len(bodies)
        assert summary["calls_throttled"] == len(throttled) == 4
        assert summary["calls_blocked"] == len(blocked) - 4 == 3
        assert summary["calls_allowed"] == len(bodies) - 7
        assert summary["errors_total"] == sum(one["status"] == "ERROR" for one in ends)
        assert summary["tool_errors"] == 2
        assert sorted(peer.calls_reached()).count("add") == 3
        assert len(peer.calls_reached()) == summary["calls_allowed"]


@pytest.mark.requirement("HASH-001")
def test_the_hash_on_the_record_does_not_depend_on_the_order_of_keys(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        for ident, text in ((1, '{"b":2.0,"a":1}'), (2, '{"a":1.0,"b":2}')):
            peer.write_line(
                b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":'
                b'{"name":"add","arguments":%b}}' % (ident, text.encode())
            )
            peer.receive_answer(ident)
        peer.finish()
        hashes = {event["call"]["args_hash"] for event in peer.events("tool_call_start")}
        assert hashes == {"43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777"}


@pytest.mark.requirement("ID-001")
@pytest.mark.parametrize("prefix", ["SUB_", "THOUGHTGATE_"])
def test_the_identity_of_the_environment_stands_on_every_event(tmp_path: Path, prefix: str) -> None:
    told = {
        "RUN_ID": "run-42",
        "AGENT_ID": "agent-7",
        "CLIENT": "claude",
        "ENV": "ci",
        "PRINCIPAL": "me@example.com",
        "WORKLOAD": '{"repo":"r"}',
    }
    env = {f"{prefix}{name}": value for name, value in told.items()}
    with ShimPeer(tmp_path, env=env) as peer:
        _run_calls(peer, call(1, "echo", {"text": "a"}))
        for event in peer.record():
            assert event["run_id"] == "run-42"
            assert event["agent_id"] == "agent-7"
            assert event["client"] == "claude"
            assert event["env"] == "ci"
            assert event["principal"] == "me@example.com"
            assert event["workload"] == {"repo": "r"}


@pytest.mark.requirement("ID-002")
def test_a_run_without_identity_works_and_gets_a_new_run_id(tmp_path: Path) -> None:
    ids = set()
    for _ in range(2):
        with ShimPeer(tmp_path) as peer:
            _run_calls(peer, request(1, "ping"))
            ids.add(peer.record()[-1]["run_id"])
            assert "workload" not in peer.record()[-1]
    assert len(ids) == 2


@pytest.mark.requirement("BUF-001", "BUF-004")
def test_arguments_over_a_mebibyte_pass_whole_with_a_preview_marked_as_cut(
    tmp_path: Path,
) -> None:
    arguments = {"text": "y" * 1_100_000}
    with ShimPeer(tmp_path) as peer:
        (answer,) = _run_calls(peer, call(1, "echo", arguments))
        assert answer["result"]["content"][0]["text"] == arguments["text"]
        start = peer.events("tool_call_start")[0]["call"]
        assert start["preview"]["truncated"] is True
        assert len(start["preview"]["args_preview"]) <= 16_384
        assert start["args_hash"] == args_hash(arguments)
        assert start["bytes_in"] > 1_100_000


@pytest.mark.requirement("ERR-004", "SEC-001")
def test_secrets_in_a_call_stand_neither_in_its_error_nor_on_the_record(tmp_path: Path) -> None:
    arguments = {"name": "x", "password": "hunter2hunter2", "text": "ghp_0123456789abcdef"}
    with ShimPeer(tmp_path, LIMITED) as peer:
        answers = _run_calls(peer, call(1, "delete_note", arguments), call(2, "echo", arguments))
        said = json.dumps(answers[0]) + (peer.state / "audit.jsonl").read_text()
        assert "hunter2hunter2" not in said
        assert "ghp_0123456789abcdef" not in said
        reached = peer.reached()
        assert reached[0]["params"]["arguments"] == arguments


def test_the_chain_of_the_record_can_be_checked(tmp_path: Path) -> None:
    from thoughtgate.core.envelope import GENESIS, expected_chain, stated_chain

    for _ in range(2):
        with ShimPeer(tmp_path) as peer:
            _run_calls(peer, call(1, "echo", {"text": "a"}))
    previous = GENESIS
    for line in (tmp_path / "state" / "audit.jsonl").read_bytes().splitlines():
        stated = stated_chain(line)
        assert stated is not None
        assert stated[1] == expected_chain(stated[0], previous)
        previous = stated[1]


@pytest.mark.parametrize("place", ["stderr", "file"])
def test_the_record_goes_where_the_flag_says(tmp_path: Path, place: str) -> None:
    path = tmp_path / "other" / "record.jsonl"
    flag = "stderr" if place == "stderr" else str(path)
    with ShimPeer(tmp_path, flags=["--audit", flag]) as peer:
        lines = [json.dumps(one) for one in _run_calls(peer, call(1, "echo", {"text": "a"}))]
        assert "tool_call_start" not in "".join(lines)
        text = peer.stderr if place == "stderr" else path.read_text()
    kinds = [json.loads(line)["type"] for line in text.splitlines() if line.startswith("{")]
    assert kinds[0] == "run_start"
    assert kinds[-1] == "run_end"


def test_the_record_and_its_folder_are_private(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        _run_calls(peer, request(1, "ping"))
        assert peer.state.stat().st_mode & 0o777 == 0o700
        for path in peer.state.iterdir():
            if path.is_file():
                assert path.stat().st_mode & 0o077 == 0, path


# When the record cannot be written.


def test_a_record_that_cannot_be_opened_starts_nothing(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, flags=["--audit", "/dev/full"]) as peer:
        assert peer.wait() == 2
        assert peer.remaining_lines() == []
        assert "record" in peer.stderr
        assert peer.reached() == []
        peer.assert_nothing_left()


def _fill_the_disk(peer: ShimPeer) -> None:
    """Let no file of the running shim grow any more; its server is already started."""
    size = (peer.state / "audit.jsonl").stat().st_size
    resource.prlimit(peer.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _empty_the_disk(peer: ShimPeer) -> None:
    infinite = resource.RLIM_INFINITY
    resource.prlimit(peer.pid, resource.RLIMIT_FSIZE, (infinite, infinite))


@pytest.mark.promise("nothing-unrecorded")
def test_what_cannot_be_recorded_is_refused_and_does_not_reach_the_server(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        assert "result" in peer.ask(call(1, "echo", {"text": "a"}))
        wait_for(lambda: len(peer.events("tool_call_end")) == 1, what="the end on the record")
        _fill_the_disk(peer)
        for body in (call(2, "echo", {"text": "evil"}), request(3, "ping", {"x": "evil"})):
            assert peer.ask(body)["error"]["data"]["kind"] == "service_unavailable"
        peer.wait_for_stderr("; calls are refused")
        peer.send(notification("notifications/evil"))
        assert peer.ask(request(4, "ping"))["error"]["code"] == -32013
        _empty_the_disk(peer)
        assert "result" in peer.ask(call(5, "echo", {"text": "b"}))
        peer.finish()
        assert "evil" not in "".join(peer.reached_lines())
        assert [body["id"] for body in peer.reached()] == [1, 5]
        assert peer.record()[-1]["type"] == "run_end"
        assert [event["seq"] for event in peer.record()] == list(range(1, len(peer.record()) + 1))
        assert peer.events("record_gap")[0]["record"]["lost"] > 0
        assert _sums(peer) == {"calls_total": 2, "calls_allowed": 2, "calls_blocked": 0}


@pytest.mark.promise("nothing-unrecorded")
def test_a_record_replaced_by_a_device_stops_the_calls(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        assert "result" in peer.ask(call(1, "echo", {"text": "a"}))
        record = peer.state / "audit.jsonl"
        record.unlink()
        record.symlink_to("/dev/null")
        refused = peer.ask(call(2, "echo", {"text": "b"}))
        assert refused["error"]["data"]["kind"] == "service_unavailable"
        record.unlink()
        assert "result" in peer.ask(call(3, "echo", {"text": "c"}))
        assert [body["id"] for body in peer.reached()] == [1, 3]


def test_a_call_whose_end_alone_is_on_the_record_counts_as_blocked(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        peer.ask(call(1, "echo", {"text": "a"}))
        wait_for(lambda: len(peer.events("tool_call_end")) == 1, what="the end on the record")
        _fill_the_disk(peer)
        assert "error" in peer.ask(call(2, "echo", {"text": "b"}))
        _empty_the_disk(peer)
        peer.finish()
        errors = [end.get("error", {}).get("class") for end in peer.events("tool_call_end")]
        assert errors in ([None], [None, "policy_block"])  # the disk may be full for the end too
        assert _sums(peer)["calls_allowed"] == 1
        assert _sums(peer)["calls_total"] == len(errors)


def _sums(peer: ShimPeer) -> dict[str, int]:
    summary = peer.events("run_end")[0]["run"]["summary"]
    return {name: summary[name] for name in ("calls_total", "calls_allowed", "calls_blocked")}


@pytest.mark.parametrize(
    ("config", "flags"),
    [
        (ALLOW_ALL, ["--profile", "development"]),
        (ALLOW_ALL + "audit: {on_failure: continue}\n", []),
    ],
)
def test_an_operator_may_choose_to_go_on_without_a_record(
    tmp_path: Path, config: str, flags: list[str]
) -> None:
    with ShimPeer(tmp_path, config, flags=flags) as peer:
        assert "result" in peer.ask(request(1, "ping"))
        _fill_the_disk(peer)
        assert "result" in peer.ask(call(2, "echo", {"text": "b"}))
        peer.wait_for_stderr("; calls are still forwarded")
        assert "calls are refused" not in peer.stderr


def test_two_shims_share_one_record(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as one:
        other_log = tmp_path / "other.jsonl"
        command = shim(
            sample_server("--log", str(other_log)),
            "-c",
            str(tmp_path / "thoughtgate.yaml"),
            server_id="other",
        )
        env = {"THOUGHTGATE_STATE_DIR": str(one.state)}
        with StdioPeer(command, env=env) as two:
            for number in range(50):
                one.send(call(number, "echo", {"text": "a"}))
                two.send(call(number, "echo", {"text": "b"}))
            one.answers(50)
            for number in range(50):
                two.receive_answer(number)
            two.finish()
        one.finish()
        events = one.record()
        runs = {event["run_id"] for event in events}
        assert len(runs) == 2
        for run in runs:
            own = [event["seq"] for event in events if event["run_id"] == run]
            assert own == list(range(1, len(own) + 1))
