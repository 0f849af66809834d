"""Certificates for servers and clients of tests."""

import datetime as dt
import ipaddress
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_LIFE: Final = dt.timedelta(days=30)


def write_certificate(
    folder: Path, address_text: str = "127.0.0.1", *, first_day: int = -1, days: int = 30
) -> tuple[Path, Path]:
    """Write a certificate of an address that signs itself, and its key; return both files.

    It is valid for some days, of which the first is today and this many days.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(address_text)
    address = x509.IPAddress(ipaddress.ip_address(address_text))
    made = (
        _builder(name, name, key, dt.timedelta(days=-first_day), dt.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _write(folder, "certificate", "key", made, key)


class Authority:
    """A private CA; ``file`` holds its certificate."""

    def __init__(self, folder: Path, name: str = "Test CA") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        made = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / "ca.pem"
        self.file.write_bytes(made.public_bytes(Encoding.PEM))

    def issue(
        self, name: str, *, uri: str = "", file: str = "", age: dt.timedelta = dt.timedelta(days=1)
    ) -> tuple[Path, Path]:
        """Write a certificate for a host or a client, and its key; return both files.

        ``uri`` is a further name of the owner, ``file`` the beginning of the files' names, and
        ``age`` how long ago the certificate became valid; it expires after thirty days.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [_general_name(name)]
        if uri:
            names.append(x509.UniformResourceIdentifier(uri))
        made = (
            _builder(_name(name, organisation="Example"), self._name, key, age)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        start = file or name
        return _write(self._folder, f"{start}.cert", f"{start}.key", made, key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    age: dt.timedelta = dt.timedelta(days=1),
    life: dt.timedelta = _LIFE,
) -> x509.CertificateBuilder:
    start = dt.datetime.now(dt.UTC) - age
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + life)
    )


def _name(common: str, organisation: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if organisation:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation))
    return x509.Name(parts)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(
    folder: Path, cert: str, key: str, made: x509.Certificate, secret: ec.EllipticCurvePrivateKey
) -> tuple[Path, Path]:
    certificate, private = folder / f"{cert}.pem", folder / f"{key}.pem"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    private.touch(0o600)
    private.write_bytes(secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return certificate, private
