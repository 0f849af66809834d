"""An exact allowlist before a real server, through the real shim: only what is named exists."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import ROOT, sample_server, shim, thoughtgate
from tests.support.frames import call, request
from tests.support.stdio_peer import StdioPeer

LOOK_ALIKES = [
    "Echo",
    "ECHO",
    " echo",
    "echo ",
    "echo\x00",
    "e\u0301cho",
    "ech\u043e",
    "echo\u200b",
]


def _config(folder: Path, allow: list[str], **more: Any) -> Path:
    rules = [{"tool": "*", "action": "forward"}]
    servers = {"sample": {"command": "unused", "expose": {"allow": allow}}}
    path = folder / "thoughtgate.json"
    path.write_text(
        json.dumps({"schema": 1, "default": "deny", "servers": servers, "rules": rules, **more})
    )
    return path


def _peer(tmp_path: Path, allow: list[str], *flags: str) -> StdioPeer:
    log = tmp_path / "reached.jsonl"
    log.touch()
    server = sample_server("--log", str(log), *flags)
    config = _config(tmp_path, allow)
    return StdioPeer(shim(server, "-c", str(config), "--audit", str(tmp_path / "record.jsonl")))


def _reached(tmp_path: Path) -> str:
    return (tmp_path / "reached.jsonl").read_text("utf-8")


@pytest.mark.requirement("FR6", "NFR-C3")
def test_the_list_is_what_is_allowed_and_really_there_in_the_servers_order(tmp_path: Path) -> None:
    allow = ["transfer", "not_offered", "echo"]
    with _peer(tmp_path, allow, "--tools", "echo,add,transfer") as peer:
        tools = peer.ask(request(1, "tools/list"))["result"]["tools"]
        with StdioPeer(sample_server("--tools", "echo,add,transfer")) as bare:
            offered = bare.ask(request(1, "tools/list"))["result"]["tools"]

    assert tools == [tool for tool in offered if tool["name"] in {"echo", "transfer"}]


@pytest.mark.requirement("FR7")
def test_a_tool_that_is_not_allowed_never_reaches_the_server(tmp_path: Path) -> None:
    with _peer(tmp_path, ["echo"]) as peer:
        refused = peer.ask(call(1, "add", {"a": 1, "b": 2}))
        unknown = peer.ask(call(2, "no_such_tool"))
        allowed = peer.ask(call(3, "echo", {"text": "hi"}))

    assert "result" in allowed
    assert refused["error"]["data"]["kind"] == unknown["error"]["data"]["kind"] == "not_exposed"
    assert refused["error"]["message"] == unknown["error"]["message"]
    assert '\\"add\\"' not in _reached(tmp_path)
    assert '\\"echo\\"' in _reached(tmp_path)


@pytest.mark.promise("exact-names")
@pytest.mark.requirement("NFR-C1", "FR7")
def test_names_that_only_look_alike_are_other_names(tmp_path: Path) -> None:
    with _peer(tmp_path, ["echo"]) as peer:
        answers = [peer.ask(call(number, name)) for number, name in enumerate(LOOK_ALIKES)]

    # White space at the ends of a name is refused before any gate looks at the name.
    kinds = {answer["error"]["data"]["kind"] for answer in answers}
    assert kinds == {"not_exposed", "invalid_params"}
    assert "tools/call" not in _reached(tmp_path)


@pytest.mark.requirement("NFR-C2")
@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "tr_TR.UTF-8", "de_DE.ISO-8859-1"])
@pytest.mark.parametrize(("tool", "action"), [("LIST_İ", "forward"), ("list_i", "deny")])
def test_the_verdict_does_not_depend_on_the_locale(
    tmp_path: Path, locale: str, tool: str, action: str
) -> None:
    config = tmp_path / "thoughtgate.yaml"
    text = 'schema: 1\ndefault: deny\nrules: [{tool: "LIST_İ", action: forward}]\n'
    config.write_text(text, "utf-8")
    command = ["policy", "explain", "-c", str(config), "--server", "s", "--tool", tool, "--json"]
    run = subprocess.run(
        thoughtgate(*command),
        env={**os.environ, "LC_ALL": locale, "LANG": locale},
        capture_output=True,
        check=True,
        timeout=30,
    )

    assert json.loads(run.stdout)["verdict"]["action"] == action


@pytest.mark.requirement("FR22")
def test_stdout_carries_the_protocol_and_stderr_everything_else(tmp_path: Path) -> None:
    server = sample_server("--stderr", "from the server", "--garbage")
    with StdioPeer(shim(server, "--state-dir", str(tmp_path / "state"))) as peer:
        peer.ask(request(1, "ping"))
        peer.wait_for_stderr("starter policy")
        peer.wait_for_stderr("from the server")
        peer.write_line(b"not json")
        assert peer.receive()["error"]["code"] == -32700
        assert peer.finish() == 0
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in peer.remaining_lines())


@pytest.mark.requirement("NFR-S2")
def test_a_credential_stands_in_no_error_no_log_and_no_record(tmp_path: Path) -> None:
    secret = "sk-live-0123456789abcdefghijklmnop"
    wrong = tmp_path / "wrong.yaml"
    auth = f"{{type: bearer, token: {secret}}}"
    wrong.write_text(
        f"schema: 1\ndefault: deny\nservers:\n  s: {{url: 'https://h/', auth: {auth}}}\n"
    )
    told = subprocess.run(
        thoughtgate("validate-config", "-c", str(wrong), "--json"),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    with _peer(tmp_path, ["echo"]) as peer:
        peer.ask(call(1, "echo", {"text": "x", "password": "hunter2-hunter2", "note": secret}))
        peer.ask(call(2, "add", {"api_key": secret}))
        peer.finish()
        stderr = peer.stderr

    assert told.returncode == 1
    assert "token_env" in told.stdout + told.stderr
    record = (tmp_path / "record.jsonl").read_text("utf-8")
    for place in (told.stdout, told.stderr, stderr, record):
        assert secret not in place
        assert "hunter2" not in place
    assert secret in _reached(tmp_path)


@pytest.mark.requirement("NFR-M4")
def test_the_configs_schema_has_a_version_that_is_checked_and_documented(tmp_path: Path) -> None:
    config = tmp_path / "thoughtgate.yaml"
    config.write_text("schema: 2\ndefault: deny\n")
    run = subprocess.run(
        thoughtgate("validate-config", "-c", str(config)),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert run.returncode == 1
    assert "schema" in run.stderr
    assert "| `schema` | `1` | required |" in (ROOT / "docs/reference/config.md").read_text("utf-8")
