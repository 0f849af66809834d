"""Making a console."""

import http.client
import ssl
from pathlib import Path

import pytest
from tests.support.certificates import write_certificate
from tests.support.consoles import LocalConsole
from tests.support.sign_in import (
    ANN,
    HEADER,
    ProxiedClient,
    running_issuer,
    sign_in_config,
    token,
)
from tests.support.waiting import PATIENCE_S, run_async

from thoughtgate.errors import ConfigError, UsageError
from thoughtgate.gate.config_files import load_configuration
from thoughtgate.testing.fake_clock import FakeClock
from thoughtgate.web.console_server import (
    MAX_REPORTS,
    ThrottledReport,
    make_console,
    open_console,
)


def test_the_record_is_the_one_that_the_config_names(tmp_path: Path) -> None:
    with LocalConsole(tmp_path, "schema: 1\ndefault: deny\naudit: {file: other.jsonl}\n") as served:
        assert served.console.context.record.path == tmp_path / "other.jsonl"


TLS = "  tls: {certificate: certificate.pem, key: key.pem}\n  host: 127.0.0.1\n"


def test_a_console_with_a_certificate_serves_https(tmp_path: Path) -> None:
    certificate, _ = write_certificate(tmp_path)
    trusting = ssl.create_default_context(cafile=str(certificate))
    with (
        running_issuer() as issuer,
        LocalConsole(tmp_path, sign_in_config(issuer.url, console=TLS)) as served,
    ):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", served.console.port, timeout=PATIENCE_S, context=trusting
        )
        connection.request("GET", "/", headers={"Host": "console.example", HEADER: token()})
        answer = connection.getresponse()
        assert answer.status == 200
        assert ANN in answer.read().decode()
        connection.close()
        with pytest.raises((OSError, http.client.HTTPException)):
            ProxiedClient(served.console.port).get("/")


def test_a_certificate_that_cannot_be_used_stops_the_console(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    (tmp_path / "key.pem").write_text("not a key")
    file = tmp_path / "c.yaml"
    file.write_text(sign_in_config("http://127.0.0.1:9/", console=TLS))
    loaded = load_configuration(str(file), {}, str(tmp_path))

    async def main() -> None:
        async with open_console(loaded, {}, str(tmp_path)):
            pass

    with pytest.raises(ConfigError, match=r"console\.tls") as caught:
        run_async(main())
    assert "not a key" not in str(caught.value)


def test_a_record_that_cannot_be_read_back_is_none(tmp_path: Path) -> None:
    with LocalConsole(tmp_path, "schema: 1\ndefault: deny\naudit: {sink: stderr}\n") as served:
        assert served.console.context.record.path is None
        assert "cannot be read back" in served.client().get("/traffic").text
        assert served.client().get("/calls").status == 200
        assert served.client().get("/servers").status == 200
        assert served.client().get("/overview").status == 200


def test_a_record_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("schema: 1\ndefault: deny\n")
    loaded = load_configuration(str(file), {}, str(tmp_path))
    made = make_console(loaded, {}, str(tmp_path), 1, record=str(tmp_path / "x.jsonl"))

    assert made.context.record.path == tmp_path / "x.jsonl"
    made.context.approvals.close()


async def _open(loaded: object, state: Path, port: int) -> None:
    async with open_console(loaded, {}, str(state), port):  # type: ignore[arg-type]  # a loaded config
        raise AssertionError("the port was taken")


def test_a_taken_port_is_said_so(tmp_path: Path) -> None:

    with LocalConsole(tmp_path) as served, pytest.raises(UsageError, match="cannot be used"):
        run_async(_open(served._loaded, tmp_path, served.console.port))


def test_refusals_are_told_of_but_not_without_end() -> None:
    clock, told = FakeClock(), list[str]()
    tell = ThrottledReport(lambda reason, path: told.append(reason + path), clock)
    for _ in range(MAX_REPORTS + 5):
        tell("wrong host", "/")
    assert len(told) == MAX_REPORTS

    clock.advance(61)
    tell("wrong host", "/")
    assert len(told) == MAX_REPORTS + 1
