"""TLS towards servers, and of our own listeners."""

import asyncio
import shutil
import ssl
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)
from tests.support.certificates import Authority, write_certificate

from thoughtgate.transports import tls
from thoughtgate.transports.tls import (
    ReloadedContext,
    client_context,
    reason_of,
    server_context,
)


@pytest.mark.requirement("NFR-S1", "NFR-S5")
def test_certificates_are_always_verified_and_old_tls_is_refused() -> None:
    context = client_context()
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_listener_has_its_certificate_and_refuses_old_tls(tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    context = server_context(str(certificate), str(key))
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        server_context(str(key), str(certificate))
    with pytest.raises(FileNotFoundError):
        server_context(str(tmp_path / "none.pem"), str(key))


def test_a_file_without_certificates_is_refused(tmp_path: object) -> None:
    with pytest.raises((OSError, ssl.SSLError)):
        client_context("/nonexistent/roots.pem")


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's certificates, in a place of which OpenSSL does not know."""
    known = ssl.get_default_verify_paths()._replace(cafile="", capath="")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: known)
    for name in (known.openssl_cafile_env, known.openssl_capath_env):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "roots.pem"
    file.write_text("no certificate", "utf-8")
    monkeypatch.setattr(tls, "SYSTEM_FILES", (str(tmp_path / "missing"), str(file)))
    return file


def test_the_systems_certificates_are_read_where_openssl_does_not_look(roots: Path) -> None:
    with pytest.raises(ssl.SSLError):
        client_context()

    roots.unlink()
    client_context()


def test_a_variable_that_names_certificates_is_obeyed(
    roots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(roots.with_name("missing")))

    client_context()


async def _serial(port: int, ca: Path) -> str:
    """Connect, and return the serial number of the listener's certificate."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=client_context(str(ca)), server_hostname="127.0.0.1"
    )
    certificate: dict[str, Any] = writer.get_extra_info("peercert")
    assert await reader.read(2) == b"hi"
    writer.close()
    return str(certificate["serialNumber"])


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_changed_certificates_are_used_by_new_connections(run: Any, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.issue("127.0.0.1", file="used")
    said: list[str] = []
    context = ReloadedContext(
        lambda: server_context(str(cert), str(key)), [str(cert), str(key)], said.append
    )

    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hi")
        await writer.drain()

    async def main() -> None:
        server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        first = await _serial(port, authority.file)
        stays, open_writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=client_context(str(authority.file))
        )
        assert await stays.read(2) == b"hi"

        # Half of a change: the certificate is new, its key is not there yet.
        new_cert, new_key = authority.issue("127.0.0.1", file="new")
        shutil.copy(new_cert, cert)
        context.look()
        assert await _serial(port, authority.file) == first

        shutil.copy(new_key, key)
        context.look()
        assert await _serial(port, authority.file) != first
        context.look()
        assert not open_writer.is_closing()
        assert not stays.at_eof()
        open_writer.close()
        server.close()

    run(main())

    assert said == [
        "changed certificate files cannot be used: the key does not belong to the certificate",
        "changed certificate files are in use for new connections",
    ]


def test_a_connection_looks_for_changes_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "LOOK_EVERY_S", 0.0)
    cert, key = write_certificate(tmp_path)
    said: list[str] = []
    context = ReloadedContext(
        lambda: server_context(str(cert), str(key)), [str(cert), str(key)], said.append
    )
    key.unlink()

    context.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_side=True)

    assert said == ["changed certificate files cannot be used: No such file or directory"]


def test_a_listener_may_require_a_certificate_of_its_clients(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cert, key = authority.issue("127.0.0.1")

    context = server_context(str(cert), str(key), str(authority.file))

    assert context.verify_mode == ssl.CERT_REQUIRED


def test_a_key_that_needs_a_password_is_refused_without_asking(tmp_path: Path) -> None:
    cert, key = write_certificate(tmp_path)
    secret = load_pem_private_key(key.read_bytes(), None)
    form = BestAvailableEncryption(b"password")
    key.write_bytes(secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, form))

    with pytest.raises(ValueError, match="needs a password"):
        client_context("", str(cert), str(key))


def test_reasons_do_not_quote_the_library(tmp_path: Path) -> None:
    cert, key = write_certificate(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    _, other_key = write_certificate(other)
    empty = tmp_path / "empty.pem"
    empty.touch()

    def reason(*files: Path) -> str:
        with pytest.raises((OSError, ValueError)) as raised:
            server_context(*map(str, files))
        return reason_of(raised.value)

    assert reason(cert, other_key) == "the key does not belong to the certificate"
    assert reason(cert, key, empty) == "there is no certificate in it"
    assert "certificate or key" in reason(empty, key)
    assert reason(tmp_path / "missing", key) == "No such file or directory"
    assert reason_of(ValueError("x")) == "x"


def test_the_environment_cannot_have_the_keys_of_connections_written_to_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))

    assert client_context().keylog_filename is None
