"""The name of a client in its certificate, which TLS has already verified.

A certificate with exactly one URI among its alternative names, such as a SPIFFE id, names that URI;
any other certificate names its subject, written as in RFC 4514.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

_SHORT: Final = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "stateOrProvinceName": "ST",
    "localityName": "L",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
"""The attributes for which RFC 4514 has short names."""

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

_SPECIAL: Final = frozenset('",+;<>\\=')


def name_in(certificate: dict[str, Any] | None) -> str:
    """Return the name of a certificate's owner; empty if it names nobody."""
    if not certificate:
        return ""
    uris = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"]
    # TLS does not check the syntax of URIs. Without a scheme, one could look like a subject.
    if len(uris) == 1 and _SCHEME.match(str(uris[0])):
        return str(uris[0])
    return subject_text(certificate.get("subject", ()))


def subject_text(subject: Iterable[Iterable[tuple[str, str]]]) -> str:
    """Return a subject as text, the most specific part first."""
    parts = [
        "+".join(f"{_SHORT.get(name, name)}={_escaped(value)}" for name, value in part)
        for part in subject
    ]
    return ",".join(reversed(parts))


def _escaped(value: str) -> str:
    """Escape what would make two subjects look alike (RFC 4514, 2.4)."""
    text = "".join(f"\\{char}" if char in _SPECIAL else char for char in value)
    if text.startswith(("#", " ")):
        text = f"\\{text}"
    return f"{text[:-1]}\\ " if text.endswith(" ") and text != "\\ " else text
