"""TLS towards servers, and of our own listeners."""

import ssl
from pathlib import Path

import pytest
from tests.support.certificates import write_certificate

from thoughtgate.transports import tls
from thoughtgate.transports.tls import client_context, server_context


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
