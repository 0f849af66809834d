"""The page about the architecture names the modules that really run, and the real import rules."""

import http.client
import json
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from tests.support import traced_command
from tests.support.commands import sample_server
from tests.support.frames import MODERN_VERSION, call, envelope, initialize, notification, request
from tests.support.http_upstream import HttpUpstream, small_server
from tests.support.hub import sample, write_config
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import PATIENCE_S, wait_for
from tests.test_rooms import ALLOWED_IMPORTS

PAGE: Final = Path(__file__).parents[2] / "docs" / "concepts" / "architecture.md"

_POLICY: Final[dict[str, Any]] = {
    "default": "deny",
    "rules": [{"tool": "*echo", "action": "forward"}],
}
_ARGUMENTS: Final = {"text": "hello"}
_NAME: Final = re.compile(r"`([\w.]+)`")


class TracedGate:
    """A gate whose calls are traced."""

    def __init__(self, folder: Path, begin: str, *arguments: str) -> None:
        self._file = folder / "trace.json"
        program = [sys.executable, traced_command.__file__, str(self._file), begin]
        state = {"THOUGHTGATE_STATE_DIR": str(folder / "state")}
        self.peer = StdioPeer([*program, *arguments], env=state)

    def trace(self, work: Callable[[], None]) -> list[str]:
        """Return the modules that some work makes the gate use.

        The work is done twice, because a gate that answers the second time has finished
        whatever it does after its first answer.
        """
        self.peer.signal(signal.SIGUSR1)
        wait_for(self._file.with_suffix(traced_command.STARTED).exists, what="the trace")
        work()
        work()
        self.peer.signal(signal.SIGUSR2)
        wait_for(self._file.exists, what="the traced modules")
        names: list[str] = json.loads(self._file.read_text("utf-8"))
        return names

    @property
    def port(self) -> int:
        """Where the gate listens."""
        address = re.compile(r"http://127\.0\.0\.1:(\d+)")
        return int(wait_for(lambda: address.search(self.peer.stderr), what="the listener")[1])


@contextmanager
def _running(folder: Path, begin: str, *arguments: str) -> Iterator[TracedGate]:
    gate = TracedGate(folder, begin, *arguments)
    with gate.peer:
        yield gate


def _call_over_http(port: int, tool: str) -> None:
    """Make a call in one write: how the gate reads a request depends on how it arrives."""
    params = {"name": tool, "arguments": _ARGUMENTS, "_meta": envelope()}
    body = json.dumps(request(1, "tools/call", params))
    head = (
        "POST /mcp HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {MODERN_VERSION}",
        "Mcp-Method: tools/call",
        f"Mcp-Name: {tool}",
        f"Content-Length: {len(body)}",
    )
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as link:
        link.sendall("\r\n".join((*head, "", body)).encode())
        with http.client.HTTPResponse(link) as answer:
            answer.begin()
            said = json.loads(answer.read())
    assert (answer.status, "result" in said) == (200, True), said


def _trace_shim(folder: Path) -> list[str]:
    config = write_config(folder / "thoughtgate.yaml", {}, **_POLICY)
    state = ["--state-dir", str(folder / "state")]
    command = ["shim", "-c", str(config), *state, "--", *sample_server()]
    with _running(folder, "gate.poll_loop:_read_agent", *command) as gate:
        gate.peer.ask(initialize(0))
        gate.peer.send(notification("notifications/initialized"))
        idents = iter(range(1, 4))

        def work() -> None:
            assert "result" in gate.peer.ask(call(next(idents), "echo", _ARGUMENTS))

        work()
        return gate.trace(work)


def _trace_http(folder: Path, server: dict[str, Any], tool: str, *command: str) -> list[str]:
    config = write_config(folder / "thoughtgate.yaml", {"sample": server}, **_POLICY)
    begin = "transports.http_server:data_received"
    with _running(folder, begin, *command, "127.0.0.1:0", "-c", str(config)) as gate:
        port = gate.port
        _call_over_http(port, tool)
        return gate.trace(lambda: _call_over_http(port, tool))


def _trace_proxy(folder: Path) -> list[str]:
    with HttpUpstream(small_server) as upstream:
        return _trace_http(folder, {"url": upstream.url}, "echo", "proxy", "--listen")


def _trace_serve(folder: Path) -> list[str]:
    return _trace_http(folder, sample(), "sample.echo", "serve", "--http")


def _line(beginning: str) -> list[str]:
    """Return the names in the one line of the page that begins so."""
    lines = PAGE.read_text("utf-8").splitlines()
    (line,) = (line for line in lines if line.startswith(beginning))
    return _NAME.findall(line)


def _path(name: str) -> list[str]:
    """Return the modules of a path as the page lists them."""
    block = re.compile(rf"^```text path {name}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    (text,) = block.findall(PAGE.read_text("utf-8"))
    return re.findall(r"[\w.]+", text)


def _is_listed(module: str, left_out: list[str], kept: list[str]) -> bool:
    package = module.partition(".")[0]
    return module in kept or not {module, package} & {*left_out}


@pytest.mark.parametrize(
    ("name", "trace"), [("shim", _trace_shim), ("proxy", _trace_proxy), ("serve", _trace_serve)]
)
def test_a_call_takes_the_path_on_the_page(
    name: str, trace: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    left_out = _line("The lists leave out ")
    kept = [one for one in _line("Of `core`, ") if "." in one]

    modules = trace(tmp_path)

    assert [one for one in modules if _is_listed(one, left_out, kept)] == _path(name)


def test_the_paths_leave_out_only_what_exists() -> None:
    source = PAGE.parents[2] / "src" / "thoughtgate"
    places = [source / name.replace(".", "/") for name in _line("The lists leave out ")]

    assert all(place.is_dir() or place.with_suffix(".py").is_file() for place in places)


def _rows(heading: str) -> list[tuple[str, str]]:
    """Return the rows of the table below a heading."""
    section = PAGE.read_text("utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [(first, second) for _, first, second, _ in (line.split("|") for line in lines)]


def test_the_table_of_imports_is_the_one_that_is_enforced() -> None:
    table: dict[str, set[str]] = {}
    for packages, imports in _rows("What may import what"):
        same, is_based, also = imports.partition("; also ")
        base = table[_NAME.findall(same)[0]] if is_based else set()
        for package in _NAME.findall(packages):
            table[package] = base | set(_NAME.findall(also if is_based else imports))

    assert table == {name: set(allowed) for name, allowed in ALLOWED_IMPORTS.items()}


def test_every_package_is_described() -> None:
    described = [_NAME.findall(first)[0] for first, _ in _rows("The packages")]

    assert sorted(described) == sorted(set(ALLOWED_IMPORTS) - {"__main__"})
