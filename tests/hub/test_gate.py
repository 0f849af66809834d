"""The gate of the hub when the record cannot be written."""

import resource
from pathlib import Path

import pytest
from tests.support.frames import call, request
from tests.support.hub import sample, serving

prlimit = getattr(resource, "prlimit", None)


@pytest.mark.skipif(prlimit is None, reason="this system cannot limit another process")
def test_nothing_is_sent_on_while_the_record_cannot_be_written(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving(tmp_path, {"one": sample("--log", str(log))}) as hub:
        hub.open()
        hub.text(1, "one.echo", {"text": "before"})
        assert prlimit is not None
        free = prlimit(hub.pid, resource.RLIMIT_FSIZE)
        # From now on no file of the hub may grow, as on a full disk.
        prlimit(hub.pid, resource.RLIMIT_FSIZE, (1, free[1]))
        refused = hub.ask(call(2, "one.echo", {"text": "unrecorded"}))
        pong = hub.ask(request(3, "ping"))
        prlimit(hub.pid, resource.RLIMIT_FSIZE, free)
        after = hub.text(4, "one.echo", {"text": "after"})
        hub.close_stdin()
        hub.wait()
        run_end = hub.records()[-1]

    assert refused["error"]["data"]["kind"] == "service_unavailable"
    assert refused["error"]["data"]["server"] == "one"
    assert "unrecorded" not in log.read_text()
    assert pong["result"] == {}
    assert after == "after"
    assert run_end["run"]["summary"]["calls_allowed"] == 2
