"""A real console on a real port, with a real store, and ways to look at it: plain HTTP and Chromium."""

import asyncio
import http.client
import json
import re
import subprocess
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import pytest
import uvloop
from playwright.sync_api import Browser, Error, sync_playwright
from tests.support.commands import thoughtgate
from tests.support.stdio_peer import StdioPeer
from tests.support.waiting import PATIENCE_S

from thoughtgate.core.envelope import Envelope, Run
from thoughtgate.core.record_events import Record
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.record.writer import RecordWriter
from thoughtgate.web.console_server import Console, open_console

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


class Page(NamedTuple):
    """An answer over plain HTTP."""

    status: int
    headers: dict[str, str]
    text: str

    def token(self, action: str) -> str:
        """Return the token of the form that posts to an address."""
        form = re.search(
            rf'action="{re.escape(action)}".*?name="token" value="([^"]+)"', self.text, re.DOTALL
        )
        assert form is not None, f"no form for {action} in {self.text}"
        return form.group(1)


class Client:
    """A browser without a browser: it sends exactly what it is told, and keeps its cookie."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.cookie = ""

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Page:
        """Fetch a page."""
        return self.send("GET", path, headers=headers)

    def post(
        self, path: str, fields: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Page:
        """Send a form as a browser on our own page would."""
        own = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": f"http://127.0.0.1:{self.port}",
            **(headers or {}),
        }
        return self.send("POST", path, urllib.parse.urlencode(fields).encode(), own)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Page:
        """Send a request; a header that is empty is left out."""
        given = {"Host": f"127.0.0.1:{self.port}", "Cookie": self.cookie, **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in given.items():
                if value:
                    connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            page = Page(answer.status, found, answer.read().decode())
        finally:
            connection.close()
        if "set-cookie" in page.headers:
            self.cookie = page.headers["set-cookie"].partition(";")[0]
        return page


class Stream:
    """One open stream of live updates."""

    def __init__(self, client: Client, path: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=PATIENCE_S)
        self._connection.request("GET", path, headers={"Cookie": client.cookie})
        self.answer = self._connection.getresponse()

    def next(self, wanted: str) -> str:
        """Return the data of the next event of a name."""
        name, data = "", list[str]()
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            assert line or name or data or not self.answer.isclosed(), "the stream has ended"
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                data.append(line.removeprefix("data: "))
            elif not line:
                if name == wanted:
                    return "\n".join(data)
                name, data = "", []

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


class RunningConsole(StdioPeer):
    """The real ``thoughtgate console``."""

    def __init__(self, state: Path, *flags: str, env: Mapping[str, str] | None = None) -> None:
        super().__init__(
            thoughtgate("console", "--json", *flags),
            env={"THOUGHTGATE_STATE_DIR": str(state), **(env or {})},
        )
        said: dict[str, Any] = json.loads(self.read_line() or b"{}")
        self.link = str(said.get("url", ""))
        self.port = int(said.get("port", 0))

    def client(self) -> Client:
        """Return a client that is signed in."""
        client = Client(self.port)
        assert client.get(urllib.parse.urlsplit(self.link).path).status == 200
        return client


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run Debian's Chromium; skip the test where there is none."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"there is no {CHROMIUM}; `make chromium` installs it")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        except (Error, subprocess.SubprocessError) as error:
            pytest.skip(f"Chromium does not start: {error}")
        try:
            yield browser
        finally:
            browser.close()


class LocalConsole:
    """The console's real application and server, in a thread of the test."""

    def __init__(
        self, state: Path, config: str = "schema: 1\ndefault: forward\n", **environ: str
    ) -> None:
        self.state = state
        self.refusals: list[tuple[str, str]] = []
        self.console: Console
        file = state / "console.yaml"
        file.write_text(config)
        self._environ = environ
        self._loaded = load_configuration(str(file), environ, str(state))
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: uvloop.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with open_console(
            self._loaded,
            self._environ,
            str(self.state),
            refused=lambda reason, path: self.refusals.append((reason, path)),
        ) as self.console:
            self._ready.set()
            await self._stop.wait()

    @property
    def base(self) -> str:
        """The address of the inbox, without a slash at its end."""
        return f"http://127.0.0.1:{self.console.port}"

    def client(self) -> Client:
        """Return a client that is signed in."""
        client = Client(self.console.port)
        assert client.get(urllib.parse.urlsplit(self.console.new_link()).path).status == 200
        return client

    def stranger(self) -> Client:
        """Return a client that is not signed in."""
        return Client(self.console.port)


def write_events(state: Path, *records: Record, run: str = "run-1") -> Path:
    """Append events to the record of a state directory, and return its path."""
    path = state / "audit.jsonl"
    writer = RecordWriter(str(path), Envelope(Run(run, agent_id="tester")))
    writer.write(list(records))
    writer.close()
    return path
