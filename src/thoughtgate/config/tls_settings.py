"""The settings of TLS: which certificates the gate trusts, and which it presents.

Paths are relative to the config file.
"""

from dataclasses import dataclass

from thoughtgate.config.key_types import Section, Text


@dataclass(frozen=True, slots=True)
class ServerTls(Section):
    """TLS towards one server; certificates are always verified."""

    ca: str = ""
    """File with CA certificates to trust besides those of the system, as PEM."""
    client_cert: str = ""
    """File with the certificate chain that the gate presents to the server, as PEM."""
    client_key: str = ""
    """File with the private key of ``client_cert``, as PEM; others must not be able to read it."""


@dataclass(frozen=True, slots=True)
class ListenTls(Section):
    """TLS of the listener; changed files are read again while the gate runs."""

    cert: Text
    """File with the certificate chain, as PEM."""
    key: Text
    """File with the private key, as PEM; others must not be able to read it."""
    client_ca: str = ""
    """File with the CA certificates, as PEM, one of which must have issued a client's certificate;
    clients without such a certificate cannot connect."""
