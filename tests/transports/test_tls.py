"""TLS towards servers."""

import ssl

import pytest

from thoughtgate.transports.tls import client_context


@pytest.mark.requirement("NFR-S1", "NFR-S5")
def test_certificates_are_always_verified_and_old_tls_is_refused() -> None:
    context = client_context()
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_file_without_certificates_is_refused(tmp_path: object) -> None:
    with pytest.raises((OSError, ssl.SSLError)):
        client_context("/nonexistent/roots.pem")
