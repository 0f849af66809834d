"""Names for the errors of opening and using a connection.

The texts of the system and of OpenSSL are not passed on: they differ between platforms and may
name addresses.
"""

import errno
import re
import socket
import ssl
from typing import Final

from thoughtgate.errors import PeerError, upstream_error

_CAUSES: Final = {
    "connection_refused": frozenset({errno.ECONNREFUSED}),
    "connect_timeout": frozenset({errno.ETIMEDOUT}),
    "network_unreachable": frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN}),
    "connection_lost": frozenset({errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED}),
}
"""What the system's error numbers mean; if a host failed at several addresses, the first counts."""

_CERTIFICATE_CAUSES: Final = {
    9: "tls_not_yet_valid",
    10: "tls_expired",
    18: "tls_unknown_ca",  # self-signed
    19: "tls_unknown_ca",  # a self-signed certificate in the chain
    20: "tls_unknown_ca",  # the issuer is unknown
    21: "tls_unknown_ca",  # the chain has no issuer
    62: "tls_wrong_host",
    64: "tls_wrong_host",  # the address does not match
}
"""OpenSSL's codes of failed verifications (``X509_V_ERR_*``)."""

_CLIENT_CERTIFICATE: Final = frozenset(
    {
        "TLSV13_ALERT_CERTIFICATE_REQUIRED",
        "TLSV1_ALERT_UNKNOWN_CA",
        "TLSV1_ALERT_ACCESS_DENIED",
        "SSLV3_ALERT_BAD_CERTIFICATE",
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    }
)
"""Alerts with which a server refuses the certificate of its client, or the lack of one."""

_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})

_NUMBERS: Final = re.compile(r"\[Errno (-?\d+)\]")


def connect_error(error: BaseException) -> PeerError:
    """Return the error for an exception that a connection attempt raised."""
    if isinstance(error, ssl.SSLError):
        return tls_error(error)
    if isinstance(error, TimeoutError):
        return upstream_error("connect_timeout")
    if isinstance(error, socket.gaierror | UnicodeError):
        return upstream_error("dns_failed")
    numbers = _numbers(error)
    causes = (cause for cause, meant in _CAUSES.items() if numbers & meant)
    return upstream_error(next(causes, "connection_failed"))


def lost_error(error: BaseException | None) -> PeerError:
    """Return the error for a connection that ended before the response was complete."""
    if isinstance(error, ssl.SSLError):
        return tls_error(error)
    return upstream_error("connection_lost")


def tls_error(error: ssl.SSLError) -> PeerError:
    """Return the error for a failed TLS handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return upstream_error(_CERTIFICATE_CAUSES.get(error.verify_code, "tls_failed"))
    # Only exceptions from a handshake have a reason.
    reason = getattr(error, "reason", None) or ""
    if reason in _CLIENT_CERTIFICATE:
        return upstream_error("tls_client_certificate")
    if reason in _NOT_TLS:
        return upstream_error("tls_failed", "the server does not answer with TLS")
    return upstream_error("tls_failed")


def _numbers(error: BaseException) -> set[int]:
    """Return the system's error numbers; after several attempts, asyncio has them only in its text."""
    if isinstance(error, OSError) and error.errno is not None:
        return {error.errno}
    return {int(number) for number in _NUMBERS.findall(str(error))}
