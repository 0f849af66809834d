"""``serve`` on stdio, as a client sees it: real processes from end to end."""

import json
import signal
from pathlib import Path

import pytest
from tests.support.frames import call, initialize, notification, request
from tests.support.hub import Served, modern, sample, serving, write_config
from tests.support.waiting import wait_for


@pytest.mark.requirement("S002-01", "S002-02", "S002-13", "S002-14", "S002-17", "S002-20")
def test_the_handshake_and_a_ping_are_answered(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        result = hub.open()
        pong = hub.ask(request(1, "ping"))

    assert result["serverInfo"]["name"] == "thoughtgate"
    assert result["capabilities"]["tools"] == {"listChanged": True}
    assert pong["result"] == {}


@pytest.mark.requirement("S002-55", "S002-29", "S002-30")
def test_no_server_starts_before_it_is_needed_and_only_the_called_one_does(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample(), "two": sample()}) as hub:
        hub.open()
        before = hub.server("one")["status"]
        said = hub.text(2, "one.echo", {"text": "hi"})

        assert before == "stopped"
        assert said == "hi"
        assert hub.server("one")["status"] == "running"
        assert hub.server("two")["status"] == "stopped"


@pytest.mark.requirement("S002-15", "S002-16", "S002-23", "S002-24", "S002-26", "S002-22")
def test_tools_of_all_servers_are_listed_and_routed(tmp_path: Path) -> None:
    servers = {"one": sample("--tools", "echo,add", name="First"), "two": sample("--tools", "x.y")}
    with serving(tmp_path, servers) as hub:
        hub.open()
        tools = {tool["name"]: tool for tool in hub.tools()}

        assert list(tools)[:3] == ["one.echo", "one.add", "two.x.y"]
        assert tools["one.echo"]["description"] == "[First] Return the text it is given"
        assert tools["one.add"]["inputSchema"]["required"] == ["a", "b"]
        assert hub.text(3, "one.add", {"a": 2, "b": 3}) == "5"
        assert hub.text(4, "two.x.y", {"text": "dotted"}) == "dotted"


def test_the_separator_is_the_configs_to_choose(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--tools", "echo")}, separator="__") as hub:
        hub.open()
        names = [tool["name"] for tool in hub.tools()]

        assert names[0] == "one__echo"
        assert "thoughtgate__servers_list" in names
        assert hub.text(1, "one__echo", {"text": "a"}) == "a"


@pytest.mark.requirement("S002-11", "S002-12")
def test_content_length_is_answered_in_kind(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        for body in (initialize(0), request(1, "ping")):
            data = json.dumps(body).encode()
            hub.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
        hub.close_stdin()
        hub.wait()
        said = b"\n".join(hub.remaining_lines())

    assert said.count(b"Content-Length: ") == 2
    assert b'\r\n\r\n{"jsonrpc":"2.0","id":0' in said.replace(b"\r\n\r\n", b"\r\n\r\n")
    assert said.endswith(b'{"jsonrpc":"2.0","id":1,"result":{}}')


@pytest.mark.requirement("S002-60")
def test_a_slow_call_does_not_stop_another(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample(), "two": sample()}) as hub:
        hub.open()
        hub.names()
        hub.send(call(1, "one.slow", {"seconds": 1.0}))
        hub.send(call(2, "one.echo", {"text": "same server"}))
        hub.send(call(3, "two.echo", {"text": "other server"}))
        order = [hub.receive()["id"] for _ in range(3)]

    assert order[-1] == 1


@pytest.mark.requirement("S002-32")
def test_a_cancellation_reaches_the_server_and_nothing_is_answered(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(tmp_path, {"one": sample("--log", str(log))}) as hub:
        hub.open()
        hub.names()
        hub.send(call(1, "one.slow", {"seconds": 60}))
        wait_for(lambda: '"slow' in log.read_text().replace("\\", ""))
        hub.send(notification("notifications/cancelled", {"requestId": 1}))
        wait_for(lambda: "notifications/cancelled" in log.read_text())

        assert hub.text(2, "one.echo", {"text": "on"}) == "on"
        ends = [one for one in hub.records() if one["type"] == "tool_call_end"]
        assert ends[0]["status"] == "CANCELLED"


@pytest.mark.requirement("S002-31", "S002-42", "S002-43")
def test_a_call_without_an_answer_times_out_with_its_own_error(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--never-answer", "echo", timeout="1s")}) as hub:
        hub.open()
        error = hub.ask(call(1, "one.echo", {"text": "x"}))["error"]

        assert error["code"] == -32001
        assert error["data"]["kind"] == "tool_call_timeout"
        assert error["data"]["server"] == "one"
        assert error["data"]["tool"] == "one.echo"
        assert hub.text(2, "one.add", {"a": 1, "b": 1}) == "2"


@pytest.mark.requirement("S002-59", "S002-18", "S002-41")
@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"this is not JSON", -32700),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', -32601),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', -32602),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a.b","arguments":[]}}',
            -32602,
        ),
        (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"one.echo"}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"odd"}}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"loud"}}', -32602),
    ],
)
def test_malformed_input_is_answered_and_survived(tmp_path: Path, line: bytes, code: int) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()
        hub.write_line(line)
        answer = hub.receive()

        assert answer["error"]["code"] == code
        assert hub.ask(request("after", "ping"))["result"] == {}


def test_a_second_initialize_and_a_taken_id_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()
        again = hub.ask(initialize(5))
        hub.names()
        hub.send(call(6, "one.slow", {"seconds": 0.5}))
        taken = hub.ask(call(6, "one.echo", {"text": "x"}))

        assert again["error"]["code"] == -32600
        assert taken["error"]["data"]["check"] == "id_in_use"
        assert "slept" in hub.receive_answer(6)["result"]["content"][0]["text"]


@pytest.mark.requirement("S002-53")
def test_an_ambiguous_namespace_fails_initialize_and_names_the_choices(tmp_path: Path) -> None:
    spaces = {"work": ["one"], "home": ["two"]}
    with serving(tmp_path, {"one": sample(), "two": sample()}, namespaces=spaces) as hub:
        error = hub.ask(initialize(0))["error"]
        modern_error = hub.ask(modern(1, "server/discover"))["error"]

    assert error["code"] == -32600
    assert "work" in error["message"]
    assert "home" in error["message"]
    assert error["data"]["namespaces"] == ["work", "home"]
    assert modern_error["code"] == -32600


@pytest.mark.requirement("S002-04", "S002-15")
def test_a_namespace_shows_and_reaches_its_own_servers_only(tmp_path: Path) -> None:
    spaces = {"work": ["one"], "home": ["two"]}
    servers = {"one": sample("--tools", "echo"), "two": sample("--tools", "echo")}
    with serving(tmp_path, servers, "--namespace", "home", namespaces=spaces) as hub:
        hub.open()

        assert hub.names() == ["two.echo"]
        assert hub.kind(1, "one.echo", {"text": "x"}) == "not_exposed"
        assert hub.text(2, "two.echo", {"text": "x"}) == "x"


def test_an_unknown_namespace_ends_before_anything_starts(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"one": sample()}, namespaces={"work": ["one"]})
    with Served(config, tmp_path / "state", "--namespace", "nope") as hub:
        assert hub.wait() == 1
        assert hub.remaining_lines() == []

    assert "work" in hub.stderr


@pytest.mark.requirement("S002-09", "S002-50", "S002-52")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_cleanly_with_nothing_left(tmp_path: Path, number: signal.Signals) -> None:
    stubborn = sample("--ignore-eof", "--ignore-sigterm", "--spawn-grandchild")
    config = write_config(tmp_path / "c.yaml", {"one": stubborn, "two": sample()})
    with Served(config, tmp_path / "state") as hub:
        hub.open()
        hub.names()
        hub.signal(number)

        assert hub.wait() == 0
        hub.assert_nothing_left()
        assert hub.records()[-1]["type"] == "run_end"


@pytest.mark.requirement("S002-50")
def test_kill_9_leaves_no_server(tmp_path: Path) -> None:
    stubborn = sample("--ignore-eof", "--ignore-sigterm", "--spawn-grandchild")
    config = write_config(tmp_path / "c.yaml", {"one": stubborn, "two": sample()})
    with Served(config, tmp_path / "state") as hub:
        hub.open()
        hub.names()
        assert len(hub.descendants()) >= 3
        hub.signal(signal.SIGKILL)
        hub.wait()
        hub.assert_nothing_left()


@pytest.mark.requirement("S002-51", "S002-52")
def test_what_is_under_way_is_answered_after_the_client_has_closed_its_side(tmp_path: Path) -> None:
    config = write_config(tmp_path / "c.yaml", {"one": sample()})
    with Served(config, tmp_path / "state") as hub:
        hub.send(initialize(0))
        hub.send(call(1, "one.slow", {"seconds": 0.5}))
        hub.close_stdin()
        answers = [json.loads(line) for line in hub.remaining_lines()]

        assert [answer["id"] for answer in answers] == [0, 1]
        assert hub.wait() == 0
        hub.assert_nothing_left()
