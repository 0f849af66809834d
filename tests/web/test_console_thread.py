"""The console beside a gate over HTTP: real commands, a real pseudo-terminal."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.support.commands import sample_server, thoughtgate
from tests.support.consoles import Client
from tests.support.http_upstream import free_port
from tests.support.sign_in import ProxiedClient, running_issuer, sign_in_config, token
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import PATIENCE_S, wait_for

from thoughtgate.gate.config_files import load_configuration
from thoughtgate.web.console_thread import console_in_thread

LINK = re.compile(r"console +(http://127\.0\.0\.1:(\d+)/login/\S+)")


def config(folder: Path, extra: str = "") -> Path:
    command, *args = sample_server()
    file = folder / "thoughtgate.yaml"
    file.write_text(
        f"schema: 1\ndefault: forward\nservers:\n  sample: {{command: '{command}', args: {args}}}\n{extra}"
    )
    return file


@contextlib.contextmanager
def in_terminal(folder: Path, *args: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run a command whose stderr is a terminal; what it says there is copied to a file."""
    main, side = pty.openpty()
    said = folder / "said"
    with said.open("wb") as copy, contextlib.ExitStack() as stack:
        process = subprocess.Popen(
            thoughtgate(*args),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=side,
            env={**os.environ, "THOUGHTGATE_STATE_DIR": str(folder / "state")},
            cwd=folder,
        )
        os.close(side)
        reader = stack.enter_context(_copying(main, copy.fileno()))
        try:
            yield process, said
        finally:
            process.kill()
            process.wait(PATIENCE_S)
            reader()


@contextlib.contextmanager
def _copying(source: int, target: int) -> Iterator[Callable[[], None]]:
    def copy() -> None:
        with contextlib.suppress(OSError):
            while data := os.read(source, 4096):
                os.write(target, data)

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    yield lambda: thread.join(PATIENCE_S)
    os.close(source)


@pytest.mark.parametrize(
    "args",
    [("proxy", "--listen", "127.0.0.1:0"), ("serve", "--http", "127.0.0.1:0")],
    ids=["proxy", "serve"],
)
def test_a_gate_in_a_terminal_has_a_console(tmp_path: Path, args: Sequence[str]) -> None:
    file = config(tmp_path)
    with in_terminal(tmp_path, *args, "-c", str(file)) as (process, said):
        found = wait_for(lambda: LINK.search(said.read_text("utf-8", "replace")), what="the link")
        client = Client(int(found.group(2)))
        assert client.get(urlsplit(found.group(1)).path).status == 200
        assert client.get("/").status == 200
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


@pytest.mark.parametrize(
    "args",
    [("proxy", "--listen", "127.0.0.1:0"), ("serve", "--http", "127.0.0.1:0")],
    ids=["proxy", "serve"],
)
def test_with_sign_in_a_gate_needs_no_terminal_and_records_refusals(
    tmp_path: Path, args: Sequence[str]
) -> None:
    """No link is printed that could get into a log, so the console may always run."""
    port = free_port()
    with running_issuer() as issuer:
        rest = sign_in_config(issuer.url, console=f"  port: {port}\n")
        file = config(tmp_path, rest.partition("default: forward\n")[2])
        with StdioPeer(
            thoughtgate(*args, "-c", str(file)),
            env={"THOUGHTGATE_STATE_DIR": str(tmp_path / "state")},
        ) as gate:
            wait_for(lambda: "console   https://console.example" in gate.stderr, what="the console")
            assert "/login/" not in gate.stderr
            assert ProxiedClient(port).get("/").status == 200
            assert ProxiedClient(port, token(aud="other")).get("/").status == 401
            record = tmp_path / "state" / "audit.jsonl"
            wait_for(lambda: "agent_auth_rejected" in record.read_text(), what="the record")
    (refused,) = [
        event["agent"]
        for event in map(json.loads, record.read_text().splitlines())
        if event["type"] == "agent_auth_rejected"
    ]
    assert refused == {"method": "console", "reason": "token meant for somebody else at /"}


def test_a_config_can_do_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_configuration(
        str(config(tmp_path, "console: {enabled: false}\n")), {}, str(tmp_path)
    )
    said: list[str] = []
    with console_in_thread(loaded, {}, str(tmp_path / "state"), said.append):
        assert not (tmp_path / "state").exists()
    assert said == []


def test_no_link_gets_into_a_log(tmp_path: Path) -> None:
    """Without a terminal nobody opens the link, and it would be a secret in a log."""
    loaded = load_configuration(str(config(tmp_path)), {}, str(tmp_path))
    said: list[str] = []
    with console_in_thread(loaded, {}, str(tmp_path / "state"), said.append):
        pass
    assert said == []


def test_a_gate_goes_on_when_its_console_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    loaded = load_configuration(str(config(tmp_path)), {}, str(tmp_path))
    (tmp_path / "state").write_text("a file, not a directory")
    said: list[str] = []
    with console_in_thread(loaded, {}, str(tmp_path / "state"), said.append):
        wait_for(lambda: said)
    assert said[0].startswith("the console could not start: ")


@pytest.mark.promise("agent-cannot-approve")
@pytest.mark.parametrize("has_issuer", [False, True], ids=["terminal", "issuer"])
def test_an_agent_that_starts_a_gate_gets_no_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_issuer: bool
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: not has_issuer, raising=False)
    # An agent could sign in with tokens of an issuer that it runs itself.
    own = sign_in_config("http://127.0.0.1:9/").partition("default: forward\n")[2]
    file = config(tmp_path, own if has_issuer else "")
    loaded = load_configuration(str(file), {}, str(tmp_path))
    said: list[str] = []
    environ = {"THOUGHTGATE_ACTIVE": "1"}
    before = threading.active_count()
    with console_in_thread(loaded, environ, str(tmp_path / "state"), said.append):
        assert threading.active_count() == before
    assert said == []
