"""TLS: for connections to other servers, whose certificates are always verified, and for our own."""

import os
import ssl
from pathlib import Path
from typing import Final

SYSTEM_FILES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, Red Hat
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # macOS
)
"""Where systems keep the certificates that they trust."""


def client_context(ca_file: str = "") -> ssl.SSLContext:
    """Return a context that trusts the system's certificates and those in ``ca_file``."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    _trust_system(context)
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    return context


def server_context(certificate: str, key: str) -> ssl.SSLContext:
    """Return a context for a listener with a certificate chain and its key, in PEM files.

    Raises:
        OSError: a file cannot be read, or the two do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key)
    return context


def _trust_system(context: ssl.SSLContext) -> None:
    """Load the system's certificates where OpenSSL does not look for them.

    The OpenSSL of the self-contained folder knows the places of the system that it was built on.
    """
    known = ssl.get_default_verify_paths()
    told = {known.openssl_cafile_env, known.openssl_capath_env} & os.environ.keys()
    if told or known.cafile or known.capath:
        return
    file = next((file for file in SYSTEM_FILES if Path(file).is_file()), None)
    if file is not None:
        context.load_verify_locations(cafile=file)
