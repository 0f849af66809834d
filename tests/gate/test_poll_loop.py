"""The shim before a real server: what passes, what is refused, what is answered."""

import json
import os
import select
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import sample_server, shim
from tests.support.frames import call, envelope, initialize, notification, request, result
from tests.support.frames import line as frame
from tests.support.shim_peer import ALLOW_ALL, ShimPeer
from tests.support.waiting import PATIENCE_S, wait_for, within

from thoughtgate.wire.lines import MAX_LINE

RULES = """\
schema: 1
default: forward
servers:
  sample: {expose: {block: [env]}}
rules:
  - {tool: delete_note, action: deny, reason: internal words}
"""


def _text(answer: Any) -> str:
    return str(answer["result"]["content"][0]["text"])


@pytest.mark.requirement("S000-F-011", "S000-F-012", "EC-STDIO-030")
def test_an_allowed_session_is_byte_for_byte_the_servers_own(tmp_path: Path) -> None:
    lines = [
        frame(initialize(version="1999-01-01")),
        frame(notification("notifications/initialized")),
        frame(request("l", "tools/list")),
        (
            b'{ "jsonrpc" : "2.0", "id": 5, "method": "tools/call",'
            b' "params": {"name":"echo","arguments":{"text":"\\u00e9\xc3\xa9 \\/"}} }'
        ),
        frame(request(6, "no/such/method", {"x": [1.0, 1e5]})),
        frame(request(7, "resources/read", {"uri": "note:///welcome"})),
        frame(request(8, "prompts/get", {"name": "summarise"})),
        frame(request(9, "server/discover", {"_meta": envelope()})),
    ]
    sent = b"\n".join(lines) + b"\n"
    direct = subprocess.run(
        sample_server(), input=sent, capture_output=True, check=True, timeout=PATIENCE_S
    )
    with ShimPeer(tmp_path) as peer:
        peer.write(sent)
        peer.close_stdin()
        assert b"\n".join(peer.remaining_lines()) + b"\n" == direct.stdout
        assert peer.wait() == 0
        assert peer.reached_lines() == [line.decode() for line in lines]


REFUSED = [
    (b"{not json}", None, "parse_error", -32700),
    (b'{"id":7,"method":"ping"}', 7, "invalid_request", -32600),
    (b'[{"jsonrpc":"2.0","id":7,"method":"ping"}]', None, "invalid_request", -32600),
    (b'{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}', 7, "invalid_request", -32600),
    (b'{"jsonrpc":"2.0","id":7,"method":"x","a":"\r"}', 7, "invalid_request", -32600),
    (b'{"jsonrpc":"2.0","id":7,"a":' + b"[" * 200 + b"]" * 200 + b"}", 7, "invalid_request", -32600),
    (b'{"jsonrpc":"2.0","id":7,"method":"\xff"}', 7, "parse_error", -32700),
    (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo"}}', None, "invalid_request", -32600),
    (b'{"jsonrpc":"2.0","id":7,"method":"tools/call"}', 7, "invalid_params", -32602),
    (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":3}}', 7, "invalid_params", -32602),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, "invalid_request", -32600),
    (b'{"jsonrpc":"2.0","id":7}', 7, "invalid_request", -32600),
]  # fmt: skip


@pytest.mark.requirement(
    "EC-STDIO-015", "EC-STDIO-016", "EC-STDIO-017", "EC-STDIO-018", "EC-STDIO-035", "S000-F-007b",
    "S000-F-013", "S000-F-014", "ADAPT-003",
)  # fmt: skip
def test_bad_frames_are_answered_recorded_and_kept_from_the_server(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        for line, ident, kind, code in REFUSED:
            peer.write_line(line)
            body = peer.receive()
            assert body["id"] == ident, line
            assert (body["error"]["data"]["kind"], body["error"]["code"]) == (kind, code), line
        assert peer.ask(request(99, "ping"))["result"] == {}
        peer.finish()
        assert [body["id"] for body in peer.reached()] == [99]
        refused = peer.events("frame_refused")
        assert len(refused) == len(REFUSED)
        assert all(event["frame"]["enforced"] for event in refused)


@pytest.mark.requirement("EC-STDIO-014", "S000-F-013")
@pytest.mark.parametrize("id_first", [True, False])
def test_a_message_over_ten_mebibytes_is_refused_with_its_id(
    tmp_path: Path, *, id_first: bool
) -> None:
    params = {"name": "echo", "arguments": {"text": "x" * MAX_LINE}}
    big = {"jsonrpc": "2.0", "method": "tools/call", "params": params}
    with ShimPeer(tmp_path) as peer:
        peer.send({"id": 1, **big} if id_first else {**big, "id": 1})
        body = peer.receive()
        assert (body["id"], body["error"]["data"]["check"]) == (1, "too_large")
        assert _text(peer.ask(call(2, "echo", {"text": "small"}))) == "small"
        peer.finish()
        assert [body["id"] for body in peer.reached()] == [2]
        assert peer.events("frame_refused")[0]["frame"]["bytes"] > MAX_LINE


@pytest.mark.requirement("BUF-003", "EC-STDIO-032")
def test_large_arguments_and_large_results_arrive_whole(tmp_path: Path) -> None:
    text = "é" * 1024 * 1024
    with ShimPeer(tmp_path) as peer:
        assert _text(peer.ask(call(1, "echo", {"text": text}))) == text
        assert len(_text(peer.ask(call(2, "big", {"bytes": 5_000_000})))) == 5_000_000


def _send_mebibytes(peer: ShimPeer, count: int) -> None:
    for number in range(count):
        peer.send(call(number, "echo", {"text": f"{number}-" + "x" * 1_048_576}))


@pytest.mark.requirement("BUF-002")
def test_fifty_concurrent_calls_of_a_mebibyte_arrive_whole(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        writer = threading.Thread(target=_send_mebibytes, args=(peer, 50))
        writer.start()
        found = peer.answers(50)
        writer.join(10)
        for ident, answer in found.items():
            assert len(_text(answer)) == 1_048_576 + len(f"{ident}-")
        status = Path(f"/proc/{peer.pid}/status").read_text()
        peak_kb = next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line)
        assert peak_kb < 400_000


def test_a_hidden_tool_is_not_listed_and_looks_like_none(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, RULES) as peer:
        names = [tool["name"] for tool in peer.ask(request(1, "tools/list"))["result"]["tools"]]
        hidden = peer.ask(call(2, "env"))["error"]
        assert "env" not in names
        assert "echo" in names
        assert (hidden["code"], hidden["data"]["kind"]) == (-32015, "not_exposed")
        peer.finish()
        assert peer.calls_reached() == []


@pytest.mark.requirement("ERR-001", "ERR-003", "ERR-004", "POL-002", "POL-008")
def test_a_denied_call_never_reaches_the_server_and_tells_nothing_of_the_rule(
    tmp_path: Path,
) -> None:
    with ShimPeer(tmp_path, RULES) as peer:
        answer = peer.ask(call(1, "delete_note", {"name": "draft"}))
        said = answer["error"]
        assert said["data"]["kind"] == "governance_denied"
        assert said["data"]["gate"] == "rules"
        assert said["data"]["tool"] == "delete_note"
        assert said["message"] == "denied by a rule"
        assert "internal words" not in json.dumps(answer)
        peer.finish()
        assert peer.calls_reached() == []
        (end,) = peer.events("tool_call_end")
        (decision,) = peer.events("tool_call_decision")
        assert end["status"] == "ERROR"
        assert end["error"]["class"] == "policy_block"
        assert end["bytes_out"] == len(frame(answer))
        assert said["data"]["correlation_id"] == end["call"]["call_id"]
        assert decision["decision"]["rule_id"] == "rules[0]"
        assert decision["decision"]["explain"]["reason_code"] == "GOVERNANCE_DENIED"


@pytest.mark.requirement("EC-STDIO-019")
@pytest.mark.parametrize(
    ("tool", "method"),
    [("roots", "roots/list"), ("sample", "sampling/createMessage"), ("elicit", "elicitation/create")],
)  # fmt: skip
def test_a_request_of_the_server_reaches_the_agent_and_its_answer_goes_back(
    tmp_path: Path, tool: str, method: str
) -> None:
    with ShimPeer(tmp_path) as peer:
        peer.send(call(1, tool))
        asked = peer.receive()
        assert asked["method"] == method
        peer.send(result(asked["id"], {"answer": 42}))
        assert json.loads(_text(peer.receive_answer(1))) == {"answer": 42}


@pytest.mark.requirement("EC-STDIO-020")
def test_a_changed_list_is_told_without_a_verdict(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        peer.send(call(1, "grow", {"name": "new"}))
        assert peer.receive()["method"] == "notifications/tools/list_changed"


@pytest.mark.requirement("EC-STDIO-027")
def test_a_partial_line_of_the_server_waits_for_its_end(tmp_path: Path) -> None:
    code = (
        "import os,time,sys\n"
        "sys.stdin.readline()\n"
        'os.write(1, b\'{"jsonrpc":"2.0",\')\n'
        "sys.stdin.readline()\n"
        'os.write(1, b\'"id":1,"result":{}}\\n\')\n'
        "sys.stdin.read()\n"
    )
    with ShimPeer(tmp_path, server=[sys.executable, "-c", code]) as peer:
        peer.send(request(1, "ping"))
        peer.send(notification("notifications/next"))
        assert peer.read_line() == frame(result(1))


@pytest.mark.requirement("EC-STDIO-028", "S000-F-011")
def test_the_servers_standard_error_passes_through(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, options=["--stderr", "hello from the server"]) as peer:
        peer.wait_for_stderr("hello from the server")


def test_garbage_on_the_servers_output_is_dropped_and_the_session_goes_on(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, options=["--garbage"]) as peer:
        assert _text(peer.ask(call(1, "echo", {"text": "a"}))) == "a"
        assert _text(peer.ask(call(2, "echo", {"text": "b"}))) == "b"
        peer.finish()
        assert peer.events("frame_refused")[0]["frame"]["direction"] == "server_to_agent"


def test_an_answer_that_nobody_asked_for_reaches_nobody(tmp_path: Path) -> None:
    with ShimPeer(tmp_path) as peer:
        peer.send(result(5, {"x": 1}))
        assert peer.ask(request(1, "ping"))["result"] == {}
        peer.finish()
        assert [body.get("method") for body in peer.reached()] == ["ping"]
        assert peer.events("frame_refused")[0]["frame"]["check"] == "unknown_response"


@pytest.mark.requirement("EC-STDIO-010", "PROC-003")
def test_a_server_that_dies_gets_everybody_an_answer_and_ends_the_shim(tmp_path: Path) -> None:
    options = ["--crash-on", "fail", "--never-answer", "slow"]
    with ShimPeer(tmp_path, options=options) as peer:
        peer.send(call(1, "slow"))
        peer.send(request("a", "ping"))
        assert peer.receive_answer("a")["result"] == {}
        peer.send(call(2, "fail"))
        found = peer.answers(2)
        assert {ident: body["error"]["data"]["kind"] for ident, body in found.items()} == {
            1: "upstream_connection_failed",
            2: "upstream_connection_failed",
        }
        assert peer.wait() == 70
        peer.assert_nothing_left()
        assert [event["status"] for event in peer.events("tool_call_end")] == ["ERROR", "ERROR"]
        last = peer.record()[-1]
        assert (last["type"], last["run"]["status"]) == ("run_end", "FAILED")
        assert "the server exited with code 70" in peer.stderr


@pytest.mark.requirement("EC-STDIO-009")
@pytest.mark.parametrize(("mode", "code"), [("missing", 127), ("not executable", 126)])
def test_a_server_that_cannot_start_gets_every_request_an_answer(
    tmp_path: Path, mode: str, code: int
) -> None:
    program = tmp_path / "server"
    if mode != "missing":
        program.write_text("x")
    with ShimPeer(tmp_path, server=[str(program)]) as peer:
        for ident in (1, 2):
            said = peer.ask(request(ident, "ping"))["error"]["data"]
            assert said["kind"] == "server_start_failed"
            assert str(program) not in json.dumps(said)
        assert peer.finish() == code
        assert "could not be started" in peer.stderr
        assert peer.record()[-1]["run"]["status"] == "FAILED"
        peer.assert_nothing_left()


def test_a_server_that_cannot_start_is_tried_again(tmp_path: Path) -> None:
    program = tmp_path / "server"
    with ShimPeer(tmp_path, server=[str(program)]) as peer:
        assert peer.ask(request("early", "ping"))["error"]["data"]["kind"] == "server_start_failed"
        answer = 'while read -r line; do echo \'{"jsonrpc":"2.0","id":1,"result":{}}\'; done'
        finished = tmp_path / "written"
        finished.write_text(f"#!/bin/sh\n{answer}\n")
        finished.chmod(0o700)
        finished.rename(program)
        peer.wait_for_stderr("the server is running now")
        assert peer.ask(request(1, "ping"))["result"] == {}
        assert peer.finish() == 0
        assert peer.stderr.count("could not be started") == 1
        states = [one["type"] for one in peer.record() if one["type"].startswith("server_")]
        assert states == ["server_exited", "server_started", "server_exited"]
        assert peer.record()[-1]["run"]["status"] == "SUCCEEDED"
        peer.assert_nothing_left()


def test_a_server_that_closes_its_input_does_not_leave_callers_waiting(tmp_path: Path) -> None:
    code = "import os,time\nos.close(0)\ntime.sleep(600)\n"
    with ShimPeer(tmp_path, server=[sys.executable, "-c", code]) as peer:
        for ident in range(2):
            peer.send(request(ident, "ping"))
        assert peer.receive(timeout=10)["error"]["data"]["kind"] == "upstream_connection_failed"
        peer.wait()
        peer.assert_nothing_left()


@pytest.mark.requirement("EC-STDIO-017", "EC-STDIO-018", "S000-F-022", "S000-F-023", "S000-F-024")
def test_development_passes_what_production_refuses_and_says_so(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, RULES, flags=["--profile", "development"]) as peer:
        peer.write_line(b'{"jsonrpc":"2.0","x":1}')
        peer.write_line(b'{"jsonrpc":"2.0","id":7,"method":"ping",\r"y":1}')
        assert peer.receive_answer(7)["result"] == {}
        assert _text(peer.ask(call(1, "delete_note", {"name": "draft"}))) == "deleted draft"
        assert "error" not in peer.ask(call(2, "env"))
        peer.finish()
        assert len(peer.reached()) == 4
        for word in ("WOULD_DROP", "WOULD_REJECT", "WOULD_BLOCK"):
            assert word in peer.stderr
        assert {event["profile"] for event in peer.record()} == {"development"}
        decisions = [event["decision"] for event in peer.events("tool_call_decision")]
        assert [one["action"] for one in decisions] == ["BLOCK", "BLOCK"]
        assert not any(one["enforced"] for one in decisions)
        assert peer.record()[-1]["run"]["summary"]["calls_would_block"] == 2


@pytest.mark.requirement("EC-STDIO-033")
def test_a_cedar_denial_in_development_is_recorded_and_the_call_goes_on(tmp_path: Path) -> None:
    (tmp_path / "p.cedar").write_text("forbid(principal, action, resource);")
    config = "schema: 1\nprofile: development\ndefault: policy\ncedar: {policies: [p.cedar]}\n"
    with ShimPeer(tmp_path, config) as peer:
        assert _text(peer.ask(call(1, "echo", {"text": "a"}))) == "a"
        peer.finish()
        decision = peer.events("tool_call_decision")[0]["decision"]
        assert (decision["gate"], decision["outcome"]) == ("cedar", "WOULD_BLOCK")
        assert "WOULD_BLOCK" in peer.stderr


@pytest.mark.requirement("SEC-001")
def test_the_server_inherits_its_environment_but_nothing_of_the_gate(tmp_path: Path) -> None:
    env = {
        "SERVER_SECRET": "for-the-server-only",
        "THOUGHTGATE_GOVERNANCE_TOKEN": "t0ken",
        "THOUGHTGATE_AGENT_ID": "me",
        "SUB_RUN_ID": "run-7",
        "SIGN": "key-for-the-record-of-32-letters",
    }
    config = ALLOW_ALL + "audit: {sign_key_env: SIGN}\n"
    with ShimPeer(tmp_path, config, env=env) as peer:
        seen = json.loads(_text(peer.ask(call(1, "env"))))
        peer.finish()
    assert seen["SERVER_SECRET"] == "for-the-server-only"
    assert not [name for name in seen if name.startswith(("THOUGHTGATE_", "SUB_"))]
    assert "SIGN" not in seen
    text = (tmp_path / "state" / "audit.jsonl").read_text()
    assert "for-the-server-only" not in text
    assert "key-for-the-record" not in text


@pytest.mark.parametrize("reads", ["meanwhile", "only after everything is written"])
@pytest.mark.parametrize("calls", [5_000, pytest.param(50_000, marks=pytest.mark.long)])
def test_pipelined_calls_with_full_pipes_lose_none(tmp_path: Path, calls: int, reads: str) -> None:
    """Both pipes are full at once; a proxy that waits for one side deadlocks here."""
    data = b"".join(frame(call(n, "echo", {"text": "x"})) + b"\n" for n in range(calls))
    log = tmp_path / "config.yaml"
    log.write_text(ALLOW_ALL)
    command = shim(sample_server(), "-c", str(log))
    env = {**os.environ, "THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, bufsize=0
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        out = _exchange(
            process.stdin.fileno(),
            process.stdout.fileno(),
            data,
            calls,
            both=reads == "meanwhile",
        )
        process.stdin.close()
        process.wait(30)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        process.stdin.close()
        process.stdout.close()
    seen = [json.loads(one)["id"] for one in out.splitlines()]

    assert sorted(seen) == list(range(calls))
    last = json.loads((tmp_path / "state" / "audit.jsonl").read_bytes().splitlines()[-1])
    assert last["run"]["summary"]["calls_total"] == calls


def _exchange(to: int, back: int, data: bytes, calls: int, *, both: bool) -> bytes:
    """Write everything and read the answers: at the same time, or one after the other."""
    os.set_blocking(to, False)
    out = bytearray()
    view = memoryview(data)
    while view or out.count(b"\n") < calls:
        wants_read = [back] if both or not view else []
        ready, writable, _ = select.select(wants_read, [to] if view else [], [], 60)
        assert ready or writable, "the shim stands still"
        if writable:
            view = view[os.write(to, view[:65536]) :]
        if ready:
            chunk = os.read(back, 1 << 20)
            assert chunk, "the shim has ended"
            out += chunk
    return bytes(out)


def test_an_agent_that_closes_its_output_and_input_at_once_still_gets_all_answers(
    tmp_path: Path,
) -> None:
    """A script that pipes requests in and reads the answers at leisure loses none."""
    data = b"".join(frame(call(n, "echo", {"text": "x" * 500})) + b"\n" for n in range(2000))
    with ShimPeer(tmp_path, options=["--start-delay", "1"]) as peer:
        peer.write(data)
        peer.close_stdin()
        assert len(peer.remaining_lines()) == 2000
        assert peer.wait() == 0
        assert peer.record()[-1]["run"]["status"] == "SUCCEEDED"


def test_an_agent_that_no_longer_reads_ends_the_shim_and_its_server(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(ALLOW_ALL)
    env = {**os.environ, "THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    process = subprocess.Popen(
        shim(sample_server(), "-c", str(tmp_path / "c.yaml")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write(frame(call(1, "big", {"bytes": 3_000_000})) + b"\n")
    process.stdin.flush()
    process.wait(10)
    process.stdin.close()
    last = json.loads((tmp_path / "state" / "audit.jsonl").read_bytes().splitlines()[-1])
    assert (last["type"], last["run"]["status"]) == ("run_end", "CANCELLED")


def test_a_socket_as_standard_output_works_too(tmp_path: Path) -> None:
    """Node and Bun give their servers sockets, not pipes."""
    import socket

    ours, theirs = socket.socketpair()
    (tmp_path / "c.yaml").write_text(ALLOW_ALL)
    env = {**os.environ, "THOUGHTGATE_STATE_DIR": str(tmp_path / "state")}
    with ours, theirs:
        process = subprocess.Popen(
            shim(sample_server(), "-c", str(tmp_path / "c.yaml")),
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            env=env,
        )
        theirs.close()
        ours.settimeout(10)
        ours.sendall(frame(call(1, "big", {"bytes": 3_000_000})) + b"\n")
        data = bytearray()
        while not data.endswith(b"\n"):
            chunk = ours.recv(1 << 20)
            assert chunk, "the shim has ended"
            data += chunk
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(10) == 0
    assert len(json.loads(data)["result"]["content"][0]["text"]) == 3_000_000


FLOOD = """\
import sys
note = '{"jsonrpc":"2.0","method":"notifications/n","params":{"x":"' + 'y' * 100000 + '"}}\\n'
sys.stdin.readline()
for n in range(2000): sys.stdout.write(note)
"""


def test_a_server_that_floods_the_agent_does_not_bloat_the_shim(tmp_path: Path) -> None:
    """An agent that does not read holds the server back, not the shim's memory."""
    (tmp_path / "c.yaml").write_text(ALLOW_ALL)
    record = tmp_path / "state" / "audit.jsonl"
    env = {**os.environ, "THOUGHTGATE_STATE_DIR": str(record.parent)}
    process = subprocess.Popen(
        shim([sys.executable, "-c", FLOOD], "-c", str(tmp_path / "c.yaml")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/go"}\n')
        process.stdin.flush()
        wait_for(lambda: record.exists() and record.read_bytes().count(b"\n") > 100)
        source = process.stdout
        size = sum(len(within(lambda: source.read(1 << 20))) for _ in range(150))
        status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        peak_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        while chunk := within(lambda: source.read(1 << 20)):
            size += len(chunk)
    finally:
        process.stdin.close()
        process.kill()
        process.wait(10)
        process.stdout.close()
    assert size > 200_000_000
    assert peak_kb < 200_000
