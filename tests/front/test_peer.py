"""What the front knows of an agent is the same before one server and before many."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.hub_parts import connect, governed, load

from thoughtgate.core.commands import ToServer
from thoughtgate.core.events import AgentSent
from thoughtgate.core.session_replies import SessionSettings
from thoughtgate.front.peer import Peer
from thoughtgate.gate.local_authority import LocalAuthority
from thoughtgate.gate.outbox import Outbox
from thoughtgate.gate.session_driver import Engine, SessionDriver
from thoughtgate.wire.frame import read_frame

RESPONSE = b'{"jsonrpc":"2.0","id":"tg-ask-1","result":{}}'


def _ignore(driver: SessionDriver, frame: ToServer) -> None:
    del driver, frame


def _peers(tmp_path: Path) -> dict[str, Peer]:
    loaded = load(tmp_path, {})
    with governed(loaded, tmp_path / "state") as governor:
        authority, outbox = LocalAuthority(governor), Outbox(lambda: True, lambda _: None)
        engine = Engine(authority, outbox, notify=_ignore, run_detached=_ignore)
        driver = SessionDriver(engine, SessionSettings("one", "1"), "tester")
        return {"driver": driver, "client": connect(outbox)[0]}


@pytest.mark.parametrize("kind", ["driver", "client"])
def test_a_new_peer_has_nothing_open(tmp_path: Path, kind: str) -> None:
    peer = _peers(tmp_path)[kind]

    assert (peer.principal, peer.label) == ("tester", "1")
    assert not peer.is_busy
    assert not peer.is_open(1)
    assert not peer.is_undecided(1)
    assert not peer.is_answered_by(AgentSent(RESPONSE, 0.0, read_frame(RESPONSE)))
    peer.tick(1.0)
    peer.stop("the gate is stopping", 2.0)
    assert not peer.is_busy


@pytest.mark.parametrize("kind", ["driver", "client"])
def test_a_peer_is_busy_while_somebody_waits(tmp_path: Path, kind: str) -> None:
    peer = _peers(tmp_path)[kind]
    caller: Any = connect(peer.outbox)[1]
    peer.callers[1] = caller

    assert peer.is_busy
    assert not peer.is_spent
