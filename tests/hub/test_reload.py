"""A config read again while the hub runs: only what changed restarts."""

import signal
import time
from pathlib import Path
from typing import Any

from tests.support.hub import Served, sample, serving, write_config
from tests.support.waiting import wait_for

ONE: dict[str, Any] = sample("--tools", "echo")


def pids(hub: Served) -> dict[str, Any]:
    number = time.monotonic_ns()
    return {
        ident: hub.server(ident, number + at).get("pid") for at, ident in enumerate(("one", "two"))
    }


def test_a_changed_file_is_taken_over_and_unchanged_servers_go_on(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": ONE, "two": sample("--tools", "echo")}) as hub:
        hub.open()
        assert hub.names(1) == ["one.echo", "two.echo"]
        before = pids(hub)
        write_config(hub.config, {"one": ONE, "two": sample("--tools", "add")})
        wait_for(lambda: hub.names(time.monotonic_ns()) == ["one.echo", "two.add"])

        after = pids(hub)
        assert after["one"] == before["one"]
        assert after["two"] != before["two"]


def test_a_hangup_signal_reads_the_file_again(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": ONE}, reload=False) as hub:
        hub.open()
        hub.names(1)
        write_config(hub.config, {"two": ONE}, reload=False)
        hub.signal(signal.SIGHUP)
        wait_for(lambda: hub.names(time.monotonic_ns()) == ["two.echo"])

        assert hub.kind(2, "one.echo", {"text": "x"}) == "not_exposed"


def test_a_bad_file_changes_nothing_and_says_so(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": ONE}) as hub:
        hub.open()
        hub.names(1)
        hub.config.write_text("schema: 1\ndefault: sometimes\n", "utf-8")
        hub.wait_for_stderr("config not taken over")

        assert "default" in hub.stderr
        assert hub.text(2, "one.echo", {"text": "x"}) == "x"
        hub.config.unlink()
        write_config(hub.config, {"one": ONE}, rules=[{"tool": "echo", "action": "deny"}])
        wait_for(lambda: "the rules changed" in hub.stderr)
        assert hub.kind(3, "one.echo", {"text": "x"}) == "governance_denied"
        kinds = [one["type"] for one in hub.records()]
        assert kinds.count("policy_changed") == 1


def test_what_only_policy_reads_restarts_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": ONE}) as hub:
        hub.open()
        hub.names(1)
        pid = hub.server("one", 2)["pid"]
        changed = {**ONE, "name": "Renamed", "timeout": "5s", "expose": {"block": ["nothing"]}}
        write_config(hub.config, {"one": changed})
        wait_for(lambda: "[Renamed]" in hub.tools(time.monotonic_ns())[0]["description"])

        assert hub.server("one", 3)["pid"] == pid


def test_a_file_that_is_replaced_by_rename_is_noticed(tmp_path: Path) -> None:
    with serving(tmp_path, {"one": ONE}) as hub:
        hub.open()
        hub.names(1)
        other = write_config(tmp_path / "new.yaml", {"two": ONE})
        other.replace(hub.config)
        wait_for(lambda: hub.names(time.monotonic_ns()) == ["two.echo"])
