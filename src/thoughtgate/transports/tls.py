"""TLS contexts for our listeners and for connections to servers, whose certificates are verified."""

import os
import ssl
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Self

SYSTEM_FILES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch, Alpine
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, Red Hat
    "/etc/ssl/ca-bundle.pem",  # openSUSE
    "/etc/ssl/cert.pem",  # macOS
)
"""Where systems keep the certificates that they trust."""

LOOK_EVERY_S: Final = 1.0
"""How often new connections check whether the files of a context have changed."""

Stamp = tuple[tuple[int, int, int], ...]


class ReloadedContext(ssl.SSLContext):
    """A context that is built again from its files when they have changed.

    Each new connection uses the latest context that could be built, so a file that is being replaced
    or is invalid breaks nothing, and existing connections keep theirs. Event loops only call
    ``wrap_bio`` on a context; all other settings are those of the context behind it.
    """

    _build: Callable[[], ssl.SSLContext]
    _files: tuple[str, ...]
    _report: Callable[[str], None]
    _current: ssl.SSLContext
    _stamp: Stamp
    _looked_at: float

    def __new__(
        cls,
        build: Callable[[], ssl.SSLContext],
        files: Sequence[str],
        report: Callable[[str], None],
    ) -> Self:
        """Build the first context from ``files``; ``report`` is called when they were read again.

        Raises:
            OSError: a file cannot be used.
        """
        context = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        context._build, context._files, context._report = build, tuple(files), report
        # Before the files are read: a change in between is then noticed at the next look.
        context._stamp = context._read_stamp()
        context._current = build()
        context._looked_at = time.monotonic()
        return context

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        """Start TLS on a new connection."""
        if time.monotonic() - self._looked_at >= LOOK_EVERY_S:
            self.look()
        return self._current.wrap_bio(*args, **options)

    def look(self) -> None:
        """Build the context again if a file has changed; keep the old one if that fails."""
        self._looked_at = time.monotonic()
        stamp = self._read_stamp()
        if stamp == self._stamp:
            return
        # Even if the files turn out to be invalid, so that each state is reported only once.
        self._stamp = stamp
        try:
            self._current = self._build()
        except (OSError, ValueError) as error:
            self._report(f"changed certificate files cannot be used: {reason_of(error)}")
        else:
            self._report("changed certificate files are in use for new connections")

    def _read_stamp(self) -> Stamp:
        return tuple(_stamp_of(file) for file in self._files)


def _stamp_of(file: str) -> tuple[int, int, int]:
    try:
        found = Path(file).stat()
    except OSError:
        return (0, 0, 0)
    return (found.st_ino, found.st_size, found.st_mtime_ns)


def reason_of(error: Exception) -> str:
    """Return why a file could not be used; OpenSSL's own text may name lines of its source."""
    if isinstance(error, ssl.SSLError):
        return _SSL_REASONS.get(error.reason, "it holds no certificate or key that belongs there")
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


_SSL_REASONS: Final = {
    "KEY_VALUES_MISMATCH": "the key does not belong to the certificate",
    "NO_CERTIFICATE_OR_CRL_FOUND": "there is no certificate in it",
}


def client_context(ca_file: str = "", certificate: str = "", key: str = "") -> ssl.SSLContext:
    """Return a context that trusts the system's certificates and those in ``ca_file``.

    ``certificate`` and ``key`` are for servers that ask for a client certificate.

    Raises:
        OSError: a file cannot be read, or the two do not belong together.
    """
    context = ssl.create_default_context()
    # SSLKEYLOGFILE is ignored: with the keys of a connection, the tokens on it can be read, and the
    # agent that starts a gate chooses its environment.
    context.keylog_filename = None  # type: ignore[assignment]
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    _trust_system(context)
    if ca_file:
        context.load_verify_locations(cafile=ca_file)
    if certificate:
        context.load_cert_chain(certificate, key, _no_password)
    return context


def _no_password() -> str:
    """Answer for a key that needs a password: otherwise OpenSSL would ask at the terminal."""
    raise ValueError("the key needs a password; store it without one")


def server_context(certificate: str, key: str, client_ca: str = "") -> ssl.SSLContext:
    """Return a context for a listener with a certificate chain and its key, in PEM files.

    With ``client_ca``, clients must show a certificate that one of the CAs in that file has issued.

    Raises:
        OSError: a file cannot be read, or the two do not belong together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(certificate, key, _no_password)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cafile=client_ca)
    return context


def _trust_system(context: ssl.SSLContext) -> None:
    """Load the system's certificates where OpenSSL does not look for them.

    The OpenSSL of the self-contained folder knows the places of the system that it was built on.
    """
    known = ssl.get_default_verify_paths()
    chosen = {known.openssl_cafile_env, known.openssl_capath_env} & os.environ.keys()
    if chosen or known.cafile or known.capath:
        return
    file = next((file for file in SYSTEM_FILES if Path(file).is_file()), None)
    if file is not None:
        context.load_verify_locations(cafile=file)
