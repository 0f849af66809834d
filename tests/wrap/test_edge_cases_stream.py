"""Edge cases of seed 000, part two: what flows between agent and server under ``wrap``.

One wrapped agent serves the tests that only talk; each looks at its own messages.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.wraps import Machine, WrappedAgent, kind_of, text_of

MAX_LINE = 10 * 1024 * 1024


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WrappedAgent]:
    machine = Machine(tmp_path_factory.mktemp("stream"))
    machine.write_sample("--log", str(machine.top / "reached"), "--stderr", "the server says hello")
    with machine.wrap() as wrapped:
        yield wrapped.open()
        assert wrapped.finish() == 0


def reached(run: WrappedAgent) -> list[str]:
    entries = (run.machine.top / "reached").read_text("utf-8").splitlines()
    return [json.loads(one)["line"] for one in entries]


def refused(run: WrappedAgent, text: str, ident: int | None = None) -> dict[str, Any]:
    sent = run.order("raw", text=text)["said"]
    answer: dict[str, Any] = run.order("wait", id=sent if ident == 0 else None)["said"]
    return answer


@pytest.mark.requirement("EC-STDIO-014")
def test_ec_stdio_014_a_message_over_the_limit_is_refused_and_the_next_one_passes(
    run: WrappedAgent,
) -> None:
    answer = run.call("echo", {"text": "x" * MAX_LINE})

    assert answer["error"]["data"]["check"] == "too_large"
    assert text_of(run.call("echo", {"text": "small"})) == "small"
    assert not any(len(line) > MAX_LINE for line in reached(run))


@pytest.mark.requirement("EC-STDIO-015")
def test_ec_stdio_015_malformed_json_is_refused_and_reading_goes_on(run: WrappedAgent) -> None:
    answer = refused(run, '{"jsonrpc":"2.0",,}')

    assert answer["error"]["code"] == -32700
    assert text_of(run.call("echo", {"text": "on"})) == "on"
    assert not any(",,}" in line for line in reached(run))


@pytest.mark.requirement("EC-STDIO-016")
def test_ec_stdio_016_a_message_without_a_version_is_refused(run: WrappedAgent) -> None:
    answer = refused(run, '{"id":ID,"method":"ping","mark":"ec016"}', 0)

    assert (answer["error"]["code"], answer["error"]["data"]["check"]) == (
        -32600,
        "missing_version",
    )
    assert text_of(run.call("echo", {"text": "on"})) == "on"
    assert not any("ec016" in line for line in reached(run))


@pytest.mark.requirement("EC-STDIO-017")
def test_ec_stdio_017_a_message_that_is_neither_request_nor_response_is_dropped(
    run: WrappedAgent,
) -> None:
    run.order("raw", text='{"jsonrpc":"2.0","mark":"ec017"}')

    assert text_of(run.call("echo", {"text": "on"})) == "on"
    assert not any("ec017" in line for line in reached(run))


@pytest.mark.requirement("EC-STDIO-018")
def test_ec_stdio_018_a_frame_with_a_second_reading_does_not_reach_the_server(
    run: WrappedAgent,
) -> None:
    hidden = '{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"ec018"}}'
    answer = refused(run, '{"jsonrpc":"2.0","id":ID,"method":"ping","a":"' + "\r" + hidden + '"}')

    assert "error" in answer
    assert text_of(run.call("echo", {"text": "on"})) == "on"
    assert not any("ec018" in line for line in reached(run))


@pytest.mark.requirement("EC-STDIO-019")
def test_ec_stdio_019_a_request_of_the_server_reaches_the_agent_and_its_answer_comes_back(
    run: WrappedAgent,
) -> None:
    answer = run.call("sample", {"prompt": "hello"})

    assert "as the script says" in text_of(answer)


@pytest.mark.requirement("EC-STDIO-020")
def test_ec_stdio_020_a_changed_tool_list_is_announced(run: WrappedAgent) -> None:
    run.call("grow", {"name": "ec020"})

    methods = [one["method"] for one in run.order("notifications")["said"]]
    assert "notifications/tools/list_changed" in methods


@pytest.mark.requirement("EC-STDIO-027")
def test_ec_stdio_027_a_partial_line_is_kept_until_its_end_comes(tmp_path: Path) -> None:
    slow = (
        "import sys, json, time\n"
        "for line in sys.stdin:\n"
        "    ask = json.loads(line)\n"
        "    if 'id' not in ask: continue\n"
        "    text = json.dumps({'jsonrpc': '2.0', 'id': ask['id'], 'result': {'whole': True}})\n"
        "    for part in (text[:7], text[7:], '\\n'):\n"
        "        sys.stdout.write(part); sys.stdout.flush(); time.sleep(0.05)\n"
    )
    machine = Machine(tmp_path)
    machine.write_config({"sample": {"command": sys.executable, "args": ["-c", slow]}})
    with machine.wrap() as run:
        run.open()
        assert run.order("ask", method="ping")["said"]["result"] == {"whole": True}
        assert run.finish() == 0


@pytest.mark.requirement("EC-STDIO-028")
def test_ec_stdio_028_what_the_server_says_on_stderr_reaches_the_terminal(
    run: WrappedAgent,
) -> None:
    run.peer.wait_for_stderr("the server says hello")


@pytest.mark.requirement("EC-STDIO-030")
def test_ec_stdio_030_versions_are_negotiated_by_the_two_ends_alone(run: WrappedAgent) -> None:
    params = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": {"name": "x"}}
    answer = run.order("ask", method="initialize", params=params)["said"]

    assert answer["result"]["protocolVersion"] == "2025-11-25"
    assert any('"1999-01-01"' in line for line in reached(run))


@pytest.mark.requirement("EC-STDIO-032")
def test_ec_stdio_032_a_large_result_passes_whole(run: WrappedAgent) -> None:
    assert len(text_of(run.call("big", {"bytes": 5 * 1024 * 1024}))) == 5 * 1024 * 1024


@pytest.mark.requirement("EC-STDIO-035")
def test_ec_stdio_035_a_batch_is_refused(run: WrappedAgent) -> None:
    answer = refused(run, '[{"jsonrpc":"2.0","id":ID,"method":"ping","mark":"ec035"}]')

    assert answer["error"]["code"] == -32600
    assert text_of(run.call("echo", {"text": "on"})) == "on"
    assert not any("ec035" in line for line in reached(run))


@pytest.mark.requirement("EC-STDIO-015", "EC-STDIO-016", "EC-STDIO-017", "EC-STDIO-018")
def test_refused_frames_are_on_the_services_record(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        for text in (
            "{",
            '{"id":1}',
            '{"jsonrpc":"2.0"}',
            '{"jsonrpc":"2.0","method":"a\r"}',
            "[]",
        ):
            run.order("raw", text=text)
        assert run.finish() == 0

    checks = [one["frame"]["check"] for one in machine.events("frame_refused")]
    assert checks == ["malformed_json", "missing_version", "unclassifiable", "raw_cr", "batch"]
    assert machine.events()[-1]["run"]["summary"]["frames_refused"] == len(checks)


@pytest.mark.requirement("EC-STDIO-017", "EC-STDIO-018", "EC-STDIO-033", "S000-F-023", "S000-F-024")
def test_ec_stdio_017_018_033_development_forwards_says_so_and_records_it(tmp_path: Path) -> None:
    policy = "schema: 1\ndefault: policy\ncedar: {policies: [deny.cedar]}\n"
    machine = Machine(tmp_path, policy)
    (tmp_path / "deny.cedar").write_text("forbid(principal, action, resource);", "utf-8")
    machine.write_sample("--log", str(tmp_path / "reached"))
    with machine.wrap("--profile", "development") as run:
        run.open()
        run.order("raw", text='{"jsonrpc":"2.0","mark":"dropped"}')
        run.order("raw", text='{"jsonrpc":"2.0","method":"x/rejected","a":"b"' + "\r}")
        assert text_of(run.call("echo", {"text": "forwarded"})) == "forwarded"
        assert run.finish() == 0

        lines = "\n".join(reached(run))
        assert '"dropped"' in lines
        assert "x/rejected" in lines
        for word in ("WOULD_DROP", "WOULD_REJECT", "WOULD_BLOCK: 'echo', cedar gate"):
            assert word in run.stderr
    decision = machine.events("tool_call_decision")[0]["decision"]
    assert (decision["action"], decision["outcome"], decision["enforced"]) == (
        "BLOCK",
        "WOULD_BLOCK",
        False,
    )
    assert {one["profile"] for one in machine.events()} == {"development"}
    assert [one["frame"]["outcome"] for one in machine.events("frame_refused")] == [
        "WOULD_DROP",
        "WOULD_REJECT",
    ]


def test_kinds_of_refusal_are_the_same_as_without_a_service(tmp_path: Path) -> None:
    policy = (
        "schema: 1\ndefault: deny\n"
        "servers: {sample: {expose: {block: [env]}}}\n"
        "rules: [{tool: echo, action: forward}]\n"
        "limits: [{tool: echo, budget: 1}]\n"
    )
    machine = Machine(tmp_path, policy)
    machine.write_sample()
    with machine.wrap() as run:
        run.open()
        tools = run.order("ask", method="tools/list")["said"]["result"]["tools"]
        assert "env" not in [tool["name"] for tool in tools]
        assert text_of(run.call("echo", {"text": "1"})) == "1"
        assert kind_of(run.call("echo", {"text": "2"})) == "budget"
        assert kind_of(run.call("env")) == "not_exposed"
        assert kind_of(run.call("add")) == "governance_denied"
        assert run.finish() == 0
    assert "4 calls, 3 refused, 0 held" in run.stderr
    machine.assert_record_is_sound()
