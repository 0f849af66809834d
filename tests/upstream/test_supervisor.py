"""Servers that crash, hang, flood and lie behind a real ``serve``: the others go on working."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.frames import call, request
from tests.support.hub import odd, sample, serving
from tests.support.waiting import wait_for

GOOD = {"good": sample("--tools", "echo")}


@pytest.mark.requirement("S002-58", "S002-44", "S002-42")
@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"command": "/nonexistent/server"}, "server_start_failed"),
        (odd("exit"), "server_start_failed"),
        (odd("silent", start_timeout="1s"), "server_start_failed"),
        (odd("flood", timeout="2s"), ""),
        (odd("nolist"), "service_unavailable"),
        (odd("deaf", timeout="1s"), "service_unavailable"),
        (odd("endless", timeout="2s"), ""),
    ],
)
def test_one_broken_server_leaves_the_others_working(
    tmp_path: Path, entry: dict[str, Any], kind: str
) -> None:
    with serving(tmp_path, {"bad": entry, **GOOD}) as hub:
        hub.open()

        assert "good.echo" in hub.names()
        assert hub.text(2, "good.echo", {"text": "fine"}) == "fine"
        answer = hub.ask(call(3, "bad.work"))
        if kind:
            assert answer["error"]["data"]["kind"] == kind
            assert answer["error"]["data"]["server"] == "bad"
        assert hub.text(4, "good.echo", {"text": "still"}) == "still"


@pytest.mark.requirement("S002-43")
def test_a_failed_start_says_why_in_the_error_the_status_and_the_log(tmp_path: Path) -> None:
    with serving(tmp_path, {"bad": odd("exit")}) as hub:
        hub.open()
        error = hub.ask(call(1, "bad.work"))["error"]

        assert error["code"] == -32000
        assert "code 3" in error["data"]["reason"]
        assert "code 3" in hub.server("bad")["reason"]
        assert "cannot find my token" in hub.text(
            9, "thoughtgate.server_logs", {"server_id": "bad"}
        )


def test_two_tools_of_one_name_are_one_and_are_warned_of(tmp_path: Path) -> None:
    with serving(tmp_path, {"bad": odd("twice")}) as hub:
        hub.open()

        assert hub.names() == ["bad.work"]
        assert any("listed twice" in text for text in hub.server("bad")["warnings"])
        assert hub.text(1, "bad.work") == "worked"


@pytest.mark.long
def test_a_flood_of_tools_is_listed_as_far_as_it_goes(tmp_path: Path) -> None:
    servers = {"many": sample("--tools", "echo", "--count", "10000"), **GOOD}
    with serving(tmp_path, servers) as hub:
        hub.open()
        names = hub.names()

        assert len(names) == 10_001
        assert any("10000" in text for text in hub.server("many")["warnings"])
        assert hub.text(1, "good.echo", {"text": "x"}) == "x"
        assert hub.text(2, "many.tool_09999", {"text": "y"}) == "y"


def test_what_a_server_prints_besides_is_dropped_and_recorded(tmp_path: Path) -> None:
    with serving(tmp_path, {"noisy": sample("--garbage")}) as hub:
        hub.open()

        assert hub.text(1, "noisy.echo", {"text": "x"}) == "x"
        refused = [one for one in hub.records() if one["type"] == "frame_refused"]
        assert refused
        assert refused[0]["server_name"] == "noisy"


@pytest.mark.requirement("S002-27", "S002-44")
def test_a_crashed_server_is_restarted_and_its_tools_are_listed_anew(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--crash-on", "fail")}) as hub:
        hub.open()
        before = hub.names(1)
        first = hub.server("one", 2)["pid"]
        crash = hub.ask(call(3, "one.fail"))
        after = hub.text(4, "one.echo", {"text": "back"})

        assert crash["error"]["data"]["kind"] == "upstream_connection_failed"
        assert crash["error"]["code"] == -32000
        assert after == "back"
        assert hub.server("one", 5)["pid"] != first
        assert hub.names(6) == before


def test_a_killed_server_comes_back_by_itself(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample()}) as hub:
        hub.open()
        hub.names()
        pid = hub.server("one", 1)["pid"]
        os.kill(pid, signal.SIGKILL)

        def back() -> bool:
            now = hub.server("one", time.monotonic_ns())
            return bool(now["status"] == "running" and now["pid"] != pid)

        wait_for(back)
        exits = [one for one in hub.records() if one["type"] == "server_exited"]
        assert "signal 9" in exits[0]["server"]["reason"]


def test_a_server_that_only_floods_is_given_up(tmp_path: Path) -> None:
    with serving(tmp_path, {"bad": odd("deluge"), **GOOD}) as hub:
        hub.open()
        hub.text(1, "thoughtgate.servers_start", {"server_id": "bad"})

        def given_up() -> bool:
            return "floods" in str(hub.server("bad", time.monotonic_ns()).get("reason"))

        wait_for(given_up)
        assert hub.text(2, "good.echo", {"text": "fine"}) == "fine"


def test_a_server_is_not_idle_while_it_works(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample(idle="200ms")}) as hub:
        hub.open()

        assert "slept" in hub.text(1, "one.slow", {"seconds": 1.2})


def test_an_idle_server_is_stopped_and_started_again_by_a_call(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": sample("--tools", "echo", idle="200ms")}) as hub:
        hub.open()
        hub.text(1, "one.echo", {"text": "x"})
        wait_for(lambda: hub.server("one", time.monotonic_ns())["status"] == "stopped")

        assert hub.names(2) == ["one.echo"]
        assert hub.text(3, "one.echo", {"text": "again"}) == "again"


@pytest.mark.requirement("S002-57")
def test_discovered_tools_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(tmp_path, {"one": sample("--log", str(log))}) as hub:
        hub.open()
        hub.names(1)
        hub.names(2)
        hub.names(3)

        assert log.read_text().count("tools/list") == 1


def test_a_changed_list_is_announced_and_fetched_anew(tmp_path: Path) -> None:
    for era in ("legacy", "modern"):
        folder = tmp_path / era
        folder.mkdir()
        with serving(folder, {"one": sample("--era", era)}) as hub:
            hub.open()
            assert "one.extra" not in hub.names(1)
            hub.send(call(2, "one.grow", {"name": "extra"}))
            seen = [hub.receive(), hub.receive()]

            assert {"notifications/tools/list_changed"} == {
                one["method"] for one in seen if "method" in one
            }
            assert "one.extra" in hub.names(3)


def test_a_changed_list_that_was_refused_is_fetched_with_the_next_request(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": odd("late")}) as hub:
        hub.open()
        assert hub.names(1) == ["one.work"]
        assert hub.text(2, "one.work") == "worked"
        wait_for(lambda: hub.names(3) == ["one.work", "one.more"])


@pytest.mark.requirement("S002-56")
def test_a_slow_server_joins_the_list_later_and_the_client_is_told(tmp_path: Path) -> None:
    slow = sample("--start-delay", "6", start_timeout="30s")
    with serving(tmp_path, {"slow": slow, **GOOD}) as hub:
        hub.open()
        hub.send(request(1, "tools/list"))
        first = hub.receive_answer(1, 15)

        def told() -> bool:
            body = hub.receive(15)
            return bool(body.get("method") == "notifications/tools/list_changed")

        assert first["result"]["tools"][0]["name"] == "good.echo"
        assert told()
        assert any(name.startswith("slow.") for name in hub.names(2))


@pytest.mark.requirement("S002-07")
def test_eager_servers_start_at_once(tmp_path: Path) -> None:
    servers = {"one": sample(eager=True), "two": sample()}
    with serving(tmp_path, servers) as hub:
        hub.open()
        wait_for(lambda: hub.server("one", time.monotonic_ns())["status"] == "running")
        assert hub.server("two", 1)["status"] == "stopped"
    other = tmp_path / "all"
    other.mkdir()
    with serving(other, servers, "--eager") as hub:
        wait_for(lambda: hub.server("two", time.monotonic_ns())["status"] == "running")
