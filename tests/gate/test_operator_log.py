"""Speaking to the operator: plain words, or JSON where the config asks for it."""

import json
from pathlib import Path

import pytest

from thoughtgate.core.record_events import (
    CALL_DECISION,
    Record,
    frame_refused,
    server_exited,
    server_recovered,
    server_started,
    server_unreachable,
)
from thoughtgate.gate.config_files import Loaded, load_configuration
from thoughtgate.gate.operator_log import (
    json_log,
    operator_messages,
    report_unenforced,
    server_log,
)


def _loaded(folder: Path, form: str) -> Loaded:
    config = folder / "thoughtgate.yaml"
    config.write_text(f"schema: 1\ndefault: deny\ntelemetry: {{log_format: {form}}}\n")
    return load_configuration(str(config), {}, str(folder))


def test_plain_words_go_the_plain_way(tmp_path: Path) -> None:
    heard: list[str] = []
    loaded = _loaded(tmp_path, "human")
    operator_messages("proxy", loaded, heard.append)("listening")
    assert heard == ["listening"]
    assert json_log("proxy", loaded) is None


def test_where_the_log_is_json_so_are_the_words(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    heard: list[str] = []
    loaded = _loaded(tmp_path, "json")
    operator_messages("proxy", loaded, heard.append, level="warn")(
        "a\nline \u2028 and a half \ud800"
    )
    (line,) = capfd.readouterr().err.split("\n")[:-1]
    said = json.loads(line)
    assert (said["component"], said["level"]) == ("proxy", "warn")
    assert said["message"].startswith("a\nline")
    assert heard == []
    assert json_log("proxy", loaded) is not None


@pytest.mark.requirement("EC-STDIO-017", "EC-STDIO-033")
def test_what_production_would_have_refused_is_told_in_words(
    capfd: pytest.CaptureFixture[str],
) -> None:
    decision = {"outcome": "WOULD_BLOCK", "gate": "rules", "explain": {"reason_code": "X_Y"}}
    body = {"decision": decision, "call": {"tool_name": "drop\n"}}
    report_unenforced(Record(CALL_DECISION, 1.0, "s", "1", body))
    report_unenforced(Record(CALL_DECISION, 1.0, "s", "1", {**body, "decision": {}}))
    for enforced in (True, False):
        report_unenforced(
            frame_refused(
                1.0,
                "s",
                "1",
                direction="agent_to_server",
                check="raw_cr",
                kind="invalid_request",
                size=1,
                enforced=enforced,
            )
        )

    assert capfd.readouterr().err.splitlines() == [
        "thoughtgate: WOULD_BLOCK: 'drop\\n', rules gate, x_y",
        "thoughtgate: WOULD_REJECT: a frame agent_to_server, raw_cr",
    ]


def test_the_starts_and_ends_of_servers_are_told_in_words(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tell = server_log(_loaded(tmp_path, "human"))
    assert tell is not None
    tell(server_started(1.0, "kid", "0", 7))
    tell(server_exited(2.0, "kid", "0", "the server exited with code 3", exit_code=3))
    tell(server_started(3.0, "far", "0", 0))
    facts = {"state": "degraded", "kind": "upstream_unauthorized", "cause": "status_401"}
    tell(server_unreachable(4.0, "far", "0", {**facts, "status": 401, "reason": "no login"}))
    tell(server_recovered(5.0, "far", "0", 12.4))
    assert capfd.readouterr().err.splitlines() == [
        "thoughtgate: server 'kid' is running (pid 7)",
        "thoughtgate: server 'kid' is down: the server exited with code 3 (upstream_connection_failed, exited)",
        "thoughtgate: server 'far' is up",
        "thoughtgate: server 'far' is degraded: no login (upstream_unauthorized, status_401)",
        "thoughtgate: server 'far' is back after 12 s",
    ]
    tell(server_exited(6.0, "kid", "0", "stopped", exit_code=0, cause="stopped"))
    assert capfd.readouterr().err == "thoughtgate: server 'kid' is down: stopped\n"
    facts["reason"] = "\x1b[2Jgone\x9b"
    tell(server_unreachable(6.0, "far", "0", facts))
    assert "[U+001B][2Jgone[U+009B]" in capfd.readouterr().err
    assert server_log(_loaded(tmp_path, "json")) is None
