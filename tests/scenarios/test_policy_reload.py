"""A changed config takes effect on the next call; a broken one changes nothing and says so."""

from pathlib import Path

from tests.support.frames import call, initialize
from tests.support.shim_peer import ALLOW_ALL, ShimPeer
from tests.support.waiting import wait_for


def _kind(peer: ShimPeer, ident: int) -> str:
    peer.send(call(ident, "echo", {"text": "x"}))
    answer = peer.receive_answer(ident)
    return answer["error"]["data"]["kind"] if "error" in answer else "forwarded"


def _write(folder: Path, text: str) -> None:
    changed = folder / "thoughtgate.yaml.new"
    changed.write_text(text, "utf-8")
    changed.replace(folder / "thoughtgate.yaml")


def test_a_standalone_shim_judges_by_the_file_as_it_is_now(tmp_path: Path) -> None:
    with ShimPeer(tmp_path, ALLOW_ALL) as peer:
        peer.send(initialize(0))
        peer.receive_answer(0)
        assert _kind(peer, 1) == "forwarded"

        _write(tmp_path, "schema: 1\ndefault: deny\n")
        idents = iter(range(2, 1000))
        wait_for(lambda: _kind(peer, next(idents)) == "governance_denied")

        _write(tmp_path, "schema: 1\ndefault: perhaps\n")
        wait_for(lambda: _kind(peer, next(idents)) and "not reloaded" in peer.stderr)
        assert _kind(peer, 1000) == "governance_denied"
        changes = [event["policy"]["loaded"] for event in peer.events("policy_changed")]
        assert changes[:2] == [True, False]
