"""The records of three gates with a store in PostgreSQL: real processes, one ledger."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import pytest
from tests.support.audit_cli import Done, command
from tests.support.postgres import PostgresServer
from tests.support.proxy_process import environment, sample_server
from tests.support.shared_ledgers import stored_bytes
from tests.support.waiting import PATIENCE_S, read_line, wait_for

from thoughtgate.record.shared_ledger import shared_ledger
from thoughtgate.stores.open_database import StoreLocation


class Shim:
    """A standalone shim with a state directory of its own."""

    def __init__(self, directory: Path, config: Path, **environ: str) -> None:
        self.directory = directory
        directory.mkdir(exist_ok=True)
        self.record = directory / "state" / "audit.jsonl"
        self._next = 0
        shim = [sys.executable, "-m", "thoughtgate.cli.entry", "shim", "--server-id", "one"]
        self.process = subprocess.Popen(
            [
                *shim,
                "-c",
                str(config),
                "--state-dir",
                str(directory / "state"),
                "--",
                *sample_server(),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(directory, environ),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def send(self, text: str) -> None:
        """Send a call without waiting for its answer."""
        self._next += 1
        params = {"name": "echo", "arguments": {"text": text}}
        body = {"jsonrpc": "2.0", "id": self._next, "method": "tools/call", "params": params}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(body).encode() + b"\n")
        self.process.stdin.flush()

    def call(self, text: str) -> dict[str, Any]:
        """Make a call and return the answer."""
        self.send(text)
        answer: dict[str, Any] = json.loads(read_line(self.process.stdout))
        return answer

    def kill(self) -> None:
        """Kill it, so that it cannot do anything more."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def stop(self) -> None:
        """Close its input and wait."""
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()
        self.process.wait(PATIENCE_S)


@pytest.fixture
def location(postgres: PostgresServer, tmp_path: Path) -> StoreLocation:
    return StoreLocation(tmp_path, postgres.url())


@pytest.fixture
def config(location: StoreLocation, tmp_path: Path) -> Path:
    path = tmp_path / "thoughtgate.yaml"
    path.write_text(f"schema: 1\ndefault: forward\nstore: {json.dumps(location.url)}\n")
    return path


@pytest.fixture
def records(config: Path, tmp_path: Path, location: StoreLocation) -> list[Path]:
    """Return the records of three gates that made calls and ended."""
    with ExitStack() as stack:
        gates = [stack.enter_context(Shim(tmp_path / name, config)) for name in "abc"]
        for gate in gates:
            for number in range(3):
                assert "result" in gate.call(f"{gate.directory.name}{number}")
    found = [gate.record for gate in gates]
    with shared_ledger(location) as ledger:
        assert [stored_bytes(ledger, one) for one in found] == [one.read_bytes() for one in found]
    return found


@pytest.fixture
def run(
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., Done]:
    """Return a function that runs a command with the state directory of the first gate."""
    monkeypatch.setenv("THOUGHTGATE_STATE_DIR", str(tmp_path / "a" / "state"))
    return lambda *words: command(capsys, *words, "-c", str(config))


def faults(done: Done) -> set[tuple[str, str]]:
    """Return the gates with faults in the ledger's part of a verification, and their kinds."""
    return {
        (Path(writer["path"]).parent.parent.name, finding["kind"])
        for writer in done.json["writers"]
        for finding in writer["findings"]
        if finding["fault"]
    }


@pytest.mark.usefixtures("records")
def test_every_command_sees_the_calls_of_all_gates(run: Any) -> None:
    wanted = {f"{gate}{number}" for gate in "abc" for number in range(3)}
    found = run("audit", "query", "--json").json
    assert {json.loads(call["preview"])["text"] for call in found} == wanted
    assert [call["preview"] for call in run("audit", "query", "--text", "b2", "--json").json] == [
        '{"text":"b2"}'
    ]
    shown = run("audit", "show", found[0]["call_id"], "--json").json
    assert shown[0]["preview"] == found[0]["preview"]
    assert run("audit", "stats", "--json").json["calls"] == 9
    tail = run("audit", "tail", "-n", "100", "--type", "tool_call_end", "--json")
    assert len(tail.out.splitlines()) == 9
    exported = run("audit", "export").out.splitlines()
    assert sum(json.loads(line)["type"] == "run_start" for line in exported) == 3
    assert len(run("audit", "export", "--format", "csv").out.splitlines()) == 10
    flat = [
        json.loads(line) for line in run("audit", "export", "--format", "flat").out.splitlines()
    ]
    assert sum(event["event"] == "tool_call" for event in flat) == 9


@pytest.mark.usefixtures("records")
def test_calls_of_all_gates_are_replayed(
    config: Path, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidate = tmp_path / "candidate.yaml"
    candidate.write_text("schema: 1\ndefault: deny\n")
    monkeypatch.setenv("THOUGHTGATE_CONFIG", str(config))
    del run
    from thoughtgate.cli.policy.replay import recorded_calls

    assert len(list(recorded_calls(None, "", ""))) == 9


def test_untouched_records_are_sound(records: list[Path], run: Any) -> None:
    done = run("audit", "verify", "--json")
    assert (done.code, done.json["sound"]) == (0, True), done.out
    assert {writer["path"] for writer in done.json["writers"]} == {str(one) for one in records}
    assert "3 records of all gates: sound" in run("audit", "verify").out


def _edit(records: list[Path]) -> None:
    data = records[1].read_bytes()
    records[1].write_bytes(data.replace(b'"b1', b'"x1', 1))


def _cut(records: list[Path]) -> None:
    lines = records[1].read_bytes().splitlines(keepends=True)
    records[1].write_bytes(b"".join(lines[:-3]))


def _remove(records: list[Path]) -> None:
    records[1].unlink()


def _swap(records: list[Path]) -> None:
    one, other = records[1].read_bytes(), records[2].read_bytes()
    records[1].write_bytes(other)
    records[2].write_bytes(one)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (_edit, {("b", "edited")}),
        (_cut, {("b", "missing")}),
        (_remove, {("b", "removed")}),
        (_swap, {("b", "replaced"), ("c", "replaced")}),
    ],
)
def test_what_was_done_to_a_file_of_another_gate_is_named(
    records: list[Path], run: Any, change: Any, found: set[tuple[str, str]]
) -> None:
    change(records)
    done = run("audit", "verify", "--json")

    assert (done.code, faults(done)) == (1, found)


def test_a_copied_state_directory_is_named(
    records: list[Path], run: Any, config: Path, tmp_path: Path
) -> None:
    import shutil

    shutil.copytree(records[1].parent, tmp_path / "copy" / "state")
    for name in ("b", "copy"):
        with Shim(tmp_path / name, config) as gate:
            gate.call("more")
    done = run("audit", "verify", "--json")

    assert done.code == 1
    assert "forked" in {kind for _, kind in faults(done)}


def test_gates_that_share_a_run_id_make_calls_with_ids_of_their_own(
    config: Path, run: Any, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        gates = [
            stack.enter_context(Shim(tmp_path / name, config, SUB_RUN_ID="run-77")) for name in "ab"
        ]
        for gate in gates:
            gate.call("x")
    found = run("audit", "query", "--json").json

    assert {call["run_id"] for call in found} == {"run-77"}
    assert len({call["call_id"] for call in found}) == len(found) == 2


def _wait_until_copied(location: StoreLocation, record: Path, size: int) -> None:
    """Wait until some of what follows a position is copied."""
    with shared_ledger(location) as ledger:
        wait_for(lambda: len(stored_bytes(ledger, record)) > size)


@pytest.mark.long
def test_a_kill_in_the_middle_of_copying_loses_and_repeats_nothing(
    config: Path, run: Any, tmp_path: Path, location: StoreLocation
) -> None:
    """Kill a gate again and again at different moments, under load, and start it again."""
    for life in range(5):
        with Shim(tmp_path / "a", config) as gate:
            gate.call("first")
            size = gate.record.stat().st_size
            for number in range(150 * (life + 1)):
                gate.send(f"{life}.{number}")
            _wait_until_copied(location, gate.record, size)
            gate.kill()
    with Shim(tmp_path / "a", config) as gate:
        gate.call("last")
    with shared_ledger(location) as ledger:
        stored = stored_bytes(ledger, gate.record)
    assert stored == gate.record.read_bytes()
    starts = [line for line in stored.splitlines() if b'"type":"tool_call_start"' in line]
    assert len(run("audit", "query", "--limit", "0", "--json").json) == len(starts)
    assert run("audit", "verify").code == 0


def test_a_line_is_in_the_ledger_without_anything_that_follows_it(
    config: Path, tmp_path: Path, location: StoreLocation
) -> None:
    """A kill loses only what was written since the last look at the file, if the disk is lost."""
    with Shim(tmp_path / "a", config) as gate:
        gate.call("x")
        with shared_ledger(location) as ledger:
            wait_for(lambda: b'"tool_call_end"' in stored_bytes(ledger, gate.record))
        gate.kill()


@pytest.mark.long
def test_a_database_that_was_stopped_gets_everything_afterwards(tmp_path: Path) -> None:
    server = PostgresServer("fsync=on")
    try:
        server.start()
        location = StoreLocation(tmp_path, server.url("gates"))
        config = tmp_path / "c.yaml"
        config.write_text(f"schema: 1\ndefault: forward\nstore: {json.dumps(location.url)}\n")
        with ExitStack() as stack:
            gates = [stack.enter_context(Shim(tmp_path / name, config)) for name in "abc"]
            for gate in gates:
                gate.call("before")
            server.stop(signal.SIGQUIT)
            for gate in gates:
                assert "result" in gate.call("while it is away")
            server.start()
            for gate in gates:
                gate.call("after")
            with shared_ledger(location) as ledger:
                for gate in gates:
                    wait_for(
                        lambda gate=gate: (
                            stored_bytes(ledger, gate.record)  # type: ignore[misc]
                            == gate.record.read_bytes()
                        )
                    )
    finally:
        server.remove()
