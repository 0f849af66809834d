"""The events of a shim that wait for the governance service: none is dropped, and none is too many."""

import json
import socket
import subprocess
import sys

import pytest
from tests.support.raw_service import RawService, reply

from thoughtgate.core.record_events import message_seen
from thoughtgate.gate.poll_loop import READ
from thoughtgate.shim import event_queue
from thoughtgate.shim.event_queue import EventQueue

SEEN = message_seen(0.0, "files", "s", "agent_to_server", "request", "ping", 10)


def test_a_full_queue_says_so_and_keeps_every_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_queue, "MAX_QUEUED", 2)
    queue = EventQueue()
    told = []
    for _ in range(3):
        told.append(queue.is_full)
        queue.put(SEEN)
    assert told == [False, False, True]
    assert queue.take(at_once=True) == [SEEN] * 3
    assert not queue.is_full


_FLOODED = """
import sys
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.gate.poll_loop import PollLoop
from thoughtgate.gate.run_file import RunFile
from thoughtgate.shim import event_queue
from thoughtgate.shim.service_authority import ServiceAuthority

longest = 0
put = event_queue.EventQueue.put

def counted(queue, record):
    global longest
    put(queue, record)
    longest = max(longest, len(queue))

event_queue.EventQueue.put = counted
event_queue.MAX_QUEUED = 1000
authority = ServiceAuthority(RunFile("127.0.0.1", int(sys.argv[1]), "t", "production", 0), "s", "s")
flood = "import sys; sys.stdout.write(('x' + chr(10)) * 150000)"
PollLoop([sys.executable, "-c", flood], SessionSettings("s", "s"), authority, {}).run()
print(longest, file=sys.stderr)
"""


@pytest.mark.promise("bounded-memory")
def test_a_server_that_floods_is_not_read_faster_than_its_events_are_taken() -> None:
    ours, theirs = socket.socketpair()  # an agent that neither speaks nor leaves
    with ours, theirs, RawService(lambda _head, _body: reply(b"{}")) as service:
        done = subprocess.run(
            [sys.executable, "-c", _FLOODED, str(service.run().port)],
            stdin=theirs.fileno(),
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    assert int(done.stderr.splitlines()[-1]) <= 1000 + READ
    told = [json.loads(body) for head, body in service.requests if b"/events" in head]
    kinds = [kind for one in told for kind, _, _ in one["records"]]
    # What waited at the end has a second to be delivered.
    assert kinds.count("frame_refused") > 100_000
