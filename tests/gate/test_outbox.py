"""The record before the bytes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.drivers import Listener, Workbench
from tests.support.frames import call, line
from tests.support.http_gate import Gate, call_of, config_for
from tests.support.http_upstream import HttpUpstream, Received, Reply, text_result
from tests.support.session_play import to_server
from tests.support.shim_bench import Ledger, NobodyThere

from thoughtgate.core.commands import ToServer
from thoughtgate.core.envelope import Run
from thoughtgate.core.events import AgentSent
from thoughtgate.core.judge import Judge
from thoughtgate.errors import RecordError
from thoughtgate.gate.governor import Governor
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.outbox import Outbox
from thoughtgate.policy.call import FORWARD
from thoughtgate.policy.policy import Policy
from thoughtgate.record.writer import RecordWriter


def _script(received: Received) -> Reply:
    return text_result(received, "done")


def test_a_call_that_cannot_be_recorded_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HttpUpstream(_script) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        assert gate.call("echo").status == 200
        upstream.received.clear()

        def fail(self: RecordWriter, records: object) -> None:
            raise RecordError("the disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(RecordWriter, "write", fail)
            answer = gate.call("echo", ident=2)
            assert answer.error["code"] == -32013
            assert "disk" not in answer.body.decode()
            assert gate.post([call_of("echo", ident=3)]).json[0]["error"]["code"] == -32013
        assert upstream.received == []
        assert gate.call("echo", ident=4).json["result"]


def test_the_record_stands_before_the_call_arrives(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def script(received: Received) -> Reply:
        seen.append([one["type"] for one in gate.records() if "call" in one])
        return text_result(received, "x")

    with HttpUpstream(script) as upstream, Gate(tmp_path, config_for(upstream.url)) as gate:
        gate.call("echo")
    assert seen == [["tool_call_start", "tool_call_decision"]]


class _Turn:
    """A turn of a loop, and in which order things happen in it."""

    def __init__(self) -> None:
        self.happened: list[object] = []
        self.scheduled: list[Callable[[], None]] = []
        self.outbox = Outbox(self._write, self.scheduled.append)

    def _write(self) -> bool:
        self.happened.append("record")
        return True

    def end(self) -> None:
        """Call what was to be called soon."""
        scheduled, self.scheduled[:] = list(self.scheduled), []
        for flush in scheduled:
            flush()


def test_everything_that_one_turn_brings_is_recorded_once_and_sent_in_order() -> None:
    turn = _Turn()
    turn.outbox.later(turn.happened.append, 1)
    turn.outbox.later(turn.happened.append, 2)
    turn.outbox.schedule()
    assert (turn.happened, len(turn.scheduled)) == ([], 1)
    turn.end()

    assert turn.happened == ["record", 1, 2]
    assert turn.outbox.is_empty
    assert turn.scheduled == []


def test_with_nothing_to_send_the_record_is_written_all_the_same() -> None:
    turn = _Turn()
    turn.outbox.schedule()
    turn.outbox.schedule()
    assert turn.outbox.is_empty
    assert len(turn.scheduled) == 1
    turn.end()

    assert turn.happened == ["record"]


def test_what_is_put_in_during_a_flush_waits_for_the_next() -> None:
    turn = _Turn()
    turn.outbox.later(lambda: turn.outbox.later(turn.happened.append, "late"))
    turn.end()
    assert turn.happened == ["record"]
    assert not turn.outbox.is_empty
    turn.end()

    assert turn.happened == ["record", "record", "late"]


def test_one_that_fails_takes_no_other_with_it() -> None:
    turn = _Turn()

    def fail() -> None:
        raise ValueError("one agent's trouble")

    turn.outbox.later(turn.happened.append, 1)
    turn.outbox.later(fail)
    turn.outbox.later(turn.happened.append, 2)
    with pytest.raises(ValueError, match="trouble"):
        turn.end()
    turn.end()

    assert turn.happened == ["record", 1, "record", 2]


class _Bench:
    """One session whose record can break."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        policy = Policy(default=FORWARD)
        governor = Governor(Judge(policy, "run"), self.ledger, Run("run"), approvals=NobodyThere())
        self.workbench = Workbench(LocalAuthority(governor))
        self.driver = self.workbench.driver()
        self.outbox = self.workbench.outbox


def test_only_frames_for_the_server_count_as_carried() -> None:
    bench = _Bench()
    agent, other = Listener(), Listener()
    bench.driver.feed(AgentSent(line(call(1, "x")), 1.0), agent)
    bench.outbox.later(other.withdrawn)

    assert bench.outbox.carries(agent)
    assert not bench.outbox.carries(other)
    bench.outbox.flush()
    assert not bench.outbox.carries(agent)
    assert [frame.key for frame in agent.forwarded] == [1]


def test_without_a_record_no_frame_leaves_and_each_caller_is_told() -> None:
    bench = _Bench()
    ann, bob = Listener(), Listener()
    told: list[str] = []
    bench.driver.feed(AgentSent(line(call(1, "x")), 1.0), ann)
    bench.outbox.later(told.append, "an answer")
    bench.driver.feed(AgentSent(line(call(2, "x")), 1.0), bob)
    bench.ledger.broken = True
    bench.outbox.flush()

    assert (ann.forwarded, bob.forwarded) == ([], [])
    assert [(one.key, one.error) for one in ann.taken] == [(1, "service_unavailable")]
    assert [(one.key, one.error) for one in bob.taken] == [(2, "service_unavailable")]
    assert told == ["an answer"]
    bench.ledger.broken = False
    bench.outbox.flush()
    assert (ann.forwarded, bob.forwarded) == ([], [])


def test_without_a_record_a_frame_that_nobody_waits_for_is_dropped_in_silence() -> None:
    bench = _Bench()
    agent = Listener()
    notice: ToServer = to_server(line({"jsonrpc": "2.0", "method": "notifications/x"}))
    bench.outbox.send(bench.driver, agent, notice)
    bench.driver.feed(AgentSent(line(call(1, "x")), 1.0), agent)
    bench.ledger.broken = True
    bench.outbox.flush()

    assert agent.forwarded == []
    assert [one.key for one in agent.taken] == [1]
