"""Servers that do not come up: the reason has a name in the reply, the log, the record and status."""

import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.faces.conftest import Start
from tests.faces.face import HTTP_SERVER, Gate, Setup
from tests.faces.test_failures import events, lines, status_of
from tests.faces.test_lifecycle import NOT_SERVE, OPEN

MUTE: Final = "import sys\nfor line in sys.stdin: pass"
ANSWERS: Final = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    body = {body}.get(asked.get("method"))
    if body and "id" in asked:
        print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], **body}}), flush=True)
"""
REVISION: Final = {"code": -32022, "message": "no", "data": {"supported": ["2099-01-01"]}}
UNKNOWN: Final = {"code": -32601, "message": "no such method"}
BROKEN: Final = {
    "start_timeout": MUTE,
    "bad_handshake": ANSWERS.format(
        body={"server/discover": {"error": UNKNOWN}, "initialize": {"result": {"odd": 1}}}
    ),
    "wrong_revision": ANSWERS.format(body={"server/discover": {"error": REVISION}}),
    "exited": "import sys; sys.exit(3)",
}
"""Programs that are no working servers, with the cause that each leads to."""


def start_with(start: Start, command: list[str], **entry: Any) -> Gate:
    """Start a gate whose server is a command of the test."""
    gate = start(Setup(OPEN, entry), at_once=False)
    gate._server_command = lambda *_: command  # type: ignore[method-assign]
    return gate.start()


def check(gate: Gate, cause: str) -> None:
    """Call a tool, and compare what is said in all places."""
    error = gate.agent_without_session().call("echo", {"mark": "far"}, modern=True)["error"]
    data = error["data"]
    assert (data["kind"], data["cause"]) == ("server_start_failed", cause)
    assert data["reason"]
    (told, *_) = gate.wait(lambda: events(gate, "server_exited"), "the failure on record")
    names = {"kind": data["kind"], "cause": cause}
    assert {**told, **names, "reason": data["reason"]} == told
    words = data["reason"].removeprefix("the server "), cause
    gate.wait(lambda: lines(gate, *words), "the failure on standard error")
    shown = status_of(gate)
    assert (shown["error"], shown["reason"]) == (names, data["reason"])
    ident = data["correlation_id"]
    gate.wait(lambda: ident in json.dumps(gate.records()), "the error on record")


@pytest.mark.not_for("the gate does not start an HTTP server", *HTTP_SERVER)
def test_a_command_that_cannot_be_executed(start: Start, tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text("#!/no/such/interpreter\n", "utf-8")
    program.chmod(0o755)
    check(start_with(start, [str(program)]), "start_failed")


@pytest.mark.not_for("other products leave the handshake to the agent", *NOT_SERVE)
@pytest.mark.not_for("the gate does not start an HTTP server", *HTTP_SERVER)
@pytest.mark.parametrize("cause", BROKEN)
def test_a_server_that_does_not_complete_its_handshake(start: Start, cause: str) -> None:
    gate = start_with(start, [sys.executable, "-c", BROKEN[cause]], start_timeout="3s")
    check(gate, cause)
    # Further attempts that fail in the same way are on record only.
    gate.wait(lambda: len(events(gate, "server_exited")) > 1, "the next attempt on record")
    assert lines(gate, "server ended", cause) == 1
