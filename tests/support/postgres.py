"""A real PostgreSQL server for tests: Debian's programs, an ordinary user, loopback only."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.support.http_upstream import free_port
from tests.support.waiting import PATIENCE_S

USER = "gate"
DATABASE = "thoughtgate"

_SETTINGS = (
    "fsync=off",
    "full_page_writes=off",
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "shared_buffers=16MB",
    "max_connections=200",
    "timezone=UTC",
)


def programs() -> Path | None:
    """Return the folder with the server's programs: Debian's newest, or the one on the path."""
    places = [place.parent for place in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    found = shutil.which("postgres")
    return max(places, default=Path(found).parent if found else None, key=_version)


def _version(programs: Path | None) -> int:
    return int(programs.parent.name) if programs and programs.parent.name.isdecimal() else 0


class PostgresServer:
    """A server in a folder of its own; it can be stopped, paused, killed and started again."""

    def __init__(self, *settings: str) -> None:
        """Create a new cluster; ``settings`` replace the defaults, which do not flush to disk."""
        where = programs()
        if where is None:
            pytest.skip("PostgreSQL is not installed; run: make postgresql")
        self._programs = where
        self.directory = Path(tempfile.mkdtemp(prefix="tg-postgres-"))
        self._settings = [*_SETTINGS, *settings]
        self._names = count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        # The server refuses to run as root.
        self._user = _ordinary_user() if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self.directory, self._user)
        self.data = self.directory / "data"
        self._run("initdb", "-D", str(self.data), "-U", USER, "-A", "trust", "-E", "UTF8", "-N")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = [part for one in self._settings for part in ("-c", one)]
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self.data, "-p", str(self.port), *options],
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                user=self._user,
            )
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until the server accepts connections."""
        import psycopg

        deadline = time.monotonic() + PATIENCE_S
        while True:
            with suppress(psycopg.Error):
                psycopg.connect(self._address("postgres")).close()
                return
            log = (self.directory / "log").read_text()
            assert time.monotonic() < deadline, log
            assert self._process is None or self._process.poll() is None, log
            time.sleep(0.02)

    def stop(self, number: int = signal.SIGINT) -> None:
        """Stop the server: SIGINT ends its sessions, SIGQUIT is as good as a crash."""
        if self._process is not None:
            self.resume()
            self._process.send_signal(number)
            self._process.wait(PATIENCE_S)
            self._process = None

    def pause(self) -> None:
        """Stop all processes of the server without ending them: connections stay, nothing answers."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue after ``pause``."""
        self._signal_all(signal.SIGCONT)

    def url(self, schema: str = "") -> str:
        """Return the URL of a new schema, or of a named one: as good as a database of its own."""
        schema = schema or f"t{next(self._names)}"
        self.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        path = quote(f"-c search_path={schema}")
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{DATABASE}?options={path}"

    def standby(self) -> "PostgresServer":
        """Return a running copy that confirms every commit of this server before its client hears."""
        made = PostgresServer.__new__(PostgresServer)
        made.__dict__.update(self.__dict__)
        made.directory = Path(tempfile.mkdtemp(prefix="tg-standby-"))
        if self._user:
            shutil.chown(made.directory, self._user)
        made.data, made.port, made._process = made.directory / "data", free_port(), None
        source = f"{self._address('postgres')} application_name=standby"
        made._run("pg_basebackup", "-D", str(made.data), "-d", source, "-R", "-c", "fast")
        made.start()
        self.execute("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
        self.execute("SELECT pg_reload_conf()")
        return made

    def promote(self) -> None:
        """Make a standby the primary."""
        self._run("pg_ctl", "promote", "-D", str(self.data), "-w", "-t", "30")

    def execute(self, statement: str) -> list[tuple[object, ...]]:
        """Run a statement as the owner, and return its rows."""
        import psycopg

        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            known = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(known, (DATABASE,)).fetchone() is None:
                connection.execute(f"CREATE DATABASE {DATABASE}".encode())
        with psycopg.connect(self._address(DATABASE), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def remove(self) -> None:
        """Stop the server and delete its folder."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _address(self, database: str) -> str:
        return f"host=127.0.0.1 port={self.port} user={USER} dbname={database} connect_timeout=10"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
            cwd=self.directory,
            capture_output=True,
            check=False,
            timeout=120,
            user=self._user,
        )
        assert done.returncode == 0, done.stderr.decode()

    def _signal_all(self, number: int) -> None:
        if self._process is None:
            return
        # Each session of the server is a process group of its own.
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for pid in (self._process.pid, *map(int, children.read_text().split())):
            with contextlib.suppress(ProcessLookupError):  # a session that has just ended
                os.kill(pid, number)


def _ordinary_user() -> str:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    pytest.skip("PostgreSQL does not run as root, and there is no user to run it as")
